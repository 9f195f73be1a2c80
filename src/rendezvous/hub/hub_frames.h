// The frames of the `lockstep` rendezvous, pure: what agents and the coordinator say to each other,
// as bytes. docs/protocols/lockstep-rendezvous.md describes them; every length and count is
// bounded.
#pragma once

#include "codec/wire.h"
#include "rendezvous/launched.h"
#include "rendezvous/round.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lockstep::rendezvous::hub {

inline constexpr std::uint16_t kVersion = 1;
// Both sides begin with it. Its end makes a web server answer at once, so that it can be told.
inline constexpr std::string_view kPreamble = "LOCKSTEP HUB\r\n\r\n";

using Nonce = std::array<std::uint8_t, 16>;
using Mac = std::array<std::uint8_t, 32>;

// Bounds of what a frame may hold: a peer makes us keep no more than that, whatever it sends.
inline constexpr std::size_t kMaxName = 256;  // roles, hosts, addresses
inline constexpr std::size_t kMaxRunId = 1024;
inline constexpr std::size_t kMaxLine = 4096;         // reasons for people
inline constexpr std::size_t kMaxReport = 1U << 20;   // one node's report
inline constexpr std::size_t kMaxReports = 4U << 20;  // all of them
inline constexpr std::size_t kMaxNodes = 65'536;
inline constexpr std::size_t kMaxVoters = 63;
inline constexpr std::int32_t kMaxWorkers = 1 << 20;  // of one node

// --- opening a connection ---

// The layouts of Hello's first field and of Refusal never change, so that any two versions can tell
// each other what is wrong.
struct Hello {  // agent: first of all
  std::uint16_t version = kVersion;
  bool has_token = false;
  Nonce nonce{};
  Nonce agent{};  // random, one per agent process: known again after a broken connection
  std::string run_id;
  std::string name;  // of the node, for messages
  bool operator==(const Hello&) const = default;
};
struct Challenge {  // hub, where there is a token
  Nonce nonce{};
  bool operator==(const Challenge&) const = default;
};
struct Proof {  // agent
  Mac mac{};
  bool operator==(const Proof&) const = default;
};
struct Welcome {  // hub: the connection is good
  Mac mac{};      // the hub's own proof; zeros without a token
  std::uint32_t heartbeat_ms = 1000;
  std::uint32_t dead_ms = 5000;  // whoever is silent for so long is gone, agent or hub
  bool operator==(const Welcome&) const = default;
};
enum class Why : std::uint8_t {
  version,
  run_id,
  token,
  closed,     // the job is over
  settings,   // --nnodes, --node-rank: the agents don't fit together
  timeout,    // the agent has waited as long as it said it would
  leaving,    // the host goes
  malformed,  // the bytes make no sense
};
struct Refusal {  // hub, then it closes the connection or, after a Join, lets it be
  Why why = Why::closed;
  std::string text;
  std::string hint;
  bool operator==(const Refusal&) const = default;
};

// --- rounds ---

struct Join {  // agent
  // On a new connection: what this node's workers of the last round do. A node that holds something
  // does not ask for a new round, but for the last one to go on.
  enum class Holds : std::uint8_t { nothing, running, finished };
  std::string role = "default";
  std::int32_t local_world_size = 1;
  std::string host;
  std::string address;
  std::int32_t node_rank = -1;  // -1: not given
  std::int32_t max_restarts = 0;
  std::uint32_t min_nodes = 1;
  std::uint32_t max_nodes = 1;
  std::uint32_t join_timeout_ms = 0;
  // The round that this node was in last, for a hub that has taken over and knows nothing of it;
  // -1: none.
  std::int64_t last_round = -1;
  std::int32_t last_rank = -1;
  std::int32_t last_nodes = 0;
  std::int32_t restarts = 0;
  Holds holds = Holds::nothing;
  Launched launched = {};
  bool replacement = true;  // false with --no-replacement: a lost node's place stays empty
  bool operator==(const Join&) const = default;
};
NodeFacts facts_of(const Join& join);
struct StoreWanted {  // hub, to rank 0: open the workers' store
  std::int64_t round = 0;
  bool operator==(const StoreWanted&) const = default;
};
struct StoreOffer {  // agent; a text in `error` says why there is none
  std::int64_t round = 0;
  std::string addr;
  std::int32_t port = 0;
  std::string error;
  bool operator==(const StoreOffer&) const = default;
};
struct Placed {  // hub: the answer to Join
  Round round;
  bool operator==(const Placed& other) const;
};
struct Ended {  // hub: the answer to Join for a spare, when the job ended without it
  bool operator==(const Ended&) const = default;
};
struct Failed {  // agent: a worker has failed
  std::int64_t round = 0;
  bool final = false;
  std::string line;
  bool operator==(const Failed&) const = default;
};
struct Interrupted {  // hub: the round is over
  std::int64_t round = 0;
  bool end = false;  // and with it the job
  std::string why;
  bool operator==(const Interrupted&) const = default;
};
struct Finish {  // agent: all of its workers ended well
  std::int64_t round = 0;
  bool operator==(const Finish&) const = default;
};
struct Finished {  // hub: those of all nodes have
  std::int64_t round = 0;
  bool operator==(const Finished&) const = default;
};

