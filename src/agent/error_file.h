// A worker's error.json (written by @record when an exception escapes), read without trusting it,
// and the launcher's own record in the same form. Parsing and building are pure. The two functions
// at the end access files.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::agent {

inline constexpr std::size_t kErrorFileLimit = 1 << 20;   // most bytes read from a file
inline constexpr std::size_t kErrorTextLimit = 64 << 10;  // most bytes of text shown

struct ErrorRecord {
  enum class Form {
    structured,  // {"message": {"message": .., "extraInfo": {"py_callstack": .., "timestamp": ..}}}
    plain,       // {"message": "text", "timestamp": ..}
    raw,         // anything else: the bytes themselves
  };
  Form form = Form::raw;
  std::string text;     // shown in a report: the traceback, else the message; <= kErrorTextLimit
  std::string message;  // the short message ("ValueError: x"); <= kErrorTextLimit
  // Unix time of the error in milliseconds. read_error_file() always sets the time.
  // parse_error_record() sets it only if the record contains a timestamp (whole seconds).
  std::optional<std::int64_t> time_ms;
  std::string bytes;  // the file as read
};

// Parses the bytes of an error file. Never fails: bytes of unknown form become a raw record.
ErrorRecord parse_error_record(std::string_view bytes);

// Returns the record as JSON for the parent launcher's error file. Adds `errorCode` if the message
// is an object. Wraps a raw record, so the result is always JSON.
std::string with_error_code(const ErrorRecord& record, int exit_code);

// Reads and parses the file. nullopt: not a regular file, missing or empty. The time is the
// record's own, refined to milliseconds by the file's modification time if the two agree. Without a
// time in the record the file's time is used.
std::optional<ErrorRecord> read_error_file(const std::string& path);

// Atomically replaces the file at `path` (the parent's TORCHELASTIC_ERROR_FILE): readers see the
// old or the new text, never a mix.
Status write_error_file(const std::string& path, std::string_view json);

}  // namespace lockstep::agent
