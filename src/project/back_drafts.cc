#include "project/back_drafts.h"

#include "project/tree_lock.h"
#include "sync/piece_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string_view>
#include <utility>

namespace lockstep::project {

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

namespace {

// Returns whether a process is bringing files back into the folder or a folder above. The lock is
// on the root of that process's project, which may be any folder above.
bool is_under_way(std::string folder) {
  for (; !folder.empty(); folder = folder_of(folder))
    if (TreeLocks::is_brought_back(folder)) return true;
  return TreeLocks::is_brought_back("/");
}

}  // namespace

void drop_back_drafts(const std::string& root, const std::vector<std::string>& drafts) {
  if (drafts.empty()) return;
  auto tree = sync::Confined::open(root);
  if (!tree) return;
  std::set<std::string> folders;
  for (const std::string& draft : drafts) {
    const std::string below = folder_of(draft);
    std::string folder = root;
    // Ask per folder, not once for the root: a project inside this one may be the project that a
    // process brings files to.
    if (!below.empty()) folder.append("/").append(below);
    if (!is_under_way(std::move(folder))) folders.insert(below);
  }
  drop_drafts_in(*tree, folders);
}

void drop_drafts_in(sync::Confined& tree, const std::set<std::string>& folders) {
  const std::string prefix = sync::draft_of("");
  for (const std::string& folder : folders) {
    const auto fd = tree.folder(folder);
    // tree.folder() returns an O_PATH descriptor, which cannot list the folder.
    const int readable = fd ? openat(*fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    const std::unique_ptr<DIR, int (*)(DIR*)> listing(readable < 0 ? nullptr : fdopendir(readable),
                                                      closedir);
    if (!listing) continue;
    while (const dirent* found = readdir(listing.get()))
      if (std::string_view(found->d_name).starts_with(prefix)) unlinkat(readable, found->d_name, 0);
  }
}

}  // namespace lockstep::project
