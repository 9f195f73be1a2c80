// What a wheel is to be built of, for what, and how: the request of `lockstep wheel`, DeepSpeed's
// ops and their variables, the build's variables, and the key under which it is kept. Pure.
#pragma once

#include "base/error.h"
#include "setup/python_facts.h"
#include "setup/toolchain.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

// deepspeed, deepspeed==0.16.5, deepspeed@DIR, deepspeed@URL, or a folder by itself.
struct WheelSource {
  enum class Kind { folder, index, url };
  Kind kind = Kind::folder;
  std::string text = {};     // as it was given
  std::string name = {};     // of the package; folder without one: empty
  std::string version = {};  // index: behind ==; empty: the newest
  std::string place = {};    // folder: its path as given; url: the URL

  bool is_deepspeed() const { return name == "deepspeed"; }
};
Result<WheelSource> read_wheel_source(std::string_view text);

// An op as DeepSpeed's op_builder has it: class members NAME and BUILD_VAR.
struct Op {
  std::string name = {};      // "async_io"
  std::string variable = {};  // "DS_BUILD_AIO"

  bool operator==(const Op&) const = default;
};
// Of DeepSpeed 0.19; other versions have a few more or less.
std::vector<Op> deepspeed_ops();
// Those that a file of an op_builder folder defines.
std::vector<Op> ops_in(std::string_view python_source);
// given: "cpu_adam,aio": names, or variables without DS_BUILD_ and in any case. Of an op that is
// not known the error lists all. Sorted, each once.
Result<std::vector<Op>> choose_ops(std::string_view given, const std::vector<Op>& known);

struct WheelPlan {
  WheelSource source = {};
  std::string content = {};  // digest of the source, or the version that stands for it
  std::vector<Op> ops = {};
  PythonFacts python = {};
  Toolchain tools = {};
  std::vector<Arch> archs = {};         // empty: PyTorch has no CUDA, or there is no nvcc
  int level = 0;                        // of cpu_level.h
  std::string cpu = {};                 // what kNative stands for here
  std::vector<std::string> given = {};  // "NAME=value" of the environment that builds look at
  std::string ninja = {};               // a path; empty: none
  int jobs = 1;
};

// Whether builds look at a variable of this name.
bool concerns_builds(std::string_view name);
// Returns the "DS_BUILD_X=1" of the environment: the build adds these ops to build_variables().
std::vector<std::string> ops_of_environment(const WheelPlan& plan);
// "NAME=value" that the build gets over the environment.
std::vector<std::string> build_variables(const WheelPlan& plan);
// The same for two builds whose wheels are as good as each other, as JSON and as its digest.
std::string key_text(const WheelPlan& plan);
std::string key_of_wheel(const WheelPlan& plan);
// How many compilers fit side by side.
int build_jobs(std::int64_t cpus, std::int64_t memory);

}  // namespace lockstep::setup
