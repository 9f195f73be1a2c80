// The exchange of reports after the failure of a round: collects one report of each node, and makes
// one answer of them that all nodes get. Pure.
#pragma once

#include "rendezvous/hub/coordinator_settings.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace lockstep::rendezvous::hub {

// Belongs to one round: a new round begins with a new exchange. Names the nodes by their ranks.
class ReportExchange {
 public:
  using Bytes = std::shared_ptr<const std::string>;

  // Notes that the node has failed. The report of the first failed node comes first in the answer.
  void failed(int rank);
  // Takes the report of a node, and replaces an earlier one. The first report sets the deadline.
  void tell(int rank, TellReport tell, Time now);
  // Drops the report of a node that joins again.
  void forget(int rank) { told_.erase(rank); }
  // Keeps the last report of a node that leaves, for the nodes that still wait for the answer.
  void leave(int rank);

  // Returns when to answer without the missing reports; nullopt: no node waits.
  std::optional<Time> until() const { return until_; }
  // Returns whether all of `nodes` have told their reports.
  bool complete(std::size_t nodes) const { return told_.size() >= nodes; }
  // Makes the answer, and returns the ranks of the nodes that wait for it.
  std::set<int> close();
  // Returns the answer as a frame; nullptr before close().
  const Bytes& answer() const { return answer_; }

 private:
  std::optional<int> first_failed_;
  std::map<int, Report> told_;  // of the nodes present
  std::map<int, Report> left_;  // of nodes that have left since
  std::optional<Time> until_;
  Bytes answer_;  // kept for late nodes
};

}  // namespace lockstep::rendezvous::hub
