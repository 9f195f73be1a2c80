// The plan of a wheel's build: source, target and method. Covers the request of `lockstep wheel`,
// DeepSpeed's ops and their variables, the build's variables, and the key in the cache. Pure.
#pragma once

#include "base/error.h"
#include "setup/python_facts.h"
#include "setup/toolchain.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

// Written as deepspeed, deepspeed==0.16.5, deepspeed@DIR, deepspeed@URL, or a folder alone.
struct WheelSource {
  enum class Kind { folder, index, url };
  Kind kind = Kind::folder;
  std::string text = {};     // as given
  std::string name = {};     // of the package; empty: a folder that may be any project
  std::string version = {};  // index: the part after ==; empty: the newest
  std::string place = {};    // folder: the path as given; url: the URL

  bool is_deepspeed() const { return name == "deepspeed"; }
};
Result<WheelSource> read_wheel_source(std::string_view text);

// An op as DeepSpeed's op_builder defines it: the class members NAME and BUILD_VAR.
struct Op {
  std::string name = {};      // "async_io"
  std::string variable = {};  // "DS_BUILD_AIO"

  bool operator==(const Op&) const = default;
};
// Returns the ops of DeepSpeed 0.19. Other versions have a few more or less.
std::vector<Op> deepspeed_ops();
// Returns the ops that a file of an op_builder folder defines.
std::vector<Op> ops_in(std::string_view python_source);
// Returns the chosen ops, sorted, each once. given: "cpu_adam,aio": names, or variables without
// DS_BUILD_ in any case. The error for an unknown op lists all ops.
Result<std::vector<Op>> choose_ops(std::string_view given, const std::vector<Op>& known);

struct WheelPlan {
  WheelSource source = {};
  std::string content = {};  // digest of the source, or its version
  std::vector<Op> ops = {};
  PythonFacts python = {};
  Toolchain tools = {};
  std::vector<Arch> archs = {};         // empty: PyTorch has no CUDA, or nvcc is missing
  int level = 0;                        // as in cpu_level.h
  std::string cpu = {};                 // digest of this CPU's flags; only for kNative
  std::vector<std::string> given = {};  // "NAME=value" of the environment, where builds read NAME
  std::string ninja = {};               // path; empty: none
  int jobs = 1;
};

// Returns true if builds read a variable of this name.
bool concerns_builds(std::string_view name);
// Returns the "DS_BUILD_X=1" of the environment: further ops of the build, besides
// build_variables().
std::vector<std::string> ops_of_environment(const WheelPlan& plan);
// Returns the variables ("NAME=value") that the build gets over the environment.
std::vector<std::string> build_variables(const WheelPlan& plan);
// The cache key, as JSON and as its digest. Equal keys mean interchangeable wheels.
std::string key_text(const WheelPlan& plan);
std::string key_of_wheel(const WheelPlan& plan);
// Returns how many compilers may run at once. memory: bytes.
int build_jobs(std::int64_t cpus, std::int64_t memory);

}  // namespace lockstep::setup
