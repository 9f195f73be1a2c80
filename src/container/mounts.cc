#include "container/mounts.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::container {
namespace {

Failure malformed(std::string_view item) {
  return fail(
      Errc::invalid_input,
      fmt::format("--container-mounts must be a list of SRC:DST[:ro], got '{}'", printable(item)),
      "as --container-mounts /data:/data:ro,out:/results; DST is an absolute path");
}

Result<Mount> read_mount(const std::string& item, const std::string& folder) {
  const std::vector<std::string> parts = split(item, ':');
  if (parts.size() < 2 || parts.size() > 3 || parts[0].empty() || !parts[1].starts_with('/') ||
      parts[1] == "/")
    return malformed(item);
  if (parts.size() == 3 && parts[2] != "ro" && parts[2] != "rw") return malformed(item);
  Mount mount{.from = parts[0].starts_with('/') ? parts[0] : folder + "/" + parts[0],
              .to = parts[1],
              .read_only = parts.size() == 3 && parts[2] == "ro"};
  while (mount.to.size() > 1 && mount.to.ends_with('/'))
    mount.to.pop_back();
  return mount;
}

bool is_below(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

}  // namespace

Result<std::vector<Mount>> read_mounts(std::string_view text, const std::string& folder) {
  std::vector<Mount> mounts;
  for (const std::string& item : split(text, ',')) {
    LOCKSTEP_TRY_ASSIGN(Mount mount, read_mount(item, folder));
    if (std::any_of(mounts.begin(), mounts.end(),
                    [&mount](const Mount& other) { return other.to == mount.to; }))
      return fail(Errc::invalid_input,
                  fmt::format("--container-mounts names {} twice", printable(mount.to)));
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

Result<std::vector<Mount>> all_mounts(const std::vector<Mount>& wanted,
                                      const std::vector<std::string>& folders) {
  std::vector<Mount> all = wanted;
  for (const std::string& folder : folders) {
    // The root would hide the image.
    if (folder.empty() || folder == "/") continue;
    const auto covers = [&folder](const Mount& mount) {
      return mount.to == folder ||
             (mount.from == mount.to && !mount.read_only && is_below(folder, mount.to));
    };
    if (std::none_of(all.begin(), all.end(), covers))
      all.push_back({.from = folder, .to = folder, .read_only = false});
  }
  const std::vector<Mount> before = all;
  std::erase_if(all, [&](const Mount& mount) {
    const bool own = std::find(wanted.begin(), wanted.end(), mount) == wanted.end();
    return own && std::any_of(before.begin(), before.end(), [&](const Mount& other) {
             return other.from == other.to && !other.read_only && is_below(mount.to, other.to);
           });
  });
  std::sort(all.begin(), all.end(), [](const Mount& a, const Mount& b) { return a.to < b.to; });
  for (const Mount& mount : all)
    for (const std::string* path : {&mount.from, &mount.to})
      if (path->find_first_of(":,") != std::string::npos)
        return fail(
            Errc::invalid_input,
            fmt::format("a container cannot have {}: the path has ':' or ','", printable(*path)));
  return all;
}

}  // namespace lockstep::container
