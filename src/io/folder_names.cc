#include "io/folder_names.h"

#include <filesystem>
#include <system_error>

namespace lockstep::io {

std::vector<std::string> names_in(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  std::error_code error;
  // A range-for would throw at an error in the middle, and end the process.
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename());
  return names;
}

}  // namespace lockstep::io
