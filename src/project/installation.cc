#include "project/installation.h"

#include "base/id.h"
#include "base/text.h"
#include "io/fd.h"
#include "io/own_folders.h"

#include <unistd.h>

namespace lockstep::project {
namespace {

constexpr std::size_t kIdBytes = 36;  // of a UUID

// Returns "" for a missing or damaged file.
std::string read_id(const std::string& path) {
  const auto text = io::read_file(path, kIdBytes + 1);
  if (!text) return {};
  const std::string id(strip(*text));
  return id.size() == kIdBytes && printable(id) == id ? id : "";
}

}  // namespace

std::string installation_id() {
  const std::string path = io::state_folder() + "/sync-id";
  if (std::string id = read_id(path); !id.empty()) return id;
  if (!io::make_folders(io::state_folder())) return {};
  // Two processes may come here at once. link() replaces nothing, so both end up with the id of the
  // first.
  const std::string draft = path + "." + random_suffix(12);
  if (io::write_file(draft, random_uuid4() + "\n") && ::link(draft.c_str(), path.c_str()) != 0 &&
      read_id(path).empty())
    // The file system has no hard links, or the file is damaged.
    (void)rename(draft.c_str(), path.c_str());
  unlink(draft.c_str());
  // Read back: another process may have been first.
  return read_id(path);
}

}  // namespace lockstep::project
