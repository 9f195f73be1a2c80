#include "slurm/agent_words.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::slurm {

// The user's own options win: Lockstep adds a default only where the user gave none.
std::vector<std::string> agent_words(const AgentWish& wish) {
  // Words behind "--" are the training's, even if they look like options.
  const auto end = std::find(wish.run.begin(), wish.run.end(), "--");
  const auto given = [&](std::string_view option) {
    return std::any_of(wish.run.begin(), end, [&](const std::string& word) {
      return word == option || word.starts_with(std::string(option) + "=");
    });
  };
  std::vector<std::string> words = {"--rdzv-backend=lockstep",
                                    "--rdzv-token-file=" + wish.folder + "/token"};
  if (wish.nodes && wish.min_nodes)
    words.push_back(fmt::format("--nnodes={}:{}", *wish.min_nodes, *wish.nodes));
  else if (wish.nodes)
    words.push_back(fmt::format("--nnodes={}", *wish.nodes));
  if (wish.spares > 0) words.push_back(fmt::format("--spares={}", wish.spares));
  if (!given("--nproc-per-node") && !given("--slots"))
    words.push_back(fmt::format("--nproc-per-node={}", wish.workers));
  // Allow restarts where nodes may be lost. A rank often fails before its agent notices the lost
  // peer, and without restarts that failure would end the job.
  if ((wish.spares > 0 || wish.min_nodes) && !given("--max-restarts"))
    words.emplace_back("--max-restarts=3");
  // torchrun ends with 1 for every failure. Report the failed rank's own code to Slurm.
  if (!given("--exit-code")) words.emplace_back("--exit-code=worker");
  // A job of one rank keeps its output unprefixed, as without Lockstep.
  const bool plain = wish.workers == 1 && wish.nodes == 1 && !given("--nproc-per-node");
  if (!plain && !given("--tee") && !given("--redirects")) {
    words.emplace_back("--tee=3");
    words.push_back("--log-line-prefix-template=" + wish.prefix);
  }
  if (!given("--log-dir")) words.push_back("--log-dir=" + wish.folder + "/ranks");
  words.insert(words.end(), wish.run.begin(), wish.run.end());
  return words;
}

}  // namespace lockstep::slurm
