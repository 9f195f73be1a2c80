// A worker's error.json (written by @record when an exception escapes), read without trusting it,
// and the launcher's own record in the same form. Parsing and building are pure; two functions at
// the end touch files.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::agent {

inline constexpr std::size_t kErrorFileLimit = 1 << 20;   // bytes of a file that are read
inline constexpr std::size_t kErrorTextLimit = 64 << 10;  // bytes of text that are shown

struct ErrorRecord {
  enum class Form {
    structured,  // {"message": {"message": .., "extraInfo": {"py_callstack": .., "timestamp": ..}}}
    plain,       // {"message": "text", "timestamp": ..}
    raw,         // no JSON, or JSON of another shape: the bytes themselves
  };
  Form form = Form::raw;
  std::string text;     // what a report shows: the traceback, else the message; <= kErrorTextLimit
  std::string message;  // the short message ("ValueError: x"); <= kErrorTextLimit
  // When the error was recorded. read_error_file() always fills it; parse_error_record() only where
  // the record says it (whole seconds).
  std::optional<std::int64_t> time_ms;
  std::string bytes;  // the file as read
};

// Never fails: what cannot be understood is shown raw.
ErrorRecord parse_error_record(std::string_view bytes);

// The record as it goes to the parent launcher's error file: `errorCode` is added when the message
// is an object; a raw record is wrapped so that the result is always JSON.
std::string with_error_code(const ErrorRecord& record, int exit_code);

// The launcher's own failure (rendezvous timeout ...), as @record would have written it.
std::string launcher_error_record(std::string_view message, std::string_view callstack,
                                  std::int64_t unix_seconds);

// nullopt: no regular file there, or it is empty. The time is the record's own, refined to
// milliseconds by the file's time where the two agree, and the file's time if the record has none.
std::optional<ErrorRecord> read_error_file(const std::string& path);

// Replaces the file at `path` (the parent's TORCHELASTIC_ERROR_FILE) at once: readers see the old
// or the new text, never half of one.
Status write_error_file(const std::string& path, std::string_view json);

}  // namespace lockstep::agent
