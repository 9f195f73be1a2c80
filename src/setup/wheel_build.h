// Builds each wheel once. A wheel of the same source for the same Python, PyTorch, CUDA, GPUs,
// CPUs, ops and variables comes from the cache. A second build of the same wheel waits for the
// first.
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
  std::string source = {};  // as read_wheel_source() takes it
  std::string ops = {};
  std::string arch = {};  // "auto", or a list
  std::string isa = {};   // as read_isa() takes it; empty: x86-64-v3
  std::string python = {};
  int jobs = 0;        // compilers at once; 0: as many as fit
  bool force = false;  // build even if the cache has it
};

struct BuiltWheel {
  std::string path = {};  // in the cache
  bool cached = false;    // it was in the cache before
  nlohmann::ordered_json manifest = {};
};

using SayLine = std::function<void(std::string_view)>;

// The plan of a build, also for --print. A source from an index or a URL is already fetched.
struct PreparedWheel {
  WheelPlan plan = {};
  std::string place = {};    // the source: a folder or an archive; empty: not fetched yet
  std::string scratch = {};  // the caller removes it (remove_scratch()); empty: none
  std::vector<std::string> notes = {};
};
Result<PreparedWheel> prepare_wheel(const WheelRequest& request, const SayLine& say);
// Returns the build command, with "OUT" in place of the output folder.
std::vector<std::string> shown_command(const PreparedWheel& prepared);

Result<BuiltWheel> build_wheel(const WheelRequest& request, const SayLine& say);
// Returns a wheel built by another node into a shared cache folder. The error says where the wheel
// is.
Result<BuiltWheel> seen_wheel(const nlohmann::ordered_json& manifest);
// Puts a wheel from another host into the cache. Does not trust the manifest: checks its names and
// the digest.
Result<BuiltWheel> keep_foreign_wheel(nlohmann::ordered_json manifest, const std::string& bytes,
                                      const std::string& host);
// Copies the wheel and its manifest to a folder. Returns the wheel's path there.
Result<std::string> copy_wheel(const BuiltWheel& wheel, const std::string& folder);

}  // namespace lockstep::setup
