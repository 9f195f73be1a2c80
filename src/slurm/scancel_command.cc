#include "slurm/scancel_command.h"

namespace lockstep::slurm {

std::vector<std::string> scancel_command(const std::string& id,
                                         const std::optional<std::string>& signal) {
  std::vector<std::string> argv = {"scancel"};
  if (signal) argv.push_back("--signal=" + *signal);
  argv.push_back(id);
  return argv;
}

}  // namespace lockstep::slurm
