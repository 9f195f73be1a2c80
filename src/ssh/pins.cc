#include "ssh/pins.h"

#include "base/text.h"
#include "io/fd.h"
#include "io/replace_file.h"

#include <fmt/core.h>

#include <vector>

namespace lockstep::ssh {
namespace {

constexpr int kUsualPort = 22;
constexpr std::size_t kMostPins = 4UL << 20;

std::string pin_name(std::string_view address, int port) {
  return port == kUsualPort ? std::string(address) : fmt::format("[{}]:{}", address, port);
}

}  // namespace

std::string pin_line(std::string_view address, int port, std::string_view public_key) {
  const std::vector<std::string> words = split(strip(public_key), ' ');
  return fmt::format("{} {} {}", pin_name(address, port), words[0],
                     words.size() > 1 ? words[1] : "");
}

std::string with_pin(std::string_view text, std::string_view address, int port,
                     std::string_view public_key) {
  const std::string name = pin_name(address, port) + " ";
  std::string out;
  for (const std::string& line : split(text, '\n'))
    if (!line.empty() && !line.starts_with(name)) out += line + "\n";
  if (!public_key.empty()) out += pin_line(address, port, public_key) + "\n";
  return out;
}

Status pin_host(const std::string& file, std::string_view address, int port,
                std::string_view public_key) {
  const auto text = io::read_file(file, kMostPins);
  if (!text && text.error().code != Errc::not_found) return Failure(text.error());
  return io::replace_file(file, with_pin(text.value_or(""), address, port, public_key));
}

}  // namespace lockstep::ssh
