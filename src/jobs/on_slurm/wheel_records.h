// What the nodes of a Slurm job note of its wheels in the job's folder, which all of them see: how
// long it took, and which nodes can't train.
#pragma once

#include "base/error.h"
#include "codec/json.h"
#include "slurm/job_folder.h"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::jobs::on_slurm {

class WheelRecords {
 public:
  // Of one step of the job, in its run so many. step: SLURM_STEP_ID.
  WheelRecords(const slurm::JobFolder& folder, int run, std::string_view step);

  // Of the node, once it is known whether it can train. rows: for people.
  void note(const std::string& node, const nlohmann::ordered_json& rows, const Status& done) const;
  // Nodes that could not take the wheels.
  int failed() const;
  // Those at the beginning of `nodes` that could not take the wheels: all nodes learn the same,
  // as the list ends at the first node that could. A node that notes nothing for so long, in all,
  // ends it, too. Blocks.
  std::vector<std::string> failed_first(const std::vector<std::string>& nodes,
                                        std::chrono::milliseconds patience) const;

 private:
  std::string path(const std::string& node, std::string_view end) const;

  std::string folder_;
  std::string begin_;  // of the files' names
};

}  // namespace lockstep::jobs::on_slurm
