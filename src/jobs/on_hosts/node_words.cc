#include "jobs/on_hosts/node_words.h"

#include "hosts/log_lines.h"

#include <fmt/core.h>

namespace lockstep::jobs::on_hosts {
namespace {

using Words = std::vector<std::string>;

// A job of one worker prints its lines as they are. Lines of several workers need a tag, by which
// clients tell them apart.
bool is_plain(const WordsRequest& request, const UserWords& given) {
  if (request.nodes.size() != 1) return false;
  if (given.workers) return given.one_worker;
  const NodeFacts& node = request.nodes[0];
  if (!node.slots.empty()) return node.slots.find(',') == std::string::npos;
  return node.workers.value_or(1) == 1;
}

void add_workers(const NodeFacts& node, const UserWords& given, Words& words) {
  if (given.workers) return;
  if (!node.slots.empty())
    words.push_back("--slots=" + node.slots);
  else if (node.workers)
    words.push_back(fmt::format("--nproc-per-node={}", *node.workers));
}

void add_meeting(const WordsRequest& request, const UserWords& given, std::size_t node,
                 Words& words) {
  if (!given.nodes) words.push_back(fmt::format("--nnodes={}", request.nodes.size()));
  if (!given.run_id && request.run_id.empty()) words.push_back("--rdzv-id=" + request.job);
  if (request.needs_endpoint) {
    words.push_back(fmt::format("--node-rank={}", node));
    // A node rank without a backend would select torchrun's static backend.
    if (!given.backend) words.emplace_back("--rdzv-backend=lockstep");
  }
  // All nodes report the same failure: show it once.
  if (node > 0 && !given.tails) words.emplace_back("--report-tails=none");
}

Words words_of(const WordsRequest& request, const UserWords& given, std::size_t node) {
  const bool alone = request.nodes.size() == 1;
  Words words;
  if (!given.run_id && !request.run_id.empty()) {
    words.push_back("--rdzv-id=" + request.run_id);
    // A single node without a rendezvous would make its own id, as torchrun does.
    if (alone && !given.meeting) words.emplace_back("--rdzv-endpoint=localhost:0");
  }
  if (!is_plain(request, given) && !given.line_form) {
    words.emplace_back("--tee=3");
    words.push_back(std::string("--log-line-prefix-template=") + hosts::kRankTemplate);
  }
  add_workers(request.nodes[node], given, words);
  if (!alone) add_meeting(request, given, node, words);
  if (!alone && request.rented && !given.replacement) words.emplace_back("--no-replacement");
  return words;
}

}  // namespace

std::vector<Words> words_of_nodes(const WordsRequest& request, const UserWords& given) {
  std::vector<Words> words;
  for (std::size_t node = 0; node < request.nodes.size(); ++node)
    words.push_back(words_of(request, given, node));
  return words;
}

}  // namespace lockstep::jobs::on_hosts
