// Wheels in folders of their own, which jobs have first on PYTHONPATH. No environment changes, no
// root is needed, and removing an overlay is removing a folder. Overlays lie in overlays/KEY of the
// cache folder. An overlay appears there only when it is complete and its modules have been
// imported from it.
#pragma once

#include "base/error.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

struct OverlayRequest {
  std::string wheel = {};   // path of the wheel
  std::string sha256 = {};  // expected digest; empty: any
  std::string python = {};  // the interpreter to import it with
  // Other folders on PYTHONPATH, which may hold modules that the wheel needs.
  std::vector<std::string> local = {};
  std::string folder = {};  // parent folder of overlays; empty: overlays_folder()
};

struct Overlay {
  std::string path = {};
  std::string key = {};
  std::vector<std::string> imported = {};
  bool made = false;  // false: it existed before
};

// Returns the overlay if this Python has imported it before and all its files are still there. Does
// not read the wheel, so `sha256` must be given. nullopt: call make_overlay().
std::optional<Overlay> kept_overlay(const OverlayRequest& request);
// Returns the overlay, making it if needed. say: receives a line when another install is waited
// for. Errors say why the wheel does not work; nothing of it stays then.
Result<Overlay> make_overlay(const OverlayRequest& request,
                             const std::function<void(std::string_view)>& say);

// Removes an overlay and returns its former path. A running process keeps the libraries it has
// loaded. The error for an unknown key lists the existing overlays.
Result<std::string> drop_overlay(const std::string& key);

std::string overlays_folder();
// "deepspeed-0.16.5-py3-none-any.whl" and a digest -> "deepspeed-0.16.5-0123456789ab". Pure.
std::string overlay_key(std::string_view wheel, std::string_view sha256);
// Returns true if both keys are overlays of the same package. Pure.
bool same_package(std::string_view key, std::string_view other_key);

}  // namespace lockstep::setup
