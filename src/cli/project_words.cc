#include "cli/project_words.h"

#include "base/text.h"

#include <fmt/core.h>

#include <unistd.h>

namespace lockstep::cli {

Result<ProjectWords> project_words(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || access(text.c_str(), F_OK) == 0) return ProjectWords{text, {}};
  if (colon + 1 == text.size())
    return fail(Errc::invalid_input,
                fmt::format("'{}' must name a place on the host after the colon", printable(text)));
  ProjectWords words{.destination = text.substr(colon + 1)};
  if (colon != 0) words.source = text.substr(0, colon);
  return words;
}

Result<project::Project> project_of(const std::string& folder,
                                    const std::optional<std::string>& words) {
  ProjectWords parts;
  if (words) {
    LOCKSTEP_TRY_ASSIGN(parts, project_words(*words));
  }
  LOCKSTEP_TRY_ASSIGN(project::Project project, project::find_project(folder, parts.source));
  if (!parts.destination) return project;
  // Jobs and environments on the host use the place without a shell, where "~" is an ordinary name.
  // Relative paths already begin at the home.
  std::string place = *parts.destination;
  if (place.starts_with("~/")) place.erase(0, 2);
  while (place.size() > 1 && place.ends_with('/'))
    place.pop_back();
  project.name = std::move(place);
  return project;
}

}  // namespace lockstep::cli
