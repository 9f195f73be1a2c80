// The answers of a job's agents, as a host passes them on: a JSON list.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::jobs {

// Returns the elements of a list, each as JSON. A host may be hostile: size and number are bounded,
// and what is no list has no elements.
std::vector<std::string> agent_texts(std::string_view list);
// Makes a list of such elements.
std::string agent_list(const std::vector<std::string>& texts);

// Reads answers. read() bounds and cleans what they say; unreadable ones are left out. Containers
// of one machine may be hosts of a job and share the sockets of the machine, so answers may come
// twice.
template <class Answer>
void add_answers(std::vector<Answer>& answers, const std::vector<std::string>& texts,
                 Result<Answer> (*read)(std::string_view)) {
  for (const std::string& text : texts) {
    auto answer = read(text);
    if (answer && !is_known(answers, *answer)) answers.push_back(std::move(*answer));
  }
}

}  // namespace lockstep::jobs
