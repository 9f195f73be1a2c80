// Turns a sync report into an exit code and words for people.
#include "project/sync_tree.h"

#include <fmt/core.h>

#include <cstddef>

namespace lockstep::project {

int code_of(const SyncReport& report) {
  for (const HostSync& host : report.hosts)
    if (host.code != 0) return host.code;
  return 0;
}

std::string size_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  // 999.95 would be printed as "1000.0".
  for (; value >= 999.95 && unit < 3; ++unit)
    value /= 1000;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string summary_of(const HostSync& host, bool dry_run) {
  if (host.files == 0 && host.removed == 0) return "nothing to do";
  std::string text = fmt::format("{} {}, {} {}", host.files, host.files == 1 ? "file" : "files",
                                 size_text(host.bytes), dry_run ? "to send" : "sent");
  if (!host.from.empty()) text += " by " + host.from;
  if (host.removed != 0)
    text += fmt::format(", {} {}", host.removed, dry_run ? "to remove" : "removed");
  return text;
}

}  // namespace lockstep::project
