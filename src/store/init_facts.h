// Conclusions from a witness: which ranks wait in the start of which process group, and for whom.
// Pure.
#pragma once

#include "store/init_keys.h"
#include "store/witness.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::store {

// A worker process of the job.
struct RankProcess {
  int rank = 0;
  std::uint32_t pid = 0;  // as the worker itself sees it (NSpid in /proc/PID/status). 0: unknown
  // The worker's address as the store sees it. "": unknown, or a worker beside the store. Used only
  // if workers of several nodes have the same pid.
  std::string host = {};
};

// The start of one process group in which clients wait.
struct GroupFacts {
  std::string name = {};  // "default_pg", "group 1"; printable
  InitKey::Kind kind = InitKey::Kind::address;
  std::vector<int> waiting = {};  // global ranks, ascending
  std::size_t unnamed = 0;        // waiting clients whose rank is unknown
  std::vector<int> missing = {};  // global ranks whose key is missing, ascending
  // Missing ranks by their number inside the group, where the global rank is not certain, and the
  // global ranks that these may be.
  std::vector<int> missing_inside = {};
  std::vector<int> candidates = {};
  std::vector<int> never_connected = {};  // part of `missing`
  std::vector<int> departed = {};         // part of `missing`: was connected, and is no more
  std::optional<int> arrived = {};        // in a barrier: how many have come
  double seconds = 0;                     // the longest wait
};

// A wait for a key that belongs to no process group, by clients that are ranks.
struct OtherWait {
  std::string key = {};  // printable
  std::vector<int> waiting = {};
  double seconds = 0;
};

struct StoreFacts {
  std::vector<GroupFacts> groups = {};  // the longest wait first
  std::vector<OtherWait> others = {};
  // Ranks of the table without any connection so far. Empty where clients do not tell their pid
  // (PyTorch before 2.5), since any of those may be the rank.
  std::vector<int> never_connected = {};
  std::optional<int> exception_dump = {};  // the rank whose watchdog timed out first
  std::optional<int> remote_error = {};
  std::map<int, std::string> debug_urls = {};  // by rank: torch.distributed.debug; printable
};

// world_size: of the job, for the ranks of the default group. 0: unknown.
StoreFacts read_witness(const Witness& witness, std::span<const RankProcess> table, int world_size);

// Returns a sentence of printable text, at most 1,000 bytes: "group default_pg: ranks 0-1, 3 wait
// 9.9 s for the key of rank 2, which has never connected". "" if nobody waits and no watchdog has
// timed out.
std::string store_sentence(const StoreFacts& facts);

}  // namespace lockstep::store
