// Makes errors from messages and errno.
#include "base/error.h"

#include <errno.h>
#include <string.h>

#include <cstdio>
#include <cstdlib>

namespace lockstep {

Error Error::within(std::string_view outer) && {
  message.insert(0, std::string(outer) + ": ");
  return std::move(*this);
}

Failure fail(Errc code, std::string message, std::string hint) {
  return Failure(Error{code, std::move(message), std::move(hint), 0});
}

namespace {
// By remedy: what the caller can do decides, not the subsystem of the errno.
Errc code_of(int sys_errno) {
  switch (sys_errno) {
    case ENOENT:
    case ENOTDIR:
    case ESRCH:
      return Errc::not_found;
    case EEXIST:
    case EADDRINUSE:
      return Errc::already_exists;
    case EACCES:
    case EPERM:
    case EROFS:
      return Errc::denied;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EDQUOT:
      return Errc::exhausted;
    case ETIMEDOUT:
      return Errc::timeout;
    case ECANCELED:
      return Errc::canceled;
    case EINVAL:
      return Errc::invalid_input;
    default:
      return Errc::unavailable;
  }
}
}  // namespace

std::string errno_text(int sys_errno) {
  // strerror() is not thread-safe and depends on the locale.
  const char* text = strerrordesc_np(sys_errno);
  return text != nullptr ? text : "error " + std::to_string(sys_errno);
}

Failure fail_sys(std::string_view what, int sys_errno) {
  return Failure(
      Error{code_of(sys_errno), std::string(what) + ": " + errno_text(sys_errno), {}, sys_errno});
}

void check_failed(const char* condition, const char* file, int line) {
  // Straight to stderr: independent of the log and its sink.
  std::fprintf(stderr, "lockstep: internal error at %s:%d: %s\n", file, line, condition);
  std::abort();
}

}  // namespace lockstep
