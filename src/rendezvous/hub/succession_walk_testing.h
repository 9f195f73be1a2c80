// A model of a job with succession, small enough to walk through all its states: real witnesses,
// real ledgers, the real order of the search (line.h), and a network that delivers each message at
// any time. Time is abstract: a timeout may fire whenever its cause is there.
#pragma once

#include "rendezvous/hub/ledger.h"
#include "rendezvous/hub/line.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::rendezvous::hub {

// Two states with the same sum have the same future. So a sum leaves out what nobody will read
// again, like the testimony of an older term.
class Sum {
 public:
  template <class... Values>
  void add(const Values&... values) {
    (mix(static_cast<std::uint64_t>(values)), ...);
  }
  void add_charter(const Charter& charter);
  void add_voters(const Voters& voters);
  std::uint64_t value() const { return sum_ ^ (sum_ >> 31); }

 private:
  void mix(std::uint64_t value) {
    sum_ = (sum_ ^ value) * 0x9E3779B97F4A7C15ULL;
    sum_ ^= sum_ >> 29;
  }
  std::uint64_t sum_ = 0x1234567;
};

// Returns whether the witness has promised a later term. A charter that it has agreed to before may
// be repeated.
inline bool must_refuse(const Witness& witness, const Charter& charter) {
  return charter.term < witness.promised() && is_newer(charter, witness.charter());
}

// Reads the private state of a ledger.
struct LedgerPeek {
  static void add(Sum& sum, const Ledger& ledger);
  // Adds an answer of a node that the ledger has received or will receive.
  static void add_answer(Sum& sum, const Ledger& ledger, const Testimony& testimony);
  static void add_answer(Sum& sum, const Ledger& ledger, const Agreed& agreed);
  // Returns whether the nodes with these promises could still agree to a charter of the ledger.
  static bool may_decide(const Ledger& ledger, const std::set<Nonce>& supporters);
  static std::uint64_t term(const Ledger& ledger) { return ledger.term_; }
};

namespace testing {

struct WalkBounds {
  int nodes = 3;
  int crashes = 1;
  int cuts = 1;               // partitions; each is healed at any time, or never
  int writes = 1;             // new rounds or ends that leaders record, in all
  int openings = 2;           // hubs that nodes open in their search, in all
  int steps = 6;              // timeouts of searching nodes, in all
  bool begun = true;          // false: the walk starts before the first round
  bool last_votes = false;    // the last node hosts no hub, and runs no ranks (remote_vote.h)
  bool single_links = false;  // also cut single links, not only groups of nodes
  bool prompt = true;         // false: prompt() leaves more orders to try than needed
};

class WalkState {
 public:
  enum class Kind {
    to_node,      // the next message of node a's connection arrives at the node
    to_hub,       // the next message from node b arrives at the hub of a
    connect,      // node a reaches the hub that it dials
    step,         // node a's patience with its stop ends
    node_misses,  // node a takes its silent hub for gone
    hub_misses,   // the hub of a takes the silent node b for gone
    step_down,    // the hub of a has had no quorum for too long
    write_round,  // the leading hub of a wants a new round, after a failure
    write_end,    // the leading hub of a wants to end the job
    kill,         // node a dies; its connections are closed
    power_cut,    // node a dies without a word
    cut,          // from now on the links of set a are cut, see cut()
    heal,
  };
  struct Event {
    Kind kind{};
    int a = 0;
    int b = 0;
  };

  explicit WalkState(const WalkBounds& bounds);

  std::vector<Event> events() const;
  void apply(const Event& event);
  std::uint64_t sum() const;
  // Returns what is left of the bounds, a byte for each. A state may do whatever the same state
  // with less may do.
  std::uint64_t budget() const;
  // Returns what is wrong with this state; empty: nothing.
  const std::string& fault() const { return fault_; }
  void check();
  // Ends the noise, lets everything happen in the order of real time, and returns what is wrong in
  // the end. The living nodes must have a leader that can record one more round. `luck` decides
  // how much of its patience each searching node has used up, and how long hubs stay open.
  std::string settle(std::uint64_t luck);
  // Node 0 dies without a word, and node i notices that after `notices[i]` ms. Returns how many ms
  // after its death the others have a leader; at most `most`.
  int meet(std::uint64_t luck, const std::vector<int>& notices, int most);

