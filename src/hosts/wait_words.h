// Words for awaited hosts: one line for all hosts at the same step. Pure.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::hosts {

// Returns one line for each step: "waiting for gpus-0 to gpus-31 for 5 s: logging in". hosts: the
// name and current step of each host.
std::vector<std::string> wait_lines(const std::vector<std::pair<std::string, std::string>>& hosts,
                                    std::chrono::seconds waited);

// Returns the pause until the next line. The pauses grow from 5 s to a minute.
std::chrono::seconds next_notice(std::chrono::seconds waited);

}  // namespace lockstep::hosts
