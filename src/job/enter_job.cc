#include "job/enter_job.h"

#include "base/text.h"
#include "container/join.h"
#include "io/fd.h"
#include "proc/exec_pointers.h"
#include "proc/find_in_path.h"
#include "proc/spawn.h"
#include "proc/tool_output.h"
#include "status/job_socket.h"

#include <fmt/core.h>

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace lockstep::job {
namespace {

constexpr std::string_view kPlainRun = "pid-";
constexpr std::size_t kMostEnvironment = 16UL << 20;

std::string_view name_of(std::string_view entry) {
  return entry.substr(0, entry.find('='));
}

Result<std::optional<status::AgentProcess>> agent_of(const std::string& job) {
  if (!job.starts_with(kPlainRun)) {
    const auto named = status::read_agents_word(job);
    return status::find_agent({.job = named.job}, named.variable);
  }
  const auto pid = parse_int(job.substr(kPlainRun.size()));
  if (!pid || *pid <= 0 || *pid > 1 << 30) return std::nullopt;
  return status::find_agent({.pid = static_cast<pid_t>(*pid), .job = {}});
}

// The codes of a shell: only a missing program is not found.
Error cannot_run(Error error) {
  error.code = error.sys == ENOENT ? Errc::not_found : Errc::denied;
  return error;
}

}  // namespace

Result<EnterRequest> read_enter(const std::vector<std::string>& words) {
  constexpr std::size_t kBefore = 3;
  if (words.size() <= kBefore || words[0].empty() || words[kBefore].empty())
    return fail(Errc::invalid_input, "a job is entered with JOB FOLDER NAME,... COMMAND...");
  EnterRequest request{.job = words[0], .folder = words[1], .named = {}, .command = {}};
  if (!words[2].empty()) request.named = split(words[2], ',');
  request.command.assign(words.begin() + kBefore, words.end());
  return request;
}

std::vector<std::string> enter_words(const EnterRequest& request) {
  std::vector<std::string> words = {request.job, request.folder, join(request.named, ",")};
  words.insert(words.end(), request.command.begin(), request.command.end());
  return words;
}

std::vector<std::string> environment_inside(std::string_view agent,
                                            const std::vector<std::string>& own,
                                            const std::vector<std::string>& named) {
  const auto is_named = [&named](std::string_view entry) {
    return std::find(named.begin(), named.end(), name_of(entry)) != named.end();
  };
  std::vector<std::string> entries;
  for (std::string& entry : split(agent, '\0'))
    if (!entry.empty() && !entry.starts_with("LOCKSTEP_") && !is_named(entry))
      entries.push_back(std::move(entry));
  for (std::string_view entry : own) {
    if (!entry.starts_with(kEnterPrefix)) continue;
    entry.remove_prefix(kEnterPrefix.size());
    if (is_named(entry)) entries.emplace_back(entry);
  }
  return entries;
}

Error enter_job(const EnterRequest& request) {
  const auto away = [&request] {
    return Error{Errc::unavailable,
                 fmt::format("no rank of job {} runs here", printable(request.job)),
                 {},
                 0};
  };
  const auto found = agent_of(request.job);
  if (!found) return found.error();
  if (!*found) return away();
  const status::AgentProcess& agent = **found;
  // Read this before join(): inside the container, /proc has other processes.
  const auto theirs = io::read_file(fmt::format("/proc/{}/environ", agent.pid), kMostEnvironment);
  if (!theirs) return theirs.error().code == Errc::not_found ? away() : theirs.error();
  std::vector<std::string> environment =
      environment_inside(*theirs, proc::own_environment(), request.named);
  if (const Status joined = container::join(agent.pid, [&agent] { return agent.lives(); }); !joined)
    return joined.error();
  if (!request.folder.empty() && chdir(request.folder.c_str()) != 0)
    return {Errc::denied,
            fmt::format("enter the folder {}: {}", printable(request.folder), errno_text(errno)),
            {},
            0};
  std::error_code failed;
  if (const std::string here = std::filesystem::current_path(failed); !failed) {
    std::erase_if(environment, [](const std::string& entry) { return name_of(entry) == "PWD"; });
    environment.push_back("PWD=" + here);
  }
  // A container has its own programs, so search after join(), and in the job's PATH.
  const std::string path = proc::path_in(environment);
  const auto program = proc::find_executable(request.command.front(), path);
  if (!program) {
    if (program.error().code != Errc::not_found) return cannot_run(program.error());
    return {Errc::not_found,
            fmt::format("no executable {} is found; PATH is {}", printable(request.command.front()),
                        printable(path)),
            {},
            0};
  }
  execve(program->c_str(), proc::exec_pointers(request.command).data(),
         proc::exec_pointers(environment).data());
  return cannot_run(fail_sys("run " + printable(*program), errno).value());
}

}  // namespace lockstep::job
