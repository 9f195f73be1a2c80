// What a client asks of `lockstep host-setup` on a host, and what that answers: JSON, between two
// of the same build. Pure.
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
    project,  // the project's own: what it has, else a virtual environment
    venv,
    conda,
    system,
  };
  // "auto" as the place of a venv or a conda environment: the project's own.
  static constexpr std::string_view kOwn = "auto";

  std::string folder;  // the project's, relative to the home or absolute
  std::vector<std::string> specs;
  Choice choice = Choice::project;
  std::string place = {};   // of the venv; name or prefix of the conda environment
  std::string python = {};  // the interpreter to use; empty: python3
  bool force = false;       // no step is skipped
  bool use_uv = true;
  bool overlay = false;  // wheels get folders of their own, in front on the path (overlay.h)
  // The wheels of the wheel: specs, in their order; their bytes stand behind the request.
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
  int code = 0;            // 0, the failed step's, or 2 for bad input
  std::string error = {};  // one line
  std::string hint = {};
  std::vector<std::string> tail = {};  // the last lines of the tool that failed
  std::vector<StepAnswer> steps = {};
  Environment environment = {};
};

// A request is one line; what is sent with it follows.
inline constexpr std::size_t kLongestRequest = 4UL << 20;
inline constexpr std::uint64_t kLargestWheel = 512ULL << 20;
std::string print_request(const SetupRequest& request);
Result<SetupRequest> read_request(std::string_view line);

std::string print_answer(const SetupAnswer& answer);
Result<SetupAnswer> read_answer(std::string_view text);

std::string_view state_name(StepAnswer::State state);

}  // namespace lockstep::setup
