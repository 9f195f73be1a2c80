// The nodes that the coordinator knows: the connected ones by stage and rank, and those that have
// lost their connection and are expected back. Pure.
#pragma once

#include "rendezvous/hub/coordinator_settings.h"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::rendezvous::hub {

class Roster {
 public:
  enum class Stage {
    idle,       // has not asked for anything
    joined,     // asks for a place in the next round
    placed,     // has a place in the current round
    finished,   // has a place; the node's workers have ended well
    vote_only,  // a voter without ranks, which never joins
  };
  // A connected node. The roster counts the nodes by stage and rank, so only the roster sets these.
  class Member {
   public:
    PeerId peer = 0;
    Nonce agent{};
    std::string name;
    Join offer;
    bool returning = false;     // back on a new connection; will join again
    bool repeats_join = false;  // the join of the old connection counts; ignore the next one
    Time joined_at{};
    Ms heard{0};  // time of the last sign of life, on the SilenceClock
    std::uint64_t arrival = 0;
    std::string out_of_patience;  // reason of a timed out join

    Stage stage() const { return stage_; }
    int rank() const { return rank_; }  // in the current round; -1: none
    std::string called() const { return offer.host.empty() ? name : offer.host; }

   private:
    friend class Roster;
    Stage stage_ = Stage::idle;
    int rank_ = -1;
  };
  using Members = std::map<PeerId, Member>;

  // Adds an idle node. The node is no longer expected back.
  Member& add(PeerId peer, const Nonce& agent, const std::string& name, Ms heard);
  // Moves a node with all that is known of it to a new connection.
  Member& move(PeerId from, PeerId to, Ms heard);
  std::optional<Member> remove(PeerId peer);
  void set_stage(Member& member, Stage stage);
  void set_rank(Member& member, int rank);
  void clear_ranks();
  void hear(PeerId peer, Ms heard);

  Member* find(PeerId peer);
  Member* of(const Nonce& agent);
  Member& at(PeerId peer) { return members_.at(peer); }
  const Member& at(PeerId peer) const { return members_.at(peer); }
  const Members& members() const { return members_; }  // by arrival of their connections
  std::vector<Member*> in(Stage stage);
  std::vector<const Member*> joined() const;
  // Returns another node with this node rank that takes part or wants to; nullptr: none.
  const Member* with_node_rank(int node_rank, const Member& except) const;
  // Returns the nodes without a sign of life for as long as `dead`.
  std::vector<PeerId> silent(Ms now, Ms dead) const;

  std::size_t size() const { return members_.size(); }
  std::size_t count(Stage stage) const { return counts_[static_cast<std::size_t>(stage)]; }
  std::size_t ranked() const { return ranked_; }  // nodes with a rank
  // Returns how many nodes take part in a round or want to.
  std::size_t taking_part() const {
    return members_.size() - count(Stage::idle) - count(Stage::vote_only);
  }
  // Returns how many nodes a round could still have. Nodes expected back count.
  std::size_t viable() const { return taking_part() + away_.size(); }

  // --- nodes that have lost their connection ---

  void expect_back(const Member& member, Time until);
  void expect_nobody() { away_.clear(); }
  // Returns the name of a node that did not come back in time, and expects it no longer.
  std::optional<std::string> take_overdue(Time now);
  std::size_t away() const { return away_.size(); }
  std::vector<std::string> away_names() const;

  // --- words ---

  // Returns the names of the nodes in one of the stages; of_round: only nodes with a rank.
  std::string names(std::initializer_list<Stage> stages, bool of_round) const;
  // Returns which `count` expected nodes have not joined, as " (n3, n4)". Empty if the scheduler's
  // names do not match the nodes' own names.
  std::string absent(const std::vector<std::string>& expected, std::size_t count) const;

 private:
  struct Away {
    std::string name;
    Time until{};
  };

  Members members_;
  std::map<Nonce, PeerId> peer_of_;  // agent -> connection; thousands may arrive at once
  std::map<Nonce, Away> away_;
  std::array<std::size_t, 5> counts_{};  // members by stage
  std::size_t ranked_ = 0;
  std::uint64_t arrivals_ = 0;
};

}  // namespace lockstep::rendezvous::hub
