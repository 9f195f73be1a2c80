// Reads the hosts line of /etc/nsswitch.conf.
#include "io/hosts_line.h"

#include "base/text.h"

#include <algorithm>
#include <vector>

namespace lockstep::io {
namespace {

constexpr std::string_view kDatabase = "hosts";
constexpr const char* kUsual = "files dns";

struct Service {
  std::string name;
  std::string actions;  // "[NOTFOUND=return]"
};

// Parses the services of a line. nullopt: invalid. Actions need no blanks around them:
// "files[NOTFOUND=return]dns".
std::optional<std::vector<Service>> services_of(std::string_view line) {
  std::vector<Service> services;
  for (line = strip(line); !line.empty(); line = strip(line)) {
    if (line.front() == '[') {
      const std::size_t end = line.find(']');
      if (end == std::string_view::npos || services.empty()) return std::nullopt;
      services.back().actions += line.substr(0, end + 1);
      line.remove_prefix(end + 1);
      continue;
    }
    const std::size_t end = std::min(line.find_first_of(" \t["), line.size());
    services.push_back({std::string(line.substr(0, end)), {}});
    line.remove_prefix(end);
  }
  if (services.empty()) return std::nullopt;
  return services;
}

bool built_in(const Service& service) {
  return service.name == "files" || service.name == "dns";
}

}  // namespace

std::optional<std::string> hosts_line(std::string_view nsswitch_conf) {
  std::optional<std::string> found;
  for (const std::string& text : split(nsswitch_conf, '\n')) {
    const std::string_view line = strip(std::string_view(text).substr(0, text.find('#')));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || strip(line.substr(0, colon)) != kDatabase) continue;
    // No break: the last hosts line counts.
    found = strip(line.substr(colon + 1));
  }
  return found;
}

NamePlan name_plan(const std::optional<std::string>& line, bool getent_is_there) {
  const auto services = line ? services_of(*line) : std::nullopt;
  if (!services) return {.in_process = kUsual};
  if (std::all_of(services->begin(), services->end(), built_in)) return {.in_process = *line};
  // Probably a container with the hosts line of another system and none of its modules.
  if (!getent_is_there) return {.in_process = kUsual};
  const Service& first = services->front();
  // /etc/hosts can be read here only if it comes first without an action that changes what follows.
  const bool files_first = first.name == "files" && first.actions.empty();
  return {.in_process = files_first ? "files" : "", .ask_getent = true};
}

}  // namespace lockstep::io