  // Returns whether a fault has just happened, and no node has noticed yet.
  bool has_news() const { return news_ != News::none; }
  bool led_again() const { return led_again_; }
  bool ended() const { return ended_; }
  static std::string text(const Event& event);
  std::string text() const;

 private:
  struct Node {
    Witness witness;
    bool alive = true;
    bool linked = false;
    int hub = 0;  // the place of its hub, or of the hub that it dials
    bool searching = false;
    bool closed = false;
    std::uint32_t leader = 0;
    std::vector<LineStop> stops = {};
    std::size_t next = 0;
    bool waited = false;    // for settle(): once more at a hub that does not lead yet
    bool at_first = false;  // for settle(): at the first host of the line
    int due = 0;            // for settle(): the time in ms at which its patience ends
  };
  struct Hub {
    Ledger ledger;
    int number = 0;  // of the opening
    bool led = false;
    std::int64_t round = -1;  // the part of its coordinator: the round that runs
    std::int64_t wish = -1;
    bool over = false;
    int lacks_quorum = 0;  // for settle(): ms
  };
  using Mail = std::shared_ptr<const Frame>;  // null: the connection is closed
  struct Link {  // between a node and a hub, in order in each direction
    bool node_up = false;
    bool hub_up = false;
    std::vector<Mail> down;
    std::vector<Mail> up;
  };

  std::size_t size() const { return nodes_.size(); }
  Link& link(int node, int hub) { return links_[at(node) * size() + at(hub)]; }
  const Link& link(int node, int hub) const { return links_[at(node) * size() + at(hub)]; }
  bool only_votes(int node) const { return left_.last_votes && node == left_.nodes - 1; }
  std::uint32_t place(int node) const {
    return only_votes(node) ? kVoteOnly : static_cast<std::uint32_t>(node);
  }
  static std::size_t at(int number) { return static_cast<std::size_t>(number); }
  bool blocked(int from, int to) const { return ((cut_[at(from)] >> to) & 1U) != 0; }
  bool reaches(int node, int hub) const { return !blocked(node, hub) && !blocked(hub, node); }

  void add_node_events(std::vector<Event>& events, int number) const;
  void add_hub_events(std::vector<Event>& events, int number) const;
  void add_faults(std::vector<Event>& events) const;
  bool needs_fault(const Event& event) const;
  void add_node(Sum& sum, int number) const;
  void add_link(Sum& sum, int number, int hub) const;
  std::optional<Event> prompt() const;
  void to_node(int node);
  void to_hub(int hub, int node);
  void connect(int node);
  void hang_up(int node);
  void lost(int node, bool closed);
  void step(int node);
  void open_hub(int node, bool takes_over);
  void close_hub(int node);
  void die(int node, bool told);
  void cut(int set, int how);
  void pump(int hub);
  void lead(Hub& hub);
  void write(int hub, bool end);
  void wrong(const std::string& what) {
    if (fault_.empty()) fault_ = what;
  }
  bool deliver();
  void wait(int ms);
  bool leads(int hub) const;
  void drain();
  bool living_may_decide() const;

  WalkBounds left_;  // the budget
  std::vector<Node> nodes_;
  std::vector<std::optional<Hub>> hubs_;
  std::vector<Link> links_;
  std::array<std::uint8_t, 8> cut_{};  // by sender: a bit for each receiver
  bool is_cut_ = false;
  // A fault that no node has noticed yet: the next event shows the fault to a node.
  enum class News { none, death, cut, heal };
  News news_ = News::none;
  int dead_ = 0;                          // News::death
  std::array<std::uint8_t, 8> healed_{};  // News::heal: the links that were cut
  int openings_ = 0;
  std::uint64_t luck_ = 1;  // for settle()
  bool late_ = false;       // for meet(): meet() decides when a node misses its hub
  // History, for the oracle
  std::vector<int> permitted_;  // by round: the opening of the hub that permitted it; -1: none
  std::int64_t last_permitted_ = -1;
  bool ended_ = false;
  bool led_again_ = false;
  std::string fault_;
};

}  // namespace testing
}  // namespace lockstep::rendezvous::hub
