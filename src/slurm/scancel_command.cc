#include "slurm/scancel_command.h"

#include "base/text.h"

namespace lockstep::slurm {

std::vector<std::string> scancel_command(const std::string& id,
                                         const std::optional<std::string>& signal) {
  std::vector<std::string> argv = {"scancel"};
  if (signal) argv.push_back("--signal=" + *signal);
  argv.push_back(id);
  return argv;
}

bool is_of_ended_job(const Error& error) {
  const std::string words = to_lower(error.message);
  return words.find("already completing or completed") != std::string::npos ||
         words.find("invalid job id") != std::string::npos;
}

}  // namespace lockstep::slurm
