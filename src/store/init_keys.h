// The keys that PyTorch's process groups leave in the store while they start. Those of gloo were
// captured from 1.13, 2.6 and 2.14. Those of NCCL were read in the source. Pure.
//
//   /default_pg/0//cpu//0/3         gloo, 2.x: the address of rank 3 of the default group
//   /default_pg/0//1//cpu//0/2      gloo, 2.x: of rank 2 in group "1", which new_group() made
//   /default_pg/0//cuda//0          NCCL, 2.x: the communicator's id, made by rank 0 of the group
//   //worker/attempt_0/default_pg/0/0/rank_3, .../default_pg/0/0/3      gloo, 1.13: host, address
//   //worker/attempt_0/default_pg/1/SEQ_NUM_STORE_KEY                   1.13, made by rank 0
//   default_pg/store_based_barrier_key:1:last_worker                    the barrier after a start
#pragma once

#include "store/witness.h"

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::store {

struct InitKey {
  enum class Kind {
    host,     // gloo, 1.13: each rank's host name; comes before the addresses
    address,  // gloo: each rank's address
    id,       // NCCL: made by one rank, read by all others
    number,   // the first sequence number, made by rank 0 (1.13)
    arrived,  // counts the ranks in the barrier after a start
    barrier,  // the last rank of that barrier makes it
  };
  Kind kind = Kind::address;
  // Equal for all keys of one group: "/default_pg/0/1". A part before "default_pg" tells attempts
  // apart.
  std::string group = {};
  std::string name = {};  // of the group: "0", "1", or a hash. "0" is the default group
  int creator = -1;       // the rank inside the group that creates the key. -1: any
  bool is_default() const { return name == "0"; }
};

// nullopt: another key.
std::optional<InitKey> parse_init_key(std::string_view key);

// What NCCL's watchdogs and torch.distributed.debug write for all ranks to see.
inline constexpr std::string_view kExceptionDump = "exception_dump";
inline constexpr std::string_view kRemoteError = "remote_error";  // "remote_error:GROUP"
inline constexpr std::string_view kDebugUrl = "debug_server/rank";

// Decides which keys a witness lists: keys of groups in which a client waits, keys of the default
// groups (each names the rank of its creator), and the three keys above.
class InterestingKeys {
 public:
  explicit InterestingKeys(std::span<const WitnessSession> sessions);
  bool has(std::string_view key) const;

 private:
  std::set<std::string, std::less<>> groups_;
};

}  // namespace lockstep::store
