// Records of a Slurm job's nodes about its wheels, in the job's folder, which all nodes see: how
// long each step took, and which nodes cannot train.
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
  // Records of one step of the job. run: the number of the job's run. step: SLURM_STEP_ID.
  WheelRecords(const slurm::JobFolder& folder, int run, std::string_view step);

  // Records whether the node can train. rows: for people.
  void note(const std::string& node, const nlohmann::ordered_json& rows, const Status& done) const;
  // Returns how many nodes could not take the wheels.
  int failed() const;
  // Returns the nodes at the beginning of `nodes` that could not take the wheels. The list ends at
  // the first node with success, so all nodes get the same list, or once `patience`, for all nodes
  // together, is over. Blocks.
  std::vector<std::string> failed_first(const std::vector<std::string>& nodes,
                                        std::chrono::milliseconds patience) const;

 private:
  std::string path(const std::string& node, std::string_view end) const;

  std::string folder_;
  std::string begin_;  // prefix of the files' names
};

}  // namespace lockstep::jobs::on_slurm