// --- the end ---

struct Report {
  std::string host;
  std::int32_t group_rank = 0;
  std::string text;
  bool operator==(const Report&) const = default;
};
struct TellReport {  // agent
  std::uint32_t timeout_ms = 0;
  Report report;
  bool operator==(const TellReport&) const = default;
};
struct Reports {  // hub
  std::vector<Report> reports;
  bool operator==(const Reports&) const = default;
};
struct Leave {  // agent
  enum class How : std::uint8_t { succeeded, failed, stopped, returns };
  How how = How::succeeded;  // returns: it will be back on a new connection
  bool operator==(const Leave&) const = default;
};
struct Left {  // hub: that has been noted
  bool operator==(const Left&) const = default;
};
// The end of the status that a spare hears, by which it knows that its patience has no end.
inline constexpr std::string_view kSpareStatus = ", this one is a spare";

struct Beat {          // both, once per heartbeat_ms
  std::string status;  // hub, to those who wait: what is being waited for; else empty
  bool operator==(const Beat&) const = default;
};

// --- succession: the job outlives the node that hosts the hub ---

// The nodes whose word counts. A quorum is more than half of them, or half with `first`, the node
// that hosted the hub when they were written down: any two quorums have a node in common.
struct Voter {
  Nonce agent{};
  std::uint32_t place = 0;  // in the list of hosts
  bool operator==(const Voter&) const = default;
};
struct Voters {
  Nonce first{};
  std::vector<Voter> all;
  bool operator==(const Voters&) const = default;
};
// What every node writes down of the job, for the hub that comes next. What a quorum of both `now`
// and `before` has written down holds.
struct Charter {  // hub
  std::uint64_t term = 0;
  std::uint64_t version = 0;
  Voters now;
  Voters before;
  std::int64_t round = -1;  // the last one; -1: none
  std::int32_t restarts = 0;
  std::int32_t lead = -1;              // rank of the hub's own node
  std::vector<std::int32_t> finished;  // ranks that may not be there to say that they have
  enum class End : std::uint8_t { none, succeeded, failed };
  End end = End::none;
  std::string why;
  bool operator==(const Charter&) const = default;
};
struct Call {  // hub: it would lead, or leads, in this term
  std::uint64_t term = 0;
  bool operator==(const Call&) const = default;
};
struct Testimony {  // agent, to a Call; it takes no charter of an earlier term from now on
  std::uint64_t promised = 0;
  std::uint32_t place = 0;
  Charter charter;
  bool operator==(const Testimony&) const = default;
};
struct Agreed {  // agent: it has written that charter down
  std::uint64_t term = 0;
  std::uint64_t version = 0;
  bool operator==(const Agreed&) const = default;
};

using Frame = std::variant<Hello, Challenge, Proof, Welcome, Refusal, Join, StoreWanted, StoreOffer,
                           Placed, Ended, Failed, Interrupted, Finish, Finished, TellReport,
                           Reports, Leave, Left, Beat, Call, Testimony, Charter, Agreed>;

// The run id as the other side reads it, which may be cut or cleaned. Both sides compare, and
// prove, this form of it: otherwise a long run id would make a good token look wrong.
std::string run_id_on_the_wire(const std::string& run_id);
// Appends the frame, header included. Texts longer than their bound are cut.
void put_frame(std::string& out, const Frame& frame);
std::string frame_bytes(const Frame& frame);
// The content of one frame: type byte and fields, nothing left over. nullopt: nonsense.
std::optional<Frame> parse_frame(std::string_view content);
std::string_view frame_name(const Frame& frame);

// Cuts the bytes of one connection into the preamble and frames. It keeps no more than the limit,
// and no more than was really sent, whatever a header claims.
class FrameReader {
 public:
  static constexpr std::size_t kBeforeWelcome = 2048;  // strangers may be many: a greeting is short
  static constexpr std::size_t kFromAgents = kMaxReport + 4096;
  static constexpr std::size_t kFromHub = kMaxReports + kMaxReport + 4096;

  enum class Step { frame, more, error };
  // Takes bytes off the front of `chunk`. more: the chunk is used up. error: no frame ever follows.
  Step next(std::string_view& chunk, Frame& frame);
  void set_limit(std::size_t bytes) { limit_ = bytes; }

  const std::string& error() const { return error_; }
  // What came in place of the preamble; recognise() tells who speaks so.
  const std::string& stranger() const { return stranger_; }

 private:
  Step read_preamble(std::string_view& chunk);
  Step broken(std::string text);

  std::size_t limit_ = kBeforeWelcome;
  bool greeted_ = false;
  bool broken_ = false;
  std::string preamble_;  // as far as it has come
  codec::wire::FrameCutter cutter_;
  std::string error_;
  std::string stranger_;
};

}  // namespace lockstep::rendezvous::hub
