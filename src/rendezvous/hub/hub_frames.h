// The frames of the `lockstep` rendezvous between agents and coordinator, as values and as bytes.
// Pure. docs/protocols/lockstep-rendezvous.md describes the frames. Every length and count is
// bounded.
#pragma once

#include "codec/rdzv_endpoint.h"
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

inline constexpr std::uint16_t kVersion = 4;
// Both sides send the preamble first. It ends like an HTTP head, so a web server answers at once
// and can be recognised.
inline constexpr std::string_view kPreamble = "LOCKSTEP HUB\r\n\r\n";

using Nonce = std::array<std::uint8_t, 16>;
using Mac = std::array<std::uint8_t, 32>;

// Bounds for the content of frames. They limit the memory that a peer can claim.
inline constexpr std::size_t kMaxName = 256;  // roles, hosts, addresses
inline constexpr std::size_t kMaxRunId = 1024;
inline constexpr std::size_t kMaxLine = 4096;         // reasons for people
inline constexpr std::size_t kMaxReport = 1U << 20;   // one node's report
inline constexpr std::size_t kMaxReports = 4U << 20;  // all of them
inline constexpr std::size_t kMaxNews = 256U << 10;   // of a round
inline constexpr std::size_t kMaxNodes = 65'536;
inline constexpr std::size_t kMaxVoters = 63;
inline constexpr std::size_t kMaxHosts = 192;          // in a charter; three sets of voters fit
inline constexpr std::uint32_t kNoPlace = UINT32_MAX;  // this node cannot host the hub
inline constexpr std::uint32_t kVoteOnly = UINT32_MAX - 1;  // a voter without ranks (remote_vote.h)
inline constexpr std::int32_t kMaxWorkers = 1 << 20;        // of one node

// --- opening a connection ---

// The layouts of Hello's first field and of Refusal must never change. They let any two versions
// explain the mismatch.
struct Hello {  // agent: the first frame
  std::uint16_t version = kVersion;
  bool has_token = false;
  Nonce nonce{};
  Nonce agent{};  // random, one per agent process; identifies the agent after a broken connection
  std::string run_id;
  std::string name;  // node name, for messages
  bool operator==(const Hello&) const = default;
};
struct Challenge {  // hub, if there is a token
  Nonce nonce{};
  bool operator==(const Challenge&) const = default;
};
struct Proof {  // agent
  Mac mac{};
  bool operator==(const Proof&) const = default;
};
struct Welcome {  // hub: the greeting has succeeded
  Mac mac{};      // the hub's own proof; zeros without a token
  std::uint32_t heartbeat_ms = 1000;
  std::uint32_t dead_ms = 5000;  // a peer silent for this long is gone, agent or hub
  bool operator==(const Welcome&) const = default;
};
enum class Why : std::uint8_t {
  version,
  run_id,
  token,
  closed,     // the job is over
  settings,   // --nnodes or --node-rank do not fit together
  timeout,    // the agent's own join timeout has passed
  leaving,    // the host goes
  malformed,  // malformed bytes
};
struct Refusal {  // hub; closes the connection, except as the answer to a Join
  Why why = Why::closed;
  std::string text;
  std::string hint;
  bool operator==(const Refusal&) const = default;
};

// --- rounds ---

