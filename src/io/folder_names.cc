#include "io/folder_names.h"

#include <dirent.h>

#include <memory>
#include <string_view>

namespace lockstep::io {

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  // std::filesystem makes a path of each entry, which takes ten times as long.
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(folder.c_str()), closedir);
  if (!open) return names;
  while (const dirent* entry = readdir(open.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

}  // namespace lockstep::io
