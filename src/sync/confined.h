// Looks at and changes what lies below one folder. No link on the way is followed, so nothing that
// somebody puts into the tree leads out of it.
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
  // root: a folder, or a link to one.
  static Result<Confined> open(const std::string& root);

  enum class Way {
    look,  // not_found where a folder is missing; denied where something else is in its place
    make,  // missing folders are made
  };
  // The open folder of a path's last part, valid until the next call. Fast for paths in order.
  Result<int> parent(std::string_view path, Way way = Way::look);
  // "" for the root.
  Result<int> folder(std::string_view path, Way way = Way::look);

  // What is there: nullopt: nothing, also where a folder on the way is none.
  Result<std::optional<struct stat>> look(std::string_view path);
  // A file or link; nullopt for anything else that st_mode says.
  Result<std::optional<Entry>> entry(std::string_view path, const struct stat& info);

  // Whether the kernel, following a link at `path` with this target, would leave the tree or come
  // to what is_of_git(), through links that are there now. No link is followed beyond the tree. A
  // link at `path` itself has no say.
  Result<bool> leads_out(std::string_view path, std::string_view target);

  // Free bytes of the root's file system, as far as this user may use them.
  Result<std::uint64_t> free_bytes() const;

  // Removes a file or link, and the folders above it that are empty then.
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

std::string_view last_part(std::string_view path);

}  // namespace lockstep::sync
