// A job of many agents under random faults, in simulated time. Coordinators, ledgers, witnesses,
// members and the order of the search are real. The network, the processes, and what the drivers
// (hub_server.h, hub_succession.h, the agent) do around these classes are played here.
#pragma once

#include "rendezvous/hub/coordinator.h"
#include "rendezvous/hub/end_hold.h"
#include "rendezvous/hub/hub_member_core.h"
#include "rendezvous/hub/ledger.h"
#include "rendezvous/hub/line.h"
#include "rendezvous/hub/quorum_watch.h"
#include "rendezvous/hub/search_patience.h"

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lockstep::rendezvous::hub::testing {

struct StormSettings {
  std::uint32_t seed = 1;
  int nodes = 64;
  std::size_t min_nodes = 20;
  std::size_t max_nodes = 40;
  int faults = 40;
  bool lists_hosts = false;  // the nodes know the endpoint alone, and learn the list from the hub
};

// The oracle's memory of the job. Every function returns what is wrong; empty: nothing.
class StormOracle {
 public:
  struct Told {
    std::int64_t round = 0;
    int rank = 0;
    int size = 0;
    int restarts = 0;
  };
  std::string permitted(int hub, const Charter& charter, Time now);
  std::string led(const Charter& left);
  std::string placed(int hub, const Told& told, const Nonce& agent);
  // A node runs workers of `round`, and has run without a pause since `awake`.
  std::string works(std::int64_t round, Time awake, Time now) const;
  void failed(std::int64_t round) { failed_.insert(round); }
  // A hub counts a restart because too few nodes are left.
  void bereft() { failed_.insert(last_); }
  // A hub has told a node that the job has ended well.
  std::string finished() const {
    return end_ == Charter::End::succeeded ? "" : "a node is told an end that is not recorded";
  }
  bool ended() const { return end_ != Charter::End::none; }
  std::int64_t last() const { return last_; }
  int restarts() const { return restarts_; }

 private:
  struct Placing {
    int hub = 0;
    int size = 0;
    int restarts = 0;
    std::map<int, Nonce> ranks;
  };
  std::map<std::int64_t, int> by_;  // the hub that permitted a round
  std::map<std::int64_t, Placing> placed_;
  std::set<std::int64_t> failed_;  // rounds that may cost a restart
  std::int64_t last_ = -1;
  Time last_at_{};
  int restarts_ = 0;
  Charter::End end_ = Charter::End::none;
};

class Storm {
 public:
  struct Counts {
    int faults = 0;
    int at_leader = 0;
    int takeovers = 0;
    int rounds = 0;
    int restarts = 0;
    int ended = 0;   // jobs with a recorded end
    int lost = 0;    // jobs that ended because too few nodes came together
    int heirs = 0;   // leaders that inherited the end
    int doomed = 0;  // lost jobs of which too few voters were left
    Ms slowest{0};   // from the end, or the last fault, to the last exit
    void add(const Counts& other);
  };

  explicit Storm(const StormSettings& settings);
  void run();
  const Counts& counts() const { return counts_; }
  const std::string& fault() const { return fault_; }
  std::string trace() const;  // the faults and the hubs, in order

 private:
  using Mail = std::shared_ptr<const Frame>;  // null: the connection is closed
  struct Sent {
    Mail mail;
    Time due;
  };
  enum Way : std::uint8_t { down, up };
  struct Conn {
    int agent = 0;
    int place = 0;  // of the hub
    int hub = 0;    // its number
    bool agent_up = true;
    bool hub_up = true;
    std::array<std::deque<Sent>, 2> ways = {};
  };
  struct Guest {
    Nonce agent{};
    Time heard{};  // in the world's time
    std::vector<Frame> kept;
  };
  struct Hub {
    int number = 0;
    CoordinatorSettings rules;
    Ledger ledger;
    Coordinator coordinator;
    bool leads = true;
    bool deposed = false;
    EndHold end = {};
    int restarts = 0;  // counted
    QuorumWatch quorum = QuorumWatch(Ms(2'500));
    std::map<PeerId, Guest> guests = {};
  };
  struct Dialing {
    Time until;
    Time refused_until;
    Time next;
    PeerId conn = 0;  // greets
  };
  struct Search {
    bool on = false;
    bool over = false;
    bool closed = false;
    bool waited = false;
    bool at_first = false;
    std::uint32_t leader = 0;
    std::uint32_t place = 0;
    SearchPatience until;
    std::vector<LineStop> stops;
    std::size_t next = 0;
    std::optional<Time> due;
  };
  struct Agent {
    // the machine
    bool powered = true;
    Ms clock{0};  // ahead of the world's
    Ms slow{0};
    Time slow_until;
    // the process
    bool alive = false;
    bool stopped = false;
    bool in_play = false;  // its turn is on; tells keep their order
    Time awake;
    Time wakes;
    Nonce nonce{};
    std::optional<Witness> witness;
    std::optional<HubMemberCore> core;
    std::optional<Hub> hub;
    std::optional<Dialing> dialing;
    PeerId conn = 0;
    Time heard{};    // the last frame, in the world's time
    int target = 0;  // the place of its hub
    Search search;
    std::int64_t works = -1;     // the round whose workers run; -1: none
    std::int64_t finished = -1;  // the round whose workers have ended well
    std::optional<Time> rejoins;
    std::optional<Time> finishes;
    std::optional<Time> leaves;
    std::optional<Time> succeeds;
    std::optional<Time> exits;  // it has left, and waits for its hub's guests
  };
  enum class Fault : std::uint8_t { kill, power, stop, cut, cut_one_way, slow, jump, back, fail };

  // the world (succession_storm_testing.cc)
  void play(Ms time);
  void turn();
  void play_agent(int number);
  void deliver(PeerId id, Way way);
  void send(PeerId id, Way way, Mail mail);
  void close_agent_end(PeerId id);
  void close_hub_end(PeerId id);
  void schedule(PeerId id, Way way, Time due);
  bool blocked(int from, int to) const;
  Time local(const Agent& agent) const { return now_ + agent.clock; }
  Ms up_to(int ms) { return Ms(random_() % static_cast<unsigned>(ms)); }
  std::size_t pick(std::size_t below) { return random_() % below; }
  void note(std::string text);
  void wrong(const std::string& what);

  // faults (succession_storm_testing.cc)
  void begin(int number, bool hosts);
  void strike();
  void hit(Fault fault, int victim);
  void strike(Fault fault, int victim);
  void cut(int victim, bool one_way);
  std::vector<PeerId> conns_of(int number) const;
  void end_process(int number, bool told);
  int leader() const;
  int living() const;

  // the course of a job and the judgement (succession_storm_oracle_testing.cc)
  void check();
  void judge_end(Time faults_over, bool could_go_on);
  bool has_voters(bool with_searching) const;
  void settle();
  std::string words(int number) const;

  // what the drivers do (succession_storm_nodes_testing.cc)
  void dial(int number);
  void hear(int number, const Mail& mail);
  void happened(int number);
  void do_steps(int number);
  void tell(int number, HubMemberCore::Outcome outcome);
  void lost(int number, const Error& error);
  void found(int number);
  void step(int number);
  void give_up(int number);
  void move_to(int number, int place);
  int way_in(int number) const;
  std::uint32_t own_place(int number) const;
  void leave(int number, Departure how);
  void open_hub(int number, bool takes_over);
  void close_hub(int number);
  void welcome(int number, PeerId id);
  void take(int number, PeerId id, const Mail& mail);
  void lose(int number, PeerId id, const std::string& why);
  void pump(int number);
  void pump_coordinator(int number);
  void send_output(int number);
  bool pump_ledger(int number);
  void lead(int number);
  void depose(int number, const std::string& why);
  void tick_hub(int number);

  StormSettings settings_;
  std::mt19937 random_;
  Time now_{std::chrono::hours(1)};
  std::vector<Agent> agents_;
  std::unordered_map<PeerId, Conn> conns_;
  std::map<Time, std::vector<std::pair<PeerId, Way>>> due_;
  std::vector<std::set<int>> cut_;  // by sender: receivers
  std::optional<Time> heals_;
  std::optional<Time> ended_at_;
  std::set<Nonce> gave_up_;
  // Too few voters were left to go on, even together with those that have given up.
  bool doomed_ = false;
  std::set<std::int64_t> failures_;  // rounds that a node finished before it failed
  PeerId last_conn_ = 0;
  int openings_ = 0;
  std::uint64_t lives_ = 0;
  std::shared_ptr<const std::string> parsed_bytes_;
  Mail parsed_;
  StormOracle oracle_;
  Counts counts_;
  std::string fault_;
  std::vector<std::string> notes_;
};

}  // namespace lockstep::rendezvous::hub::testing
