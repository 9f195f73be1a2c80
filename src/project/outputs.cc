#include "jobs/rented/outputs.h"

#include <fmt/core.h>

#include <filesystem>
#include <system_error>

namespace lockstep::jobs::rented {

Status bring_outputs(const hosts::HostPlace& from, const project::Project& project,
                     const std::vector<std::string>& paths, const project::SyncOptions& settings) {
  for (const std::string& path : paths) {
    LOCKSTEP_TRY_ASSIGN(const std::string below, project::path_in_project(project, path));
    LOCKSTEP_TRY_ASSIGN(const auto host, project::sync_back(from, project, below, settings));
    if (host.code != 0) return fail(Errc::unavailable, host.error, host.hint);
    settings.remark(fmt::format("{}: {} files, {} brought back", path, host.files,
                                project::size_text(host.bytes)));
  }
  return {};
}

Status send_outputs(const std::vector<hosts::HostPlace>& to, const project::Project& project,
                    const std::vector<std::string>& paths, project::SyncOptions settings) {
  settings.force = true;
  settings.everything = true;
  for (const std::string& path : paths) {
    LOCKSTEP_TRY_ASSIGN(const std::string below, project::path_in_project(project, path));
    const std::string source = project.root + "/" + below;
    std::error_code error;
    if (!std::filesystem::is_directory(source, error)) continue;
    LOCKSTEP_TRY_ASSIGN(const project::Project outputs, project::find_project(".", source));
    settings.destination = project.name + "/" + below;
    LOCKSTEP_TRY_ASSIGN(const auto report, project::sync_project(to, outputs, settings));
    for (const auto& host : report.hosts)
      if (host.code != 0) return fail(Errc::unavailable, host.error, host.hint);
  }
  return {};
}

}  // namespace lockstep::jobs::rented
