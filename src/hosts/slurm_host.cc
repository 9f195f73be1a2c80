#include "hosts/slurm_host.h"

#include "base/exit_codes.h"
#include "base/text.h"
#include "hosts/place.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::hosts {
namespace {

// The code of shells for a missing command.

Result<proc::ToolOutput> run_there(const HostPlace& place, const RunCommand& run,
                                   const std::vector<std::string>& argv) {
  CommandRequest request;
  request.hosts = {place};
  // The user's shell there may set variables that change the output.
  request.argv = slurm::command_for_tools(argv);
  request.input = CommandRequest::Input::none;
  request.output = CommandRequest::Output::keep;
  io::Loop loop;
  LOCKSTEP_TRY_ASSIGN(auto endings, run(loop, request));
  HostEnding& ending = endings.at(0);
  if (!ending.error.empty()) return fail(Errc::unavailable, ending.error);
  // Tell a host without Slurm from a failing program: the user named the wrong host then.
  if (ending.code == kExitNotFound)
    return fail(Errc::not_found, fmt::format("there is no {} on {}", argv[0], place.name));
  proc::ToolOutput said{.out = std::move(ending.out), .err = std::move(ending.err), .exit = {}};
  // The code of the ending is a shell's (128 + signal). proc::Exit keeps code and signal apart.
  said.exit.code = ending.signal != 0 ? 0 : ending.code;
  said.exit.signal = ending.signal;
  return said;
}

}  // namespace

slurm::RunTool slurm_tools(const HostPlace& place, const RunCommand& run) {
  if (place.here) return slurm::run_here;
  return [place, run](const std::vector<std::string>& argv) { return run_there(place, run, argv); };
}

Result<HostPlace> slurm_place(const Registry& registry, const std::string& where) {
  LOCKSTEP_TRY_ASSIGN(const auto places,
                      find_places(registry, where.empty() ? std::string(kHere) : where, {}, {}));
  if (places.size() > 1)
    return fail(Errc::invalid_input,
                fmt::format("{} must be a Slurm cluster or a login host (got {} nodes)", where,
                            places.size()),
                "name the login host, or a cluster added with --slurm");
  if (places.empty()) return HostPlace{.name = std::string(kHere), .target = {}, .here = true};
  return places.front();
}

}  // namespace lockstep::hosts
