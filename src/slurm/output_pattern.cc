// Expands patterns of --output as sbatch does.
#include "slurm/job_plan.h"

#include <algorithm>

namespace lockstep::slurm {

std::optional<std::string> expand_output(std::string_view pattern, const PatternFacts& facts) {
  // A backslash switches all patterns off in sbatch, so do not guess.
  if (pattern.find('\\') != std::string_view::npos) return std::nullopt;
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      path += pattern[i];
      continue;
    }
    std::size_t width = 0;
    while (++i < pattern.size() && pattern[i] >= '0' && pattern[i] <= '9')
      // Slurm pads to ten digits at most.
      width = std::min<std::size_t>(width * 10 + static_cast<std::size_t>(pattern[i] - '0'), 10);
    if (i == pattern.size()) return std::nullopt;
    switch (pattern[i]) {
      case '%':
        path += '%';
        break;
      case 'j':
      case 'A':
        path +=
            std::string(width > facts.job.size() ? width - facts.job.size() : 0, '0') + facts.job;
        break;
      case 'x':
        path += facts.name;
        break;
      case 'u':
        path += facts.user;
        break;
      case 'n':  // the batch step's node and task are number 0
      case 't':
        path += std::string(width == 0 ? 0 : width - 1, '0') + "0";
        break;
      default:
        return std::nullopt;
    }
  }
  return path;
}

}  // namespace lockstep::slurm
