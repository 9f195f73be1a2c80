// Asks the agents of a running Slurm job what its ranks do. The agents' sockets are on the job's
// nodes, so srun starts a short step there, beside the step of the agents.
#pragma once

#include "base/error.h"
#include "hosts/host_link.h"
#include "job/enter_job.h"
#include "jobs/job_book.h"
#include "jobs/on_slurm/slurm_submit.h"
#include "jobs/on_slurm/slurm_world.h"

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::jobs::on_slurm {

// Each question is a step, and Slurm keeps all steps of a job in memory and in its accounting.
inline constexpr std::chrono::seconds kPauseOfAgents{10};

struct AgentText {
  int node = 0;           // the place of the agent's node among the job's nodes, from 0
  std::string text = {};  // the answer, as JSON
};

// Returns the answers of all agents that answer. words: "looks", "ranks", "events", "page" or
// "profile", and the words behind the job's id (job/job_requests.h). Empty: the job does not run,
// or was submitted without Lockstep. unavailable: no node answers, with the words of srun. If only
// a part of the nodes has answered, `partial` says so, or a warning without it.
Result<std::vector<AgentText>> ask_slurm_agents(const jobs::KnownJob& job, const SlurmPlace& place,
                                                const std::vector<std::string>& words,
                                                const SlurmWorld& world = {},
                                                std::string* partial = nullptr);

// Returns the command whose standard streams are a link to that node, for as long as its stdin is
// open.
hosts::LinkCommand link_to_node(const SlurmPlace& place, int node);

// The first word of `lockstep host-enter` in a step of a job, where Slurm is not asked again.
inline constexpr const char* kInStep = "--in-step";

// Returns the command that runs `lockstep host-enter` on each node of the running job, with
// srun's environment. request: its job is set here. unavailable: the job does not run.
Result<hosts::LinkCommand> enter_on_nodes(const jobs::KnownJob& job, const SlurmPlace& place,
                                          job::EnterRequest request, const SlurmWorld& world = {});

}  // namespace lockstep::jobs::on_slurm
