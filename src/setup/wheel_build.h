// Builds a wheel once: what has been built of the same source for the same Python, PyTorch, CUDA,
// GPUs, CPUs, ops and variables is taken from the cache; of two who build it at the same time one
// waits for the other.
#pragma once

#include "base/error.h"
#include "codec/json.h"
#include "setup/wheel_plan.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

struct WheelRequest {
  std::string source = {};  // as read_wheel_source() reads it
  std::string ops = {};
  std::string arch = {};  // "auto", or a list
  std::string isa = {};   // as read_isa() reads it; empty: x86-64-v3
  std::string python = {};
  int jobs = 0;        // compilers at once; 0: as many as fit
  bool force = false;  // builds it again
};

struct BuiltWheel {
  std::string path = {};  // in the cache
  bool cached = false;    // it was there
  nlohmann::ordered_json manifest = {};
};

using SayLine = std::function<void(std::string_view)>;

// The plan by itself, for --print; a source from an index or a URL has been fetched for it.
struct PreparedWheel {
  WheelPlan plan = {};
  std::string place = {};    // the source: a folder, or an archive
  std::string scratch = {};  // removed by whoever prepared it; empty: none
  std::vector<std::string> notes = {};
};
Result<PreparedWheel> prepare_wheel(const WheelRequest& request, const SayLine& say);
// The words of the command that builds it, with "OUT" and "SOURCE" in place of scratch folders.
std::vector<std::string> shown_command(const PreparedWheel& prepared);

Result<BuiltWheel> build_wheel(const WheelRequest& request, const SayLine& say);
// One that another node has built into the cache that this one sees, too. Errors say where it is.
Result<BuiltWheel> seen_wheel(const nlohmann::ordered_json& manifest);
// Puts one that came from another host into the cache. Its manifest is not trusted: names and
// digest are looked at.
Result<BuiltWheel> keep_foreign_wheel(nlohmann::ordered_json manifest, const std::string& bytes,
                                      const std::string& host);
// Copies wheel, manifest and log to a folder; the wheel's path there.
Result<std::string> copy_wheel(const BuiltWheel& wheel, const std::string& folder);

}  // namespace lockstep::setup