struct Join {  // agent
  // State of this node's workers of the last round, on a new connection. A node that holds
  // something asks to continue the last round, not for a new one.
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
  // The last round of this node, for a hub that took over and has no record of the round. -1: none.
  std::int64_t last_round = -1;
  std::int32_t last_rank = -1;
  std::int32_t last_nodes = 0;
  std::int32_t restarts = 0;
  Holds holds = Holds::nothing;
  Launched launched = {};
  bool replacement = true;  // false with --no-replacement: a lost node's place stays empty
  bool gives_way = false;   // Backend::give_way()
  bool operator==(const Join&) const = default;
};
NodeFacts facts_of(const Join& join);
struct StoreWanted {  // hub, to rank 0: open the workers' store
  std::int64_t round = 0;
  bool operator==(const StoreWanted&) const = default;
};
struct StoreOffer {  // agent; a non-empty `error` replaces the address
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
struct Ended {  // hub: answers the Join of a spare when the job has ended
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
  bool end = false;  // and so is the job
  std::string why;
  bool operator==(const Interrupted&) const = default;
};
struct Finish {  // agent: all workers of the node have ended well
  std::int64_t round = 0;
  bool operator==(const Finish&) const = default;
};
struct Finished {  // hub: the workers of all nodes have ended well
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
  How how = How::succeeded;  // returns: the agent will be back on a new connection
  bool operator==(const Leave&) const = default;
};
struct Left {  // hub: confirms a Leave
  bool operator==(const Left&) const = default;
};
// Ends the status sent to a spare. A spare recognises the text and stops counting its join timeout.
inline constexpr std::string_view kSpareStatus = ", this one is a spare";

struct Beat {          // both, once per heartbeat_ms
  std::string status;  // hub: what waiting agents wait for; else empty
  bool operator==(const Beat&) const = default;
};

// What a node of a round tells while its workers run. The hub passes it on, from node 0 to all
// other nodes and from any other node to node 0, and keeps nothing.
struct News {
  std::int64_t round = 0;
  std::int32_t from = 0;  // the teller's rank; the hub writes it
  std::string text;       // up to kMaxNews bytes
  bool operator==(const News&) const = default;
};

// --- succession: the job outlives the node that hosts the hub ---

// The nodes whose agreement counts. A quorum is more than half of the voters, or exactly half if
// `first` is among them, the node hosting the hub at that time. So any two quorums share a node.
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
// The record of the job kept by every node for the next hub. A charter is valid once a quorum of
// `now` and a quorum of `before` have recorded it.
struct Charter {  // hub
  std::uint64_t term = 0;
  std::uint64_t version = 0;
  Voters now;
  Voters before;
  std::int64_t round = -1;  // the last round; -1: none
  std::int32_t restarts = 0;
  std::int32_t lead = -1;              // rank of the hub's own node
  std::vector<std::int32_t> finished;  // ranks that have finished and may be gone
  enum class End : std::uint8_t { none, succeeded, failed };
  End end = End::none;
  std::string why;
  // Where a hub may open, by place, if the nodes were given one endpoint and learn the list of
  // hosts here. Entries without a voter may be out of date.
  std::vector<codec::RdzvEndpoint> hosts = {};
  bool operator==(const Charter&) const = default;
};
struct Call {  // hub: leads, or asks to lead, in this term
  std::uint64_t term = 0;
  bool operator==(const Call&) const = default;
};
struct Testimony {  // agent, answers a Call: promises to refuse charters of earlier terms
  std::uint64_t promised = 0;
  std::uint32_t place = 0;
  Charter charter;
  // Where this agent may open a hub. An empty host: nowhere, or the agent has a list of hosts.
  codec::RdzvEndpoint hub = {};
  bool operator==(const Testimony&) const = default;
};
struct Agreed {  // agent: has recorded this charter
  std::uint64_t term = 0;
  std::uint64_t version = 0;
  bool operator==(const Agreed&) const = default;
};
// The job goes on at this place. From the leading hub to the hub of a first host that was started
// again, and from a first host that no longer hosts to every node that looks for the hub there.
struct Moved {
  codec::RdzvEndpoint place;
  bool forget = false;  // the sender's hub led a round of its own, which is not of the job
  bool operator==(const Moved&) const = default;
};

using Frame =
    std::variant<Hello, Challenge, Proof, Welcome, Refusal, Join, StoreWanted, StoreOffer, Placed,
                 Ended, Failed, Interrupted, Finish, Finished, TellReport, Reports, Leave, Left,
                 Beat, Call, Testimony, Charter, Agreed, News, Moved>;

// Returns the run id as the other side reads it, possibly cut or cleaned. Both sides compare and
// prove this form. Otherwise a long run id would make a valid token look wrong.
std::string run_id_on_the_wire(const std::string& run_id);
// Appends the frame with its header. Texts beyond their bound are cut.
void put_frame(std::string& out, const Frame& frame);
std::string frame_bytes(const Frame& frame);
// Parses the content of one frame: type byte and fields, with no byte left over. nullopt:
// malformed.
std::optional<Frame> parse_frame(std::string_view content);
std::string_view frame_name(const Frame& frame);

// Splits the bytes of one connection into the preamble and frames. Buffers at most the limit, and
// only bytes actually received, whatever a header claims.
class FrameReader {
 public:
  static constexpr std::size_t kBeforeWelcome =
      2048;  // a greeting is short, and strangers may be many
  static constexpr std::size_t kFromAgents = kMaxReport + 4096;
  static constexpr std::size_t kFromHub = kMaxReports + kMaxReport + 4096;

  enum class Step { frame, more, error };
  // Consumes bytes from the front of `chunk`. more: the chunk is used up. error: no frame will
  // follow.
  Step next(std::string_view& chunk, Frame& frame);
  void set_limit(std::size_t bytes) { limit_ = bytes; }

  const std::string& error() const { return error_; }
  // Returns the bytes received instead of the preamble; see recognise().
  const std::string& stranger() const { return stranger_; }

 private:
  Step read_preamble(std::string_view& chunk);
  Step broken(std::string text);

  std::size_t limit_ = kBeforeWelcome;
  bool greeted_ = false;
  bool broken_ = false;
  std::string preamble_;  // the bytes received so far
  codec::wire::FrameCutter cutter_;
  std::string error_;
  std::string stranger_;
};

}  // namespace lockstep::rendezvous::hub
