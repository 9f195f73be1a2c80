// A witness: the facts that the store has about its clients at one moment. Lists the connected
// clients, the waits for keys with their start times, and the creators of the keys that PyTorch's
// process groups leave. Server::witness() takes a witness, and init_facts.h draws conclusions.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::store {

using TimePoint = std::chrono::steady_clock::time_point;

// A WAIT or BARRIER without an answer so far.
struct WitnessWait {
  std::vector<std::string> keys;  // keys that are missing now, at most WitnessLimits::keys_per_wait
  std::size_t missing = 0;        // number of missing keys, including those that `keys` lacks
  bool barrier = false;
  TimePoint since = {};
};

// A connection of a client. A process may have several: PyTorch 1.13 opens two.
struct WitnessSession {
  std::uint64_t number = 0;  // order of arrival from 1, never used twice
  // The client's pid in its own PID namespace, as PyTorch 2.5 and later announce it. 0: not
  // announced.
  std::uint32_t pid = 0;
  std::string peer = {};  // "HOST:PORT"
  TimePoint connected = {};
  TimePoint heard = {};  // of the last bytes from this client
  std::vector<WitnessWait> waits = {};
};

struct WitnessKey {
  std::string name;
  std::string value;          // the first WitnessLimits::value_bytes bytes
  std::uint64_t creator = 0;  // WitnessSession::number. 0: the process that hosts the store
};

struct Witness {
  TimePoint taken = {};
  std::vector<WitnessSession> sessions = {};  // by number
  // Clients that have announced a pid and left, the latest last. `heard` is the time of leaving.
  std::vector<WitnessSession> departed = {};
  std::vector<WitnessKey> keys = {};  // of InterestingKeys (init_keys.h), in no particular order
  bool all_sessions = true;           // false: a limit has cut the list
  bool all_keys = true;
};

// The most clients of Witness::departed.
inline constexpr std::size_t kMostDeparted = 1024;

struct WitnessLimits {
  std::size_t sessions = 8192;
  std::size_t waits = 8192;
  std::size_t keys_per_wait = 4;
  std::size_t keys = 8192;
  std::size_t scanned_keys = 256U << 10;
  std::size_t name_bytes = 512;  // longer names are left out
  std::size_t value_bytes = 256;
};

}  // namespace lockstep::store
