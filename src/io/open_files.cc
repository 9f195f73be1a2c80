// Compares the hard limit of open files with the need.
#include "io/open_files.h"

#include <fmt/core.h>

#include <sys/resource.h>

#include <algorithm>

namespace lockstep::io {

Status check_open_files(std::size_t needed) {
  constexpr std::size_t kLeastAdvice = 1024;
  rlimit limit{};
  // The hard limit counts: raise_open_files_limit() raises the soft one.
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max >= needed) return {};
  return fail(Errc::exhausted,
              fmt::format("the limit of open files is {}, and at least {} are needed",
                          limit.rlim_max, needed),
              fmt::format("raise it: ulimit -n {}", std::max(needed, kLeastAdvice)));
}

}  // namespace lockstep::io
