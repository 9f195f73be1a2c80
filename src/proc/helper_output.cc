#include "proc/helper_output.h"

#include "proc/tool_output.h"

#include <utility>

namespace lockstep::proc {

std::optional<std::string> helper_output(const std::vector<std::string>& argv) {
  auto said = tool_output(argv);
  if (!said || !said->exit.ok()) return std::nullopt;
  return std::move(said->out);
}

}  // namespace lockstep::proc
