// Asks the agents of a running Slurm job what its ranks do. The agents' sockets are on the job's
// nodes, so srun starts a short step there, beside the step of the agents.
#pragma once

#include "base/error.h"
#include "jobs/job_book.h"
#include "jobs/on_slurm/slurm_submit.h"
#include "jobs/on_slurm/slurm_world.h"

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::jobs::on_slurm {

// Each question is a step, and Slurm keeps all steps of a job in memory and in its accounting.
inline constexpr std::chrono::seconds kPauseOfAgents{10};

// Returns the answers of all agents that answer, each as JSON. words: "looks", "ranks", "events"
// or "profile", and the words behind the job's id (job/job_requests.h). Empty: the job does not
// run, or was submitted without Lockstep. unavailable: no node answers, with the words of srun. If
// only a part of the nodes has answered, `partial` says so, or a warning without it.
Result<std::vector<std::string>> ask_slurm_agents(const jobs::KnownJob& job,
                                                  const SlurmPlace& place,
                                                  const std::vector<std::string>& words,
                                                  const SlurmWorld& world = {},
                                                  std::string* partial = nullptr);

}  // namespace lockstep::jobs::on_slurm
