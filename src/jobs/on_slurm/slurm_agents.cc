#include "jobs/on_slurm/slurm_agents.h"

#include "base/log.h"
#include "codec/nodelist.h"
#include "jobs/agent_answers.h"
#include "jobs/on_slurm/slurm_follow.h"
#include "slurm/ask_jobs.h"
#include "slurm/node_pieces.h"
#include "slurm/srun_command.h"

#include <fmt/core.h>

#include <optional>
#include <utility>

namespace lockstep::jobs::on_slurm {
namespace {

// Returns the number of nodes that the job has now. A lost node leaves the job once Slurm has
// noticed. 0: the job does not run.
Result<int> nodes_now(const jobs::KnownJob& job, const SlurmPlace& place, const SlurmWorld& world) {
  const auto own = slurm_state(job, place);
  if (own && own->stage != slurm::Stage::running) return 0;
  const slurm::JobAsked asked = asked_of(job, place.job);
  LOCKSTEP_TRY_ASSIGN(const auto told, slurm::ask_jobs({asked}, slurm::Detail::usual, world.run));
  for (const slurm::JobReport& report : told) {
    if (!slurm::is_of(report, asked) ||
        batch_status(own, &report, world.unix_ms()).state != JobState::running)
      continue;
    const auto names = codec::expand_nodelist(report.nodes);
    return names && !names->empty() ? static_cast<int>(names->size())
                                    : report.node_count.value_or(1);
  }
  return 0;
}

Error no_answer(const std::string& wanted, const proc::ToolOutput& said) {
  if (said.late)
    return {.code = Errc::unavailable, .message = wanted + ": srun: no answer in 10 s", .hint = {}};
  Error error = slurm::tool_error(wanted, "srun", said);
  error.code = Errc::unavailable;
  if (said.err.find("--overlap") != std::string::npos)
    error.hint = "srun has --overlap since Slurm 20.11";
  return error;
}

// Returns the job's own copy of the binary: agents answer to their own version.
std::string binary_of(const SlurmPlace& place) {
  return place.folder + "/lockstep";
}

// Returns the number that srun takes: a row is a task of an array, and srun refuses "7_3".
std::string number_of(const jobs::KnownJob& job, const SlurmPlace& place) {
  const auto own = slurm_state(job, place);
  return own && own->job == place.job && slurm::is_job_id(own->number) ? own->number : place.job;
}

}  // namespace

Result<std::vector<AgentText>> ask_slurm_agents(const jobs::KnownJob& job, const SlurmPlace& place,
                                                const std::vector<std::string>& words,
                                                const SlurmWorld& world, std::string* partial) {
  std::vector<AgentText> texts;
  // Only a job that Lockstep submitted has a folder, and agents that answer.
  if (place.folder.empty()) return texts;
  auto nodes = nodes_now(job, place, world);
  if (!nodes) {
    // Whoever follows the events asks again later.
    nodes.error().code = Errc::unavailable;
    return Failure(std::move(nodes.error()));
  }
  if (*nodes == 0) return texts;
  std::vector<std::string> argv = {binary_of(place), "slurm-ask", words.at(0), job.id};
  argv.insert(argv.end(), words.begin() + 1, words.end());
  const std::string wanted = fmt::format("ask the nodes of job {}", place.job);
  auto said = world.step(slurm::srun_beside_command(number_of(job, place), *nodes, argv));
  if (!said) {
    said.error().code = Errc::unavailable;
    return Failure(std::move(said.error()).within(wanted));
  }
  const auto lists = slurm::join_pieces(said->out);
  for (const auto& [task, list] : lists)
    for (std::string& text : agent_texts(list))
      texts.push_back({.node = static_cast<int>(task), .text = std::move(text)});
  if (said->exit.ok() && !said->late) return texts;
  const Error error = no_answer(wanted, *said);
  if (lists.empty()) return Failure(error);
  std::string words_of_part =
      fmt::format("{} of {} nodes have answered: {}", lists.size(), *nodes, error.message);
  if (partial == nullptr)
    log::warning("{}", words_of_part);
  else
    *partial = std::move(words_of_part);
  return texts;
}

hosts::LinkCommand link_to_node(const SlurmPlace& place, int node) {
  return {
      .argv = slurm::srun_stream_command(place.job, node, {binary_of(place), "link", "--in-step"}),
      .env = slurm::environment_for_steps(proc::own_environment())};
}

Result<hosts::LinkCommand> enter_on_nodes(const jobs::KnownJob& job, const SlurmPlace& place,
                                          job::EnterRequest request, const SlurmWorld& world) {
  if (place.folder.empty())
    return fail(Errc::invalid_input,
                fmt::format("job {} was not submitted by lockstep", place.job));
  LOCKSTEP_TRY_ASSIGN(const int nodes, nodes_now(job, place, world));
  if (nodes == 0) return fail(Errc::unavailable, fmt::format("job {} does not run", place.job));
  request.job = job.id;
  std::vector<std::string> argv = {binary_of(place), "host-enter", kInStep};
  for (std::string& word : job::enter_words(request))
    argv.push_back(std::move(word));
  for (std::string& name : request.named)
    name.insert(0, job::kEnterPrefix);
  return hosts::LinkCommand{.argv = slurm::srun_exec_command(place.job, nodes, request.named, argv),
                            .env = slurm::environment_for_steps(proc::own_environment())};
}

}  // namespace lockstep::jobs::on_slurm
