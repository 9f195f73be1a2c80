// Wheels in folders of their own, which jobs have in front on PYTHONPATH: no environment is
// changed, no root is needed, and taking one away is removing a folder. They lie in overlays/KEY of
// the cache folder. One comes to its place only when it is whole and its modules have been imported
// from it.
#pragma once

#include "base/error.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

struct OverlayRequest {
  std::string wheel = {};   // a path
  std::string sha256 = {};  // that it must have; empty: any
  std::string python = {};  // that is to import it
  // Other folders on PYTHONPATH, in which it may find what it needs.
  std::vector<std::string> local = {};
  std::string folder = {};  // where overlays lie; empty: overlays_folder()
};

struct Overlay {
  std::string path = {};
  std::string key = {};
  std::vector<std::string> imported = {};
  bool made = false;  // it was not there before
};

// The one that this Python has imported before, and of which nothing was lost since. The wheel is
// not read: its SHA-256 must be known. nullopt: make_overlay() is needed.
std::optional<Overlay> kept_overlay(const OverlayRequest& request);
Result<Overlay> make_overlay(const OverlayRequest& request,
                             const std::function<void(std::string_view)>& say);

// Its path, which is gone then. Who has loaded something of it keeps that. Errors name those there
// are.
Result<std::string> drop_overlay(const std::string& key);

std::string overlays_folder();
// "deepspeed-0.16.5-py3-none-any.whl" and a digest -> "deepspeed-0.16.5-0123456789ab". Pure.
std::string overlay_key(std::string_view wheel, std::string_view sha256);
// Whether both are overlays of the same package. Pure.
bool same_package(std::string_view key, std::string_view other_key);

}  // namespace lockstep::setup
