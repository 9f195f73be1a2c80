#include "machine/ending_variables.h"

#include "base/text.h"
#include "io/fd.h"

#include <utility>

namespace lockstep::machine {
namespace {

constexpr std::size_t kMostEnvironment = 1UL << 20;

}  // namespace

// A login over ssh does not have the container's own variables, and process 1 has.
std::vector<std::string> variables_of(const cloud::MachineEnding& ending) {
  std::vector<std::string> found;
  if (ending.variables.empty()) return found;
  // Only root may read this file.
  const auto all = io::read_file("/proc/1/environ", kMostEnvironment);
  if (!all) return found;
  for (std::string& entry : split(*all, '\0'))
    if (entry.starts_with(ending.variables)) found.push_back(std::move(entry));
  return found;
}

}  // namespace lockstep::machine
