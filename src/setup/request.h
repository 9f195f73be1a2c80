// A client's request to `lockstep host-setup`, and the answer: JSON between two binaries of the
// same build. Pure.
#pragma once

#include "base/error.h"
#include "setup/environment.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

struct SetupRequest {
  enum class Choice {
    project,  // the environment the project has, else a virtual environment
    venv,
    conda,
    system,
  };
  // The `place` that stands for the project's own environment.
  static constexpr std::string_view kOwn = "auto";

  std::string folder;  // the project's folder, absolute or relative to the home
  std::vector<std::string> specs;
  Choice choice = Choice::project;
  std::string place = {};   // folder of the venv; name or prefix of the conda environment
  std::string python = {};  // the interpreter to use; empty: python3
  bool force = false;       // skip no step
  bool use_uv = true;
  bool overlay = false;  // put wheels into overlays (overlay.h)
  // The wheels of the wheel: specs, in order. Their bytes follow the request line.
  struct File {
    std::string name;
    std::uint64_t size = 0;
    std::string sha256 = {};
  };
  std::vector<File> wheels = {};
};

struct StepAnswer {
  enum class State { done, unchanged, failed };
  std::string spec;
  State state = State::done;
  double seconds = 0;
};

struct SetupAnswer {
  int code = 0;            // 0; the exit code of the failed step's tool; 2 for bad input
  std::string error = {};  // one line
  std::string hint = {};
  std::vector<std::string> tail = {};  // the last lines of the tool that failed
  std::vector<StepAnswer> steps = {};
  Environment environment = {};
};

// Limits in bytes. A request is one line; the wheels follow.
inline constexpr std::size_t kLongestRequest = 4UL << 20;
inline constexpr std::uint64_t kLargestWheel = 512ULL << 20;
std::string print_request(const SetupRequest& request);
Result<SetupRequest> read_request(std::string_view line);

std::string print_answer(const SetupAnswer& answer);
Result<SetupAnswer> read_answer(std::string_view text);

std::string_view state_name(StepAnswer::State state);

}  // namespace lockstep::setup
