#include "hosts/python_call.h"

#include "base/text.h"
#include "codec/wire.h"

#include <fmt/core.h>

#include <cstdint>
#include <utility>

namespace lockstep::hosts {
namespace {

bool is_identifier(std::string_view text) {
  if (text.empty() || (text.front() >= '0' && text.front() <= '9')) return false;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    // Python identifiers may have letters of any script. Let Python decide about these.
    const bool beyond_ascii = static_cast<unsigned char>(c) >= 0x80;
    if (!letter && !beyond_ascii && c != '_' && (c < '0' || c > '9')) return false;
  }
  return true;
}

bool is_dotted_name(std::string_view text) {
  for (const std::string& part : split(text, '.'))
    if (!is_identifier(part)) return false;
  return !text.empty();
}

// The header of an answer frame: one letter, then the payload size as a little-endian u32.
constexpr std::size_t kFrameHeader = 5;

}  // namespace

Result<FunctionName> parse_function_name(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view module = text.substr(0, colon);
  // Check here, before any host is asked, and because the names become header lines: a newline in a
  // name would add a line.
  const std::string_view name = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  if (is_dotted_name(module) && is_dotted_name(name))
    return FunctionName{std::string(module), std::string(name)};
  return fail(Errc::invalid_input, fmt::format("'{}' does not name a function", printable(text)),
              "write module:function, as in train:main");
}

std::string call_request(const PythonCall& call) {
  std::string text = fmt::format("module {}\nfunction {}\nvalues json\nroot {}\n",
                                 call.function.module, call.function.name, call.root);
  for (const std::string& folder : call.path)
    text += fmt::format("path {}\n", folder);
  if (call.output_to_stderr) text += "stdout stderr\n";
  return text + "\n" + call.arguments;
}

CallAnswer parse_call_answer(std::string_view bytes) {
  std::string value;
  // Parts of a value may be followed by an error frame, which then replaces the value. Frames of an
  // unknown letter are skipped.
  while (bytes.size() >= kFrameHeader) {
    std::uint32_t size = 0;
    codec::wire::Reader(bytes.substr(1, kFrameHeader - 1)).number(size);
    const char kind = bytes.front();
    bytes.remove_prefix(kFrameHeader);
    // The process was killed in the middle of a frame.
    if (size > bytes.size()) break;
    const std::string_view content = bytes.substr(0, size);
    bytes.remove_prefix(size);
    if (kind == 'v') value += content;
    if (kind == 'k') return {CallAnswer::Kind::value, std::move(value)};
    if (kind == 'e') return {CallAnswer::Kind::raised, std::string(content)};
    if (kind == 'r') return {CallAnswer::Kind::refused, std::string(content)};
  }
  return {};
}

std::string refused_answer(std::string_view why) {
  std::string bytes = "r";
  codec::wire::Writer(bytes).number(static_cast<std::uint32_t>(why.size()));
  return bytes.append(why);
}

}  // namespace lockstep::hosts
