// Errors are values: Result<T> holds a T or an Error that says what was being done, with which
// value, what went wrong and what to do. Nothing here prints; one place in cli does.
#pragma once

#include <tl/expected.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

// A code says what the caller can do about the error, not where it came from.
enum class Errc {
  invalid_input,   // the user gave something wrong: fix the value
  not_found,       // a thing that must exist does not
  already_exists,  // a thing that must not exist does (a port taken, a file in the way)
  denied,          // the system refuses: permissions
  unavailable,     // a peer or resource is away: trying again can help
  timeout,         // waited as long as allowed
  canceled,        // somebody asked to stop
  corrupt,         // bytes from outside make no sense
  exhausted,       // out of memory, descriptors, disk
  internal,        // a bug in Lockstep
};

struct Error {
  Errc code = Errc::internal;
  std::string message;  // one line, lower case start, no trailing full stop
  std::string hint;     // optional: what to do, one line
  int sys = 0;          // the errno behind it, or 0

  // "outer: message", for callers that know more about what was being done.
  Error within(std::string_view outer) &&;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

using Failure = tl::unexpected<Error>;

// return fail(Errc::invalid_input, "…", "hint");
[[nodiscard]] Failure fail(Errc code, std::string message, std::string hint = {});

// An Error from errno: "what: strerror". The code follows the errno (ENOENT -> not_found, ...).
[[nodiscard]] Failure fail_sys(std::string_view what, int sys_errno);

// The text of an errno ("No such file or directory"). Unlike strerror() it is safe in threads.
std::string errno_text(int sys_errno);

// Prints where the check stands and aborts. For bugs only, never for input.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace lockstep

#define LOCKSTEP_CHECK(condition) \
  ((condition) ? void(0) : ::lockstep::check_failed(#condition, __FILE__, __LINE__))

// NOLINTBEGIN(bugprone-macro-parentheses): a type, name or declaration takes no parentheses.
#define LOCKSTEP_CONCAT_(a, b) a##b
#define LOCKSTEP_CONCAT(a, b) LOCKSTEP_CONCAT_(a, b)

// LOCKSTEP_TRY(status_expression);
#define LOCKSTEP_TRY(expr)                                            \
  do {                                                                \
    if (auto lockstep_try_ = (expr); !lockstep_try_)                  \
      return ::tl::make_unexpected(std::move(lockstep_try_).error()); \
  } while (false)

// LOCKSTEP_TRY_ASSIGN(auto value, result_expression);
#define LOCKSTEP_TRY_ASSIGN(target, expr) \
  LOCKSTEP_TRY_ASSIGN_(LOCKSTEP_CONCAT(lockstep_result_, __LINE__), target, expr)
#define LOCKSTEP_TRY_ASSIGN_(result, target, expr)                      \
  auto result = (expr);                                                 \
  if (!result) return ::tl::make_unexpected(std::move(result).error()); \
  target = std::move(*result)
// NOLINTEND(bugprone-macro-parentheses)
