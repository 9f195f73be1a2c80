// The looks of all nodes of a job. Each node tells the leader (group rank 0) the fold of its ranks,
// the leader merges the folds for its Judge, and tells all nodes the verdict. Pure.
//
// News are sent when something has changed. Without a change, a short line every few seconds says
// that the node still looks. Clocks of machines are not compared: ages are told, and grow on the
// clock of the reader.
#pragma once

#include "io/loop.h"
#include "looks/fold.h"
#include "looks/wait_shares.h"
#include "looks/world_news.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::looks {

struct WorldRules {
  Millis refresh = Millis(2000);  // between news without a change
  Millis waits = Millis(10'000);  // the least time between shares of waits that have changed
  // News on a board replace the earlier ones, and the leader reads them once a second
  // (rendezvous/news_board.h). So all news within this time have the shares.
  Millis waits_stay = Millis(2000);
  // Shares that have not changed are told again: news may be lost.
  Millis waits_again = Millis(60'000);
  Millis silent = Millis(5000);  // nothing is claimed about a node that is silent for so long
  // Folds of the leader to all nodes, in all. More nodes hear them less often.
  std::size_t bytes_per_second = 256U << 10;
};

// Decides what a node tells the leader.
class NodeTeller {
 public:
  explicit NodeTeller(const WorldRules& rules = {}) : rules_(rules) {}

  // Facts of a node beside its fold: see NodeNews.
  struct Besides {
    std::map<int, std::uint32_t> pids = {};
    std::map<int, int> gpus = {};
    std::string recorders = {};
    std::string waits = {};  // "": no shares
    bool lacks = false;
    std::optional<int> timed_out = {};
  };
  // Returns the message to send after a look. nullopt: none.
  std::optional<NodeNews> feed(const Fold& fold, const Besides& besides, io::TimePoint now);
  // The last news were lost: the next ones tell everything.
  void forget() { told_.reset(); }

 private:
  bool is_as_told(const Fold& fold, io::TimePoint now) const;
  bool tells_waits(const std::string& waits, io::TimePoint now);

  WorldRules rules_;
  std::optional<Fold> told_;
  std::string waits_;
  io::TimePoint told_waits_ = {};
  std::map<int, std::uint32_t> pids_;
  std::map<int, int> gpus_;
  std::string recorders_;
  std::optional<int> timed_out_;
  io::TimePoint told_at_ = {};
  io::TimePoint spoke_ = {};
  std::int64_t number_ = 0;
};

// The leader's view of all nodes.
class WorldLooks {
 public:
  // nodes, ranks: of the round. This node is the one with group rank 0.
  explicit WorldLooks(int nodes = 1, int ranks = 1, const WorldRules& rules = {});

  // Takes a message of another node. Drops malformed messages, and those of unknown nodes. Returns
  // whether the node lacks the fold of all nodes.
  bool hear(int node, std::string_view news, io::TimePoint now);
  // Returns the fold of all nodes that are not silent. Ages have grown since they were told, but by
  // no more than `refresh` since the node's last news.
  Fold merged(const Fold& own, io::TimePoint now) const;
  // Returns which nodes are silent: "node n2 has not told for 5 s", a line for each. Nodes that
  // have never told anything share the last line.
  std::vector<std::string> silences(io::TimePoint now) const;
  // Returns the first of these lines. "": no node is silent.
  std::string silence(io::TimePoint now) const;
  // Returns the nodes whose folds are not known.
  std::vector<int> unknown() const;
  // What the recorders of a node say, and the number of the news that said so.
  struct Recorders {
    std::int64_t number;
    std::string_view text;
  };
  // Returns those of the nodes that are not silent and have something to say, by group rank.
  std::map<int, Recorders> recorders(io::TimePoint now) const;
  // Returns the shares of waits of all ranks, those of this node by `own` (waits_text()). Leaves
  // out nodes that tell none. nullopt: a node is silent, or its ranks are not known yet.
  std::optional<std::map<int, WaitShare>> waits(const std::string& own, io::TimePoint now) const;
  // Returns the rank whose watchdog has timed out, as a node has told: see NodeNews.
  std::optional<int> timed_out() const { return timed_out_; }
  // Returns the told pids of ranks. Leaves out a pid of two ranks: containers number their
  // processes alike.
  std::map<int, std::uint32_t> pids(const std::map<int, std::uint32_t>& own) const;
  // Returns the told index of a rank's GPU on its node.
  std::optional<int> gpu_of(int rank) const;

 private:
  struct Heard {
    std::int64_t number = 0;
    std::optional<Fold> fold = {};
    std::map<int, std::uint32_t> pids = {};
    std::map<int, int> gpus = {};
    std::string recorders = {};
    std::optional<NodeWaits> waits = {};
    io::TimePoint received = {};
    io::TimePoint heard = {};
  };
  bool is_silent(const Heard& node, io::TimePoint now) const {
    return !node.fold || now - node.heard >= rules_.silent;
  }

  WorldRules rules_;
  int ranks_;
  std::optional<int> timed_out_;
  std::vector<Heard> nodes_;  // by group rank; the first one is this node, and stays empty
};

// Decides what the leader tells all nodes.
class WorldTeller {
 public:
  explicit WorldTeller(int nodes = 1, const WorldRules& rules = {})
      : nodes_(nodes), rules_(rules) {}

  // news: the whole state of the job. Returns the message to send; nullopt: none.
  std::optional<WorldNews> feed(WorldNews news, io::TimePoint now);
  // The last news were lost: the next ones tell everything.
  void forget();
  // A node has missed the last fold: tells it again, unless a pause is due.
  void repeat_fold() { fold_.reset(); }

 private:
  io::Duration pause_after(std::size_t bytes) const;

  int nodes_;
  WorldRules rules_;
  std::optional<WorldNews> told_;  // without its fold
  std::optional<Fold> fold_;       // as told
  std::int64_t number_ = 0;
  io::TimePoint spoke_ = {};
  io::TimePoint fold_due_ = {};
};

// The leader's verdict, as another node knows it.
class WorldView {
 public:
  explicit WorldView(const WorldRules& rules = {}) : rules_(rules) {}

  // Returns whether an alarm has begun.
  bool hear(std::string_view news, io::TimePoint now);
  bool knows() const { return known_; }
  const WorldNews& news() const { return news_; }
  // Returns the verdict in a line, which says if the leader is silent.
  std::string words(io::TimePoint now) const;
  // Returns the last verdict that the leader told, although it may be silent now: a node knows too
  // little for a verdict of its own. nullopt: it has told none.
  std::optional<Verdict> verdict() const { return known_ ? news_.verdict : std::nullopt; }
  // Returns what the leader is called: "node n1", or "node 0 of the round".
  std::string leader() const;
  // Merges the last fold of all nodes with that of this node, which is newer.
  Fold merged(const Fold& own) const;
  bool asks(int node) const;
  bool lacks_fold() const { return known_ && news_.number != fold_number_; }

 private:
  WorldRules rules_;
  WorldNews news_;  // with the last fold that was told
  std::int64_t fold_number_ = 0;
  bool known_ = false;
  io::TimePoint heard_ = {};
};

}  // namespace lockstep::looks
