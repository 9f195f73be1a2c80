#include "project/outputs.h"

#include "proc/signals.h"

#include <fmt/core.h>

#include <filesystem>
#include <system_error>
#include <utility>

namespace lockstep::project {
namespace {

Status bring_from(const hosts::HostPlace& from, const Project& project, const std::string& path,
                  const SyncOptions& settings) {
  LOCKSTEP_TRY_ASSIGN(const std::string below, path_in_project(project, path));
  LOCKSTEP_TRY_ASSIGN(const auto host, sync_back(from, project, below, settings));
  if (const int signal = host.code - 128; proc::is_stop_signal(signal))
    return Failure(Error{Errc::canceled, host.error, host.hint, signal});
  if (host.code != 0)
    return fail(host.absent ? Errc::not_found : Errc::unavailable, host.error, host.hint);
  settings.remark(fmt::format("{}: {} file{}, {} brought back", path, host.files,
                              host.files == 1 ? "" : "s", size_text(host.bytes)));
  return {};
}

// A host that ran no row of a sweep has none of its outputs, so one host with the path is enough.
Status bring_path(const std::vector<hosts::HostPlace>& from, const Project& project,
                  const std::string& path, const SyncOptions& settings) {
  bool came = false;
  Status absent;
  Status failed;
  for (const hosts::HostPlace& host : from) {
    SyncOptions how = settings;
    // Lines about the same path on several hosts would look alike.
    if (from.size() > 1)
      how.remark = [&](const std::string& text) { settings.remark(host.name + ": " + text); };
    Status brought = bring_from(host, project, path, how);
    if (!brought && brought.error().code == Errc::canceled) return brought;
    if (brought) {
      came = true;
    } else if (brought.error().code == Errc::not_found) {
      absent = std::move(brought);
    } else {
      if (!failed) settings.remark(failed.error().message);
      failed = std::move(brought);
    }
  }
  return failed && !came ? absent : failed;
}

}  // namespace

Status bring_outputs(const std::vector<hosts::HostPlace>& from, const Project& project,
                     const std::vector<std::string>& paths, const SyncOptions& settings) {
  Status all;
  for (const std::string& path : paths) {
    Status brought = bring_path(from, project, path, settings);
    if (brought) continue;
    if (!all) settings.remark(all.error().message);
    all = std::move(brought);
    // A signal ends the whole.
    if (all.error().code == Errc::canceled) break;
  }
  return all;
}

Status send_outputs(const std::vector<hosts::HostPlace>& to, const Project& project,
                    const std::vector<std::string>& paths, SyncOptions settings) {
  settings.force = true;
  settings.everything = true;
  for (const std::string& path : paths) {
    LOCKSTEP_TRY_ASSIGN(const std::string below, path_in_project(project, path));
    const std::string source = project.root + "/" + below;
    std::error_code error;
    if (!std::filesystem::is_directory(source, error)) continue;
    LOCKSTEP_TRY_ASSIGN(const Project outputs, find_project(".", source));
    settings.destination = project.name + "/" + below;
    LOCKSTEP_TRY_ASSIGN(const auto report, sync_project(to, outputs, settings));
    for (const auto& host : report.hosts)
      if (host.code != 0) return fail(Errc::unavailable, host.error, host.hint);
  }
  return {};
}

}  // namespace lockstep::project
