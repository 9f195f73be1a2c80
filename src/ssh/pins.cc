#include "ssh/pins.h"

#include "base/text.h"
#include "io/fd.h"
#include "io/replace_file.h"

#include <fmt/core.h>

namespace lockstep::ssh {
namespace {

constexpr int kUsualPort = 22;
constexpr std::size_t kMostPins = 4UL << 20;
constexpr std::string_view kOrigin = "# ";

// Ends with a space.
std::string pin_name(std::string_view address, int port) {
  return port == kUsualPort ? fmt::format("{} ", address) : fmt::format("[{}]:{} ", address, port);
}

Result<std::string> pins_text(const std::string& file) {
  auto text = io::read_file(file, kMostPins);
  if (!text && text.error().code == Errc::not_found) return std::string();
  return text;
}

}  // namespace

std::string bare_key(std::string_view public_key) {
  const std::vector<std::string> words = split(strip(public_key), ' ');
  return words.size() > 1 ? words[0] + " " + words[1] : words[0];
}

std::string pin_line(std::string_view address, int port, std::string_view public_key) {
  return pin_name(address, port) + bare_key(public_key);
}

Pins pins_in(std::string_view text, std::string_view address, int port) {
  const std::string name = pin_name(address, port);
  const std::string comment = std::string(kOrigin) + name;
  Pins pins;
  for (const std::string& line : split(text, '\n')) {
    if (line.starts_with(name)) pins.keys.push_back(line.substr(name.size()));
    if (line.starts_with(comment)) pins.origin = line.substr(comment.size());
  }
  return pins;
}

std::string with_pins(std::string_view text, std::string_view address, int port, const Pins& pins) {
  const std::string name = pin_name(address, port);
  std::string out;
  for (const std::string& line : split(text, '\n'))
    if (!line.empty() && !line.starts_with(name) && !line.starts_with(std::string(kOrigin) + name))
      out += line + "\n";
  if (pins.keys.empty()) return out;
  if (!pins.origin.empty())
    out += std::string(kOrigin) + pin_line(address, port, pins.origin) + "\n";
  for (const std::string& key : pins.keys)
    out += pin_line(address, port, key) + "\n";
  return out;
}

Result<Pins> read_pins(const std::string& file, std::string_view address, int port) {
  LOCKSTEP_TRY_ASSIGN(const std::string text, pins_text(file));
  return pins_in(text, address, port);
}

Status pin_host(const std::string& file, std::string_view address, int port, const Pins& pins) {
  LOCKSTEP_TRY_ASSIGN(const std::string text, pins_text(file));
  return io::keep_record(file, with_pins(text, address, port, pins));
}

}  // namespace lockstep::ssh
