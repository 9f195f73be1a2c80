// Builds getent's command line and parses its answer.
#include "io/getent_command.h"

#include "base/text.h"

#include <cctype>

namespace lockstep::io {
namespace {

// The longest name that DNS allows, and a bound on the answer.
constexpr std::size_t kLongestName = 255;
constexpr std::size_t kMostAddresses = 256;

std::string_view next_word(std::string_view& line) {
  line = strip(line);
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  line.remove_prefix(word.size());
  return word;
}

}  // namespace

bool getent_takes(std::string_view name) {
  // A leading dash would be read as an option.
  if (name.empty() || name.size() > kLongestName || name.front() == '-') return false;
  for (const char c : name)
    if (std::iscntrl(static_cast<unsigned char>(c)) != 0 || c == ' ') return false;
  return true;
}

std::vector<std::string> getent_command(const std::string& name) {
  return {"getent", "ahosts", name};
}

// Parses lines such as "10.0.0.7  STREAM node7.example.org". The following DGRAM and RAW lines
// repeat the address without the name and are skipped.
GetentAnswer parse_getent(std::string_view output) {
  GetentAnswer answer;
  for (const std::string& text : split(output, '\n')) {
    std::string_view line = text;
    const std::string_view address = next_word(line);
    if (next_word(line) != "STREAM" || answer.addresses.size() == kMostAddresses) continue;
    answer.addresses.emplace_back(address);
    if (answer.canonical_name.empty()) answer.canonical_name = next_word(line);
  }
  return answer;
}

}  // namespace lockstep::io
