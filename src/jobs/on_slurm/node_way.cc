#include "jobs/on_slurm/node_way.h"

#include "base/text.h"
#include "io/loop.h"
#include "io/own_folders.h"
#include "jobs/on_slurm/slurm_agents.h"
#include "jobs/on_slurm/slurm_once.h"
#include "jobs/on_slurm/slurm_submit.h"
#include "proc/spawn.h"
#include "proc/tool_output.h"

#include <optional>
#include <utility>

namespace lockstep::jobs::on_slurm {
namespace {

constexpr std::int64_t kMostNodes = 1 << 24;

struct Way {
  std::string id;
  int node = 0;
};

Result<Way> read_way(const std::vector<std::string>& words) {
  const auto node = words.size() == 3 ? parse_int(words[2]) : std::nullopt;
  if (!node || *node < 0 || *node >= kMostNodes)
    return fail(Errc::invalid_input, "the id of a job and the place of a node are needed");
  return Way{words[1], static_cast<int>(*node)};
}

}  // namespace

Result<hosts::LinkCommand> link_through_login(const std::string& id, int node) {
  LOCKSTEP_TRY_ASSIGN(std::string own, proc::own_executable());
  // The end of the connection ends everything on the login host. The child itself would wait for a
  // login host that no longer answers.
  return hosts::LinkCommand{
      .argv = {std::move(own), "link", kThroughLogin, id, std::to_string(node)},
      .env = proc::own_environment(),
      .dies_with_us = true};
}

Result<int> pass_through_login(const std::vector<std::string>& words,
                               const hosts::RunCommand& run) {
  LOCKSTEP_TRY_ASSIGN(const Way way, read_way(words));
  LOCKSTEP_TRY_ASSIGN(const auto book, JobBook::open_to_look(io::state_folder()));
  LOCKSTEP_TRY_ASSIGN(const KnownJob job, book.find(way.id));
  if (job.nodes.size() != 1)
    return fail(Errc::invalid_input, "job " + job.id + " has no login host");
  io::Loop loop;
  LOCKSTEP_TRY_ASSIGN(const auto endings,
                      run(loop, {.hosts = job.nodes,
                                 .argv = {"link", kToNode, job.id, std::to_string(way.node)},
                                 .own_binary = true}));
  const hosts::HostEnding& ending = endings.at(0);
  if (!ending.error.empty()) return fail(Errc::unavailable, ending.error);
  return ending.code;
}

Result<hosts::LinkCommand> link_on_login(const std::vector<std::string>& words) {
  LOCKSTEP_TRY_ASSIGN(const Way way, read_way(words));
  const auto job = find_submitted(way.id);
  const auto place = job ? slurm_place(*job) : std::nullopt;
  if (!place) return fail(Errc::not_found, "no job " + printable(way.id) + " is known here");
  return link_to_node(*place, way.node);
}

}  // namespace lockstep::jobs::on_slurm
