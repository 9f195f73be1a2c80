// Names of this machine, without DNS.
#include "host/identity.h"

#include "base/text.h"
#include "io/fd.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

namespace lockstep::host {
namespace {

// The words of a line of /etc/hosts: the address, then names.
using Line = std::vector<std::string>;

std::vector<Line> parse_hosts(std::string_view hosts) {
  std::vector<Line> lines;
  for (const auto& text : split(hosts, '\n')) {
    Line words;
    std::string blanks = text.substr(0, text.find('#'));
    std::replace(blanks.begin(), blanks.end(), '\t', ' ');
    for (const auto& word : split(blanks, ' '))
      if (const auto bare = strip(word); !bare.empty()) words.emplace_back(bare);
    if (words.size() >= 2) lines.push_back(std::move(words));
  }
  return lines;
}

}  // namespace

std::string hostname() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

std::string fqdn_from_hosts(std::string_view hostname, std::string_view hosts) {
  const auto lines = parse_hosts(hosts);
  const auto named = std::find_if(lines.begin(), lines.end(), [&](const Line& line) {
    return std::find(line.begin() + 1, line.end(), hostname) != line.end();
  });
  if (named == lines.end()) return std::string(hostname);
  // getfqdn() looks the address up again and takes the first line with that address.
  const auto reverse = std::find_if(lines.begin(), lines.end(),
                                    [&](const Line& line) { return line[0] == (*named)[0]; });
  const auto dotted =
      std::find_if(reverse->begin() + 1, reverse->end(),
                   [](const std::string& name) { return name.find('.') != name.npos; });
  const std::string& name = dotted == reverse->end() ? (*reverse)[1] : *dotted;
  // "localhost" would tell the reader of a report nothing.
  return name.starts_with("localhost") ? std::string(hostname) : name;
}

std::string node_name() {
  const auto hosts = io::read_file("/etc/hosts");
  return fqdn_from_hosts(hostname(), hosts ? *hosts : "");
}

}  // namespace lockstep::host
