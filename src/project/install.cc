#include "project/install.h"

#include "base/exit_codes.h"
#include "base/text.h"
#include "io/digest.h"
#include "io/fd.h"
#include "io/own_folders.h"

#include <fmt/core.h>

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace lockstep::project {
namespace {

// The limit for all wheels together, in bytes: the request is held in memory and sent as a whole.
constexpr std::uint64_t kMostWheels = 1ULL << 30;

// Returns the request line and the bytes of the wheels after the line. All hosts get the same
// bytes.
Result<std::string> request_of(const Project& project, const InstallOptions& options,
                               const std::vector<setup::Spec>& specs) {
  setup::SetupRequest request{.folder = project.name,
                              .specs = options.specs,
                              .choice = options.choice,
                              .place = options.place,
                              .python = options.python,
                              .force = options.force,
                              .use_uv = options.use_uv,
                              .overlay = options.overlay};
  std::string bytes;
  for (const setup::Spec& each : specs) {
    if (each.kind != setup::Spec::Kind::wheel) continue;
    std::string path = each.subject;
    if (path.starts_with("~/")) path = io::home_folder() + path.substr(1);
    if (!path.starts_with('/')) path.insert(0, project.root + "/");
    struct stat info {};
    if (stat(path.c_str(), &info) != 0)
      return fail(Errc::invalid_input, fmt::format("'{}': there is no {}", each.text, path));
    // Check before the read: a FIFO or device would block, or never end.
    if (!S_ISREG(info.st_mode) || static_cast<std::uint64_t>(info.st_size) > setup::kLargestWheel)
      return fail(Errc::invalid_input,
                  fmt::format("'{}' must be a file of at most 512 MiB", printable(path)),
                  "copy the wheel to the hosts, and give pip:/path/on/the/hosts");
    LOCKSTEP_TRY_ASSIGN(const std::string wheel, io::read_file(path, setup::kLargestWheel));
    // The host checks the digest. A file that changes between the two reads fails there and is not
    // installed.
    LOCKSTEP_TRY_ASSIGN(std::string sha256, io::sha256_of_file(path));
    request.wheels.push_back({setup::base_name(path), wheel.size(), std::move(sha256)});
    bytes += wheel;
    if (bytes.size() > kMostWheels)
      return fail(Errc::invalid_input, "the wheels have more than 1 GiB together");
  }
  const std::string line = setup::print_request(request) + "\n";
  // The host refuses longer request lines.
  if (line.size() > setup::kLongestRequest)
    return fail(Errc::invalid_input, "the specs have more than 4 MiB together");
  return line + bytes;
}

HostInstall install_of(const hosts::HostPlace& host, const hosts::HostEnding& ending) {
  HostInstall install{.name = host.name, .code = ending.code, .error = ending.error};
  if (!ending.error.empty()) return install;
  auto answer = setup::read_answer(ending.out);
  // host-setup was killed, or the host went down. Exit code 0 without an answer must not pass for
  // success.
  if (!answer) {
    install.code = ending.code == 0 ? kExitNotReached : ending.code;
    install.error = fmt::format("{}: the install was cut off", host.name);
    install.hint = "repeat the install: finished steps are not repeated";
    return install;
  }
  install.answer = std::move(*answer);
  // The answer has the code of the failed tool. The code of host-setup itself says less.
  install.code = install.answer.code;
  if (!install.answer.error.empty())
    install.error = fmt::format("{}: {}", host.name, printable(install.answer.error, 1000));
  install.hint = printable(install.answer.hint, 1000);
  return install;
}

}  // namespace

bool needs_files(const std::vector<setup::Spec>& specs) {
  return std::any_of(specs.begin(), specs.end(), setup::is_in_project);
}

Result<std::vector<HostInstall>> install_packages(const std::vector<hosts::HostPlace>& hosts,
                                                  const Project& project,
                                                  const InstallOptions& options) {
  // Parse here first: a misspelled spec then fails before any host is asked.
  LOCKSTEP_TRY_ASSIGN(const auto specs, setup::parse_specs(options.specs));
  LOCKSTEP_TRY_ASSIGN(std::string given, request_of(project, options, specs));
  hosts::CommandRequest request;
  request.hosts = hosts;
  request.own_binary = true;
  request.argv = {"host-setup"};
  request.input = hosts::CommandRequest::Input::given;
  request.given.push_back(std::move(given));
  // stdout is the answer, for this program. stderr is the output of pip and conda, for people.
  request.output = hosts::CommandRequest::Output::keep_out;
  request.on_errors = options.on_words;
  io::Loop loop;
  LOCKSTEP_TRY_ASSIGN(const auto endings, options.run_command(loop, request));
  std::vector<HostInstall> installs;
  for (std::size_t i = 0; i < hosts.size(); ++i)
    installs.push_back(install_of(hosts[i], endings[i]));
  return installs;
}

int code_of(const std::vector<HostInstall>& installs) {
  for (const HostInstall& each : installs)
    if (each.code != 0) return each.code;
  return 0;
}

std::string summary_of(const HostInstall& install) {
  std::size_t done = 0;
  std::size_t unchanged = 0;
  for (const setup::StepAnswer& each : install.answer.steps) {
    done += each.state == setup::StepAnswer::State::done ? 1 : 0;
    unchanged += each.state == setup::StepAnswer::State::unchanged ? 1 : 0;
  }
  std::string text = fmt::format("{} done, {} unchanged", done, unchanged);
  const setup::Environment& environment = install.answer.environment;
  const std::string& place = environment.prefix.empty() ? environment.python : environment.prefix;
  if (!place.empty()) text += "; " + printable(place, 1000);
  return text;
}

}  // namespace lockstep::project
