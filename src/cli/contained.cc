#include "cli/contained.h"

#include "container/enter.h"
#include "container/inside.h"

#include <filesystem>
#include <system_error>
#include <utility>

namespace lockstep::cli {
namespace {

Contained failed(Error error, ExitCode code) {
  const ExitCode really = code_of(error, always(code));
  return {.code = really, .error = std::move(error)};
}

// Returns the first of the options that mean nothing without --container.
const char* lone_option(const launch::RawOptions& raw) {
  return raw.container_mounts    ? "--container-mounts"
         : raw.container_workdir ? "--container-workdir"
         : raw.container_env     ? "--container-env"
                                 : nullptr;
}

// Returns the folders of the log, report and event files, each by the user's path and by the path
// behind its links: the container needs both.
std::vector<std::string> job_folders(const launch::RawOptions& raw) {
  namespace fs = std::filesystem;
  std::vector<std::string> folders;
  const auto add = [&folders](const fs::path& folder) {
    std::error_code failed;
    const fs::path whole = fs::absolute(folder, failed);
    for (std::string path : {whole.lexically_normal(), fs::weakly_canonical(whole, failed)}) {
      while (path.size() > 1 && path.ends_with('/'))
        path.pop_back();
      if (path.starts_with('/') && !path.starts_with("/dev")) folders.push_back(path);
    }
  };
  if (raw.log_dir && !raw.log_dir->empty()) add(*raw.log_dir);
  for (const auto& file : {raw.report, raw.events})
    if (file) add(fs::absolute(*file).parent_path());
  return folders;
}

Contained enter_container(const launch::RawOptions& raw, const std::vector<std::string>& words) {
  const auto plan = container::make_plan({.image = *raw.container,
                                          .mounts = raw.container_mounts.value_or(""),
                                          .workdir = raw.container_workdir.value_or(""),
                                          .variables = raw.container_env.value_or(""),
                                          .folders = job_folders(raw)});
  if (!plan) return failed(plan.error(), ExitCode::failed);
  const auto chosen = container::choose_here(*plan);
  if (!chosen) return failed(chosen.error(), ExitCode::not_found);
  const auto code = container::enter(*plan, *chosen, words);
  if (code) return {.code = passed_on(*code), .error = {}};
  const bool no_container = code.error().code == Errc::denied;
  return failed(code.error(), no_container ? ExitCode::cannot_run : ExitCode::failed);
}

}  // namespace

Contained run_contained(launch::RawOptions& raw, const std::vector<std::string>& words) {
  if (!raw.container) {
    const char* lone = lone_option(raw);
    if (lone == nullptr) return {};
    return failed({Errc::invalid_input, std::string(lone) + " needs --container", {}, 0},
                  ExitCode::failed);
  }
  if (!container::is_inside()) return enter_container(raw, words);
  auto inside = container::hold_on();
  if (!inside) return failed(inside.error(), ExitCode::failed);
  raw.container_runtime = std::move(inside->runtime);
  raw.container_runtime_why = std::move(inside->why);
  return {};
}

}  // namespace lockstep::cli
