// Brings a job's wheels to a node of a Slurm job: from the node before it, else from the job's
// folder.
#pragma once

#include "base/error.h"
#include "setup/overlay.h"
#include "slurm/job_folder.h"
#include "slurm/tools.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::jobs::on_slurm {

struct NodeWheels {
  std::vector<std::string> paths = {};    // to put first on PYTHONPATH
  std::vector<std::string> modules = {};  // modules imported from there
  // The first nodes of the job that could not take the wheels. The other nodes meet without them.
  std::vector<std::string> failed_first = {};
};

// The step and the node of this process, and the way to start helpers there. Tests set their own.
struct WheelStep {
  std::string node;       // Slurm's name of this node
  int number = 0;         // of this node in the step
  std::string nodes;      // Slurm's list of the step's nodes
  std::string job;        // Slurm's id
  std::string step = {};  // empty or "0": the agents' own step
  std::string python;     // the interpreter that the ranks will use: a name in PATH, or a path
  std::string path = {};  // PYTHONPATH
  // How long nodes wait for each other: those of a step start within seconds of each other.
  std::chrono::milliseconds patience{5'000};
  slurm::RunTool run = slurm::run_here;
  std::function<std::optional<setup::Overlay>(const setup::OverlayRequest&)> kept_overlay =
      setup::kept_overlay;
  std::function<Result<setup::Overlay>(const setup::OverlayRequest&)> make_overlay =
      [](const setup::OverlayRequest& request) {
        return setup::make_overlay(request, [](std::string_view) {});
      };
};
// Returns the step that this process is in, by Slurm's variables.
WheelStep this_step();

// Brings the wheels to this node. Does nothing if the job has no wheels. After an error this node
// cannot train. The job has been told, and ends if it needs this node. left_out: nodes excluded by
// the pre-flight; nothing comes from them.
Result<NodeWheels> put_node_wheels(const slurm::JobFolder& folder,
                                   const std::vector<std::string>& left_out = {},
                                   const WheelStep& step = this_step());

// Removes `names` from `nodes`, except the node at index `self`. Returns the new index of that
// node. Pure.
int leave_out(const std::vector<std::string>& names, int self, std::vector<std::string>& nodes);

}  // namespace lockstep::jobs::on_slurm
