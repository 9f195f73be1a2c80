// The way to a node of a Slurm job that was submitted through a login host. A child of the client
// starts a command on the login host over ssh, that command becomes srun, and both only copy the
// bytes of a link between the client and the node.
#pragma once

#include "base/error.h"
#include "hosts/command_run.h"
#include "hosts/host_link.h"

#include <string>
#include <vector>

namespace lockstep::jobs::on_slurm {

// The first words of `lockstep link` for the two parts. Both take the job's id and the node's place
// among the nodes of the job.
inline constexpr const char* kThroughLogin = "--through-login";
inline constexpr const char* kToNode = "--to-node";

// Returns the command of the client's child.
Result<hosts::LinkCommand> link_through_login(const std::string& id, int node);

// Does the work of that child: connects this process's stdin and stdout with the login host. words:
// kThroughLogin, the job's id, the node. Returns the exit code there. unavailable: the login host
// is not reached. Block proc::handled_signals() before.
Result<int> pass_through_login(const std::vector<std::string>& words,
                               const hosts::RunCommand& run = hosts::over_links());

// Returns the command that leads on to the node, on the login host. words: kToNode, the job's id,
// the node.
Result<hosts::LinkCommand> link_on_login(const std::vector<std::string>& words);

}  // namespace lockstep::jobs::on_slurm
