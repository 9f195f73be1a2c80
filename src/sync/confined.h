// Reads and changes files below one folder without following any link. So no link inside the tree
// can lead an operation out of the tree.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "sync/manifest.h"

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::sync {

class Confined {
 public:
  // root: a folder, or a link to a folder. Only the root itself may be a link.
  static Result<Confined> open(const std::string& root);

  enum class Way {
    look,  // not_found if a folder is missing, denied if something else is in its place
    make,  // make missing folders
  };
  // Returns a descriptor of the folder that holds the path's last part, valid until the next call.
  // The object keeps the folders of the last path open, so sorted paths cost one openat() each.
  Result<int> parent(std::string_view path, Way way = Way::look);
  // The same for a folder itself; "" is the root.
  Result<int> folder(std::string_view path, Way way = Way::look);

  // Returns what lstat() says. nullopt: nothing is there, or a part of the way is not a folder.
  Result<std::optional<struct stat>> look(std::string_view path);
  // Returns the manifest entry of a file or link. nullopt: any other type in `info.st_mode`.
  Result<std::optional<Entry>> entry(std::string_view path, const struct stat& info);

  // Returns true if a link at `path` with this target would lead out of the tree, or to git's own
  // files (is_of_git()), through the links that exist now. The walk never follows a link beyond the
  // tree. The present content of `path` itself is ignored.
  Result<bool> leads_out(std::string_view path, std::string_view target);

  // Returns the bytes on the root's file system that this user may still use.
  Result<std::uint64_t> free_bytes() const;

  // Removes a file or link, then each empty folder above.
  Status remove(std::string_view path);

 private:
  explicit Confined(io::Fd root) : root_(std::move(root)) {}
  struct Step {
    std::string name;
    io::Fd fd;
  };
  io::Fd root_;
  std::vector<Step> open_;  // from the root down
};

// Returns the part of the path after its last slash.
std::string_view last_part(std::string_view path);

}  // namespace lockstep::sync
