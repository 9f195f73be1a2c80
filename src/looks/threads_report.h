// The threads of all ranks of a job, merged from the answers of its agents. Pure.
#pragma once

#include "looks/answer.h"
#include "looks/question.h"

#include <string>
#include <vector>

namespace lockstep::looks {

constexpr std::size_t kMostReport = 256UL << 10;  // bytes

// Returns the nodes whose agents do not know a word of the question, because they are older.
std::vector<std::string> deaf_nodes(const std::vector<Answer>& answers, const Question& question);

// The text for a person, at most kMostReport bytes and one line that says what is left out.
std::string threads_report(const std::vector<Answer>& answers);
// {"looks": [...]}: the answers as they are.
std::string threads_json(const std::vector<Answer>& answers);

}  // namespace lockstep::looks
