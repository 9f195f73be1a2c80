#include "status/profile_ask.h"

#include "status/profile_trace.h"

#include <utility>

namespace lockstep::status {

std::vector<std::string> ask_about_profile(const JobSocketName& of, const ProfileQuery& query,
                                           io::Duration limit) {
  const std::string late = profile_answer_json(
      {.refusal = "an agent of the job does not answer", .late = true, .id = query.id});
  std::vector<std::string> answers;
  for (const std::string& text :
       ask_agents(of, "/profile?" + print_profile_query(query), limit, late)) {
    auto says = read_profile_answer(text);
    if (!says) continue;
    // This process looks, not the agent: the folder may be on a file system that hangs.
    look_for_traces(query, *says);
    answers.push_back(profile_answer_json(*says));
  }
  return answers;
}

}  // namespace lockstep::status
