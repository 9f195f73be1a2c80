#include "jobs/agent_answers.h"

#include "base/text.h"
#include "codec/json.h"

#include <cstddef>

namespace lockstep::jobs {
namespace {

// A login host answers for all nodes of a Slurm job.
constexpr codec::JsonLimits kLimits{.bytes = 64UL << 20, .values = 4UL << 20};
constexpr std::size_t kMostAgents = 1024;

}  // namespace

std::vector<std::string> agent_texts(std::string_view list) {
  const auto json = codec::parse_json(list, kLimits);
  std::vector<std::string> texts;
  if (!json.is_array()) return texts;
  for (const auto& each : json) {
    if (texts.size() == kMostAgents) break;
    texts.push_back(codec::print_json(each));
  }
  return texts;
}

std::string agent_list(const std::vector<std::string>& texts) {
  return "[" + join(texts, ",") + "]";
}

}  // namespace lockstep::jobs
