// Errors as values. Result<T> holds a T, or an Error that says what was being done, with which
// value, what went wrong, and what to do. Nothing here prints: a single place in cli does.
#pragma once

#include <tl/expected.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

// The code says what the caller can do about the error, not where the error came from.
enum class Errc {
  invalid_input,   // the user's input is wrong: fix the value
  not_found,       // a thing that must exist does not
  already_exists,  // a thing that must not exist does (a taken port, a file in the way)
  denied,          // the system refuses: missing permissions
  unavailable,     // a peer or resource is away: a retry may help
  timeout,         // the allowed time is over
  canceled,        // a request to stop arrived
  corrupt,         // bytes from outside are invalid
  exhausted,       // out of memory, descriptors, disk
  internal,        // a bug in Lockstep
};

struct Error {
  Errc code = Errc::internal;
  std::string message;  // one line, lower case start, no trailing full stop
  std::string hint;     // optional advice to the user, one line
  int sys = 0;          // the errno behind the error, or 0

  // Returns the error as "outer: message", for callers that know more about the action.
  Error within(std::string_view outer) &&;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

using Failure = tl::unexpected<Error>;

// return fail(Errc::invalid_input, "...", "hint");
[[nodiscard]] Failure fail(Errc code, std::string message, std::string hint = {});

// Makes an Error from errno: "what: strerror". The code follows from the errno (ENOENT ->
// not_found, ...).
[[nodiscard]] Failure fail_sys(std::string_view what, int sys_errno);

// Returns the text of an errno ("No such file or directory"). Unlike strerror(), thread-safe.
std::string errno_text(int sys_errno);

// Prints the place of the failed check and aborts. For bugs only, never for input.
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
