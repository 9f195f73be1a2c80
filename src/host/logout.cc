// Reads logind's configuration as systemd does.
#include "host/logout.h"

#include "base/text.h"
#include "host/sysfs.h"

#include <fmt/core.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string_view>
#include <vector>

namespace lockstep::host {
namespace {

struct Settings {
  bool kills = false;
  std::vector<std::string> only = {};  // users; empty: all
  std::vector<std::string> excluded = {"root"};
};

bool is_yes(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::array kYes = {"yes", "y", "true", "t", "on", "1"};
  return std::find(kYes.begin(), kYes.end(), text) != kYes.end();
}

// Adds names. An empty value forgets the names before, as in systemd.
void add_users(const std::string& text, std::vector<std::string>& users) {
  if (text.empty()) users.clear();
  for (std::string& name : split(text, ' '))
    if (!name.empty()) users.push_back(std::move(name));
}

void take_file(const std::string& text, Settings& settings) {
  for (const std::string& line : split(text, '\n')) {
    const std::string_view shown = strip(line);
    const std::size_t equals = shown.find('=');
    if (equals == std::string_view::npos || shown.front() == '#' || shown.front() == ';') continue;
    const std::string_view name = strip(shown.substr(0, equals));
    const std::string value(strip(shown.substr(equals + 1)));
    if (name == "KillUserProcesses") settings.kills = is_yes(value);
    if (name == "KillOnlyUsers") add_users(value, settings.only);
    if (name == "KillExcludeUsers") add_users(value, settings.excluded);
  }
}

// Returns the files in the order in which they apply: the main file, then drop-ins by name. A
// drop-in in /etc hides one of the same name in /run, which hides the distribution's.
std::vector<std::string> files_of(const std::string& root) {
  std::map<std::string, std::string> drop_ins;
  for (const char* top : {"/etc", "/run", "/usr/lib"}) {
    const std::string folder = fmt::format("{}{}/systemd/logind.conf.d", root, top);
    for (const std::string& name : list_names(folder))
      if (name.ends_with(".conf")) drop_ins.try_emplace(name, fmt::format("{}/{}", folder, name));
  }
  std::vector<std::string> files;
  for (const char* top : {"/etc", "/run", "/usr/lib"}) {
    const std::string path = fmt::format("{}{}/systemd/logind.conf", root, top);
    if (!files.empty() || access(path.c_str(), F_OK) != 0) continue;
    files.push_back(path);
  }
  for (const auto& [name, path] : drop_ins)
    files.push_back(path);
  return files;
}

}  // namespace

bool logout_kills(const std::string& root, const std::string& user) {
  // systemd is not running.
  // systemd's own test, sd_booted(), looks for the same folder.
  if (access((root + "/run/systemd/system").c_str(), F_OK) != 0) return false;
  Settings settings;
  for (const std::string& path : files_of(root))
    take_file(read_text(path).value_or(""), settings);
  const auto among = [&](const std::vector<std::string>& users) {
    return std::find(users.begin(), users.end(), user) != users.end();
  };
  return settings.kills && !among(settings.excluded) &&
         (settings.only.empty() || among(settings.only));
}

}  // namespace lockstep::host
