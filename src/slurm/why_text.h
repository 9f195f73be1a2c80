// Prints the answer of `lockstep why`, for people and programs. Pure.
#pragma once

#include "codec/json.h"
#include "slurm/job_ending.h"

#include <string>
#include <vector>

namespace lockstep::slurm {

// A titled line, such as "log" and a path. Equal titles in a row are printed once.
struct Fact {
  std::string title;
  std::string line;
};

struct Explained {
  JobReport job;
  Explanation said;
  std::vector<std::string> ids;  // tasks of an array that wait for the same reason share an entry
  std::vector<Fact> facts = {};
};

// Explains jobs. Parts of an array with the same state and explanation share an entry.
std::vector<Explained> explain_all(const std::vector<JobReport>& jobs, const Surroundings& around);

std::string why_text(const std::vector<Explained>& all, std::int64_t now);
nlohmann::ordered_json why_json(const std::vector<Explained>& all);

}  // namespace lockstep::slurm
