// Words for awaited hosts: one line for all hosts at the same step. Pure.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::hosts {

// hosts: each host's name and current step. Returns "waiting for gpus-0 to gpus-31 for 5 s: logging
// in".
std::vector<std::string> wait_lines(const std::vector<std::pair<std::string, std::string>>& hosts,
                                    std::chrono::seconds waited);

// When the next line is due: the pauses grow up to a minute.
std::chrono::seconds next_notice(std::chrono::seconds waited);

}  // namespace lockstep::hosts
