#include "slurm/pyxis_image.h"

#include <algorithm>

namespace lockstep::slurm {

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

}  // namespace lockstep::slurm
