#include "io/replace_file.h"

#include "base/id.h"
#include "io/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

namespace lockstep::io {
namespace {

constexpr std::size_t kRandom = 12;  // letters: nobody can guess the name and plant a link there

Status write_with(const std::string& path, int flags, std::string_view bytes) {
  const Fd fd(open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | flags, 0644));
  if (!fd) return fail_sys("open " + path, errno);
  return write_all(fd.get(), bytes, path);
}

Status by_draft(const std::string& path, std::string_view bytes) {
  const std::string draft = path + "." + random_suffix(kRandom) + ".tmp";
  Status written = write_with(draft, O_CREAT | O_EXCL, bytes);
  if (!written && written.error().sys == EEXIST) return written;  // it is not our file
  if (written && rename(draft.c_str(), path.c_str()) != 0)
    written = fail_sys("replace " + path, errno);
  if (!written) unlink(draft.c_str());
  return written;
}

}  // namespace

Status replace_file(const std::string& path, std::string_view bytes) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return write_file(path, bytes);
  const Status replaced = by_draft(path, bytes);
  if (!replaced && write_with(path, O_TRUNC, bytes)) return {};
  return replaced;
}

}  // namespace lockstep::io
