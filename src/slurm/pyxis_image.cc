#include "slurm/pyxis_image.h"

#include "base/text.h"
#include "base/word_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

namespace lockstep::slurm {
namespace {

// pyxis takes SRC:DST[:FLAG+FLAG...], or SRC for the same path on both sides. nullopt: `lockstep
// run` has nothing like it.
std::optional<std::string> mounts_of_pyxis(std::string_view value) {
  std::vector<std::string> mounts;
  for (const std::string& item : split(value, ',')) {
    const auto parts = split(item, ':');
    const std::string& to = parts.size() == 1 ? parts[0] : parts[1];
    if (parts.size() > 3 || parts[0].empty() || !to.starts_with('/') || to == "/")
      return std::nullopt;
    if (parts.size() == 3 && !is_one_of(parts[2], {"ro", "rw"})) return std::nullopt;
    mounts.push_back(parts.size() == 1 ? fmt::format("{}:{}", to, to) : item);
  }
  return join(mounts, ",");
}

}  // namespace

std::string image_of_pyxis(std::string_view value) {
  for (const std::string_view own : {"dockerd://", "podman://"})
    if (value.starts_with(own)) return std::string(value.substr(own.size()));
  constexpr std::string_view kRegistry = "docker://";
  const bool is_path = value.starts_with('/') || value.starts_with("./") ||
                       value.starts_with("../") || value.ends_with(".sqsh");
  if (is_path && !value.starts_with(kRegistry)) return std::string(value);
  if (value.starts_with(kRegistry)) value.remove_prefix(kRegistry.size());
  // The user's name for the registry is left to the credentials of the node's runtime.
  if (const std::size_t end = value.find('#'); end != value.npos)
    if (const std::size_t user = value.rfind('@', end); user != value.npos)
      value.remove_prefix(user + 1);
  std::string name(value);
  // enroot ends the registry's name with '#', since a name may begin with a user's name.
  std::replace(name.begin(), name.end(), '#', '/');
  return std::string(kRegistry) + name;
}

bool is_always_so(std::string_view name) {
  return is_one_of(
      name, {"no-container-mount-home", "no-container-remap-root", "no-container-entrypoint"});
}

bool is_about_container(std::string_view name) {
  return name.starts_with("container") || name.starts_with("no-container");
}

SrunContainer container_of_srun(std::span<const Setting> settings) {
  SrunContainer container;
  std::string mounts;
  bool has_image = false;
  bool has_folder = false;
  for (const Setting& each : settings) {
    if (!is_about_container(each.name)) continue;
    if (each.name == "container-image") {
      container.run.push_back("--container=" + image_of_pyxis(each.value));
      has_image = true;
    } else if (each.name == "container-mounts") {
      const auto known = mounts_of_pyxis(each.value);
      if (!known)
        return {.why = fmt::format("srun --container-mounts={} has flags of pyxis alone",
                                   printable(each.value, 100))};
      mounts += (mounts.empty() ? "" : ",") + *known;
    } else if (is_one_of(each.name, {"container-workdir", "container-env"})) {
      container.run.push_back(fmt::format("--{}={}", each.name, each.value));
      has_folder = has_folder || each.name == "container-workdir";
    } else if (!is_always_so(each.name)) {
      return {.why = fmt::format("srun --{} is given", each.name)};
    }
  }
  if (!mounts.empty()) container.run.push_back("--container-mounts=" + mounts);
  // A container may come from a variable of pyxis, or from the job's own.
  if (!has_image && !container.run.empty())
    return {.why = "srun has options of a container, but no --container-image"};
  if (has_image && !has_folder)
    return {.why =
                "srun --container-image without --container-workdir starts in the image's own "
                "folder"};
  return container;
}

}  // namespace lockstep::slurm
