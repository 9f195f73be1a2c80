// Reads and writes error.json as PyTorch's @record does.
#include "agent/error_file.h"

#include "base/text.h"
#include "codec/json.h"
#include "io/fd.h"
#include "io/replace_file.h"

#include <fmt/core.h>

#include <sys/stat.h>

#include <utility>

namespace lockstep::agent {
namespace {

using Json = nlohmann::ordered_json;

std::string print(const Json& json) {
  return codec::print_json(json, codec::JsonText::ascii);
}

// Cuts the middle: a traceback says most at its end.
std::string bounded(std::string_view text) {
  if (text.size() <= kErrorTextLimit) return std::string(text);
  constexpr std::size_t head = kErrorTextLimit / 4;
  constexpr std::size_t tail = kErrorTextLimit - head - 64;
  return fmt::format("{}\n... {} bytes left out ...\n{}", text.substr(0, head),
                     text.size() - head - tail, text.substr(text.size() - tail));
}

// Converts seconds to milliseconds as Python's int() would: a number (fractions are cut) or decimal
// text.
std::optional<std::int64_t> seconds_to_ms(const Json* value) {
  constexpr double limit = 1e12;  // seconds; keeps the product inside 64 bits
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) {
    const double seconds = value->get<double>();
    if (!(seconds > 0 && seconds < limit)) return std::nullopt;
    return static_cast<std::int64_t>(seconds) * 1000;
  }
  if (!value->is_string()) return std::nullopt;
  const auto seconds = parse_int(value->get_ref<const std::string&>());
  if (!seconds || *seconds <= 0 || static_cast<double>(*seconds) >= limit) return std::nullopt;
  return *seconds * 1000;
}

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::string text_of(const Json& value) {
  return bounded(value.is_string() ? value.get_ref<const std::string&>() : print(value));
}

// @record writes this form: the message and the traceback lie inside an inner object.
void read_structured(const Json& message, ErrorRecord& record) {
  record.form = ErrorRecord::Form::structured;
  const Json* words = member(message, "message");
  record.message = words != nullptr ? text_of(*words) : "<N/A>";
  record.text = record.message;
  const Json* extra = member(message, "extraInfo");
  if (extra == nullptr) return;
  if (const Json* stack = member(*extra, "py_callstack")) record.text = text_of(*stack);
  record.time_ms = seconds_to_ms(member(*extra, "timestamp"));
}

}  // namespace

ErrorRecord parse_error_record(std::string_view bytes) {
  ErrorRecord record;
  record.bytes = bytes;
  // Text that is not JSON parses to a discarded value without members, so a broken file takes the
  // raw form.
  const Json json = codec::parse_ordered_json(bytes, {.bytes = kErrorFileLimit});
  const Json* message = member(json, "message");
  if (message != nullptr && message->is_object()) {
    read_structured(*message, record);
  } else if (message != nullptr && message->is_string()) {
    record.form = ErrorRecord::Form::plain;
    record.text = text_of(*message);
    record.message = record.text;
    record.time_ms = seconds_to_ms(member(json, "timestamp"));
  } else {
    record.text = bounded(bytes);
    record.message = record.text;
  }
  return record;
}

std::string with_error_code(const ErrorRecord& record, int exit_code) {
  Json json = codec::parse_ordered_json(record.bytes, {.bytes = kErrorFileLimit});
  if (record.form == ErrorRecord::Form::raw || !json.is_object())
    json = Json{{"message", Json{{"message", record.text}}}};
  if (exit_code != 0 && json["message"].is_object()) json["message"]["errorCode"] = exit_code;
  return print(json);
}

std::optional<ErrorRecord> read_error_file(const std::string& path) {
  struct stat info {};
  // A worker may put anything at this path. Opening a FIFO would block the loop.
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  const auto bytes = io::read_file(path, kErrorFileLimit);
  if (!bytes || bytes->empty()) return std::nullopt;
  ErrorRecord record = parse_error_record(*bytes);
  const std::int64_t file_ms =
      std::int64_t{info.st_mtim.tv_sec} * 1000 + info.st_mtim.tv_nsec / 1000000;
  // The record holds whole seconds. The file was written just after the error, so its time is the
  // finer one if both agree.
  if (!record.time_ms || (file_ms >= *record.time_ms && file_ms < *record.time_ms + 2000))
    record.time_ms = file_ms;
  return record;
}

Status write_error_file(const std::string& path, std::string_view json) {
  return io::replace_file(path, json);
}

}  // namespace lockstep::agent
