#include "hosts/hosts_file.h"

#include "base/text.h"

#include <fmt/core.h>

#include <string>
#include <utility>

namespace lockstep::hosts {
namespace {

constexpr std::size_t kMostHosts = 4096;
constexpr std::int64_t kMostSlots = 4096;

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  std::string text(line.substr(0, line.find('#')));
  for (char& c : text)
    // Files edited on Windows end their lines with "\r\n".
    if (c == '\t' || c == '\r') c = ' ';
  for (std::string& word : split(text, ' '))
    if (!word.empty()) words.push_back(std::move(word));
  return words;
}

Result<ListedHost> parse_line(const std::vector<std::string>& words) {
  LOCKSTEP_TRY_ASSIGN(ssh::Target target, ssh::parse_target(words.front()));
  ListedHost host{std::move(target)};
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::int64_t slots =
        word.starts_with("slots=") ? parse_int(word.substr(6)).value_or(0) : 0;
    // Refuse unknown words: a misspelled "slots=" would silently change the number of workers.
    if (slots < 1 || slots > kMostSlots)
      return fail(Errc::invalid_input,
                  fmt::format("'{}' after the host must be slots=N", printable(word)));
    host.slots = static_cast<int>(slots);
  }
  return host;
}

}  // namespace

Result<std::vector<ListedHost>> parse_hosts_file(std::string_view text) {
  std::vector<ListedHost> hosts;
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    const auto words = words_of(line);
    if (words.empty()) continue;
    auto host = parse_line(words);
    if (!host) return Failure(std::move(host).error().within(fmt::format("line {}", number)));
    hosts.push_back(std::move(*host));
    if (hosts.size() > kMostHosts)
      return fail(Errc::invalid_input, fmt::format("there are more than {} hosts", kMostHosts));
  }
  // An empty list would look like a cluster that runs nothing and succeeds.
  if (hosts.empty()) return fail(Errc::invalid_input, "the file names no host");
  return hosts;
}

}  // namespace lockstep::hosts
