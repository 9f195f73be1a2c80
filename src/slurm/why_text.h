// What `lockstep why` prints, for people and for programs. Pure.
#pragma once

#include "codec/json.h"
#include "slurm/job_ending.h"

#include <string>
#include <vector>

namespace lockstep::slurm {

// A line on its own, "log" and the path: several of one title stand below each other.
struct Fact {
  std::string title;
  std::string line;
};

struct Explained {
  JobStatus job;
  Explanation said;
  std::vector<std::string> ids;  // several tasks of an array may wait for the same
  std::vector<Fact> facts = {};
};

// One for each part of an array that has a state and a reason of its own.
std::vector<Explained> explain_all(const std::vector<JobStatus>& jobs, const Surroundings& around);

std::string why_text(const std::vector<Explained>& all, std::int64_t now);
nlohmann::ordered_json why_json(const std::vector<Explained>& all);

}  // namespace lockstep::slurm
