// The datagrams by which Kineto, the profiler inside PyTorch, asks a daemon for orders
// (KINETO_USE_DAEMON=1; libkineto's IPC fabric, as dynolog serves it). Every message is a header of
// 40 bytes, {size_t size; char type[32]}, and a payload in the byte order of the machine. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::codec {

// No message of a client is longer. A longer datagram is not Kineto's.
inline constexpr std::size_t kMostKinetoBytes = 2048;

struct KinetoMessage {
  enum class Kind {
    hello,  // "ctxt": a process registers one GPU. Its answer is a count of processes
    poll,  // "req": a process asks for an order, every 5 s. Its answer is a configuration, or empty
  };
  Kind kind = Kind::poll;
  // hello: the own pid. poll: the own pid, then those of ancestors. In the sender's PID namespace,
  // and not to be trusted: only the kernel knows who sent a datagram.
  std::int32_t pid = 0;
  bool idle = true;  // poll: the process can begin a profile
};

// Returns nullopt for every other datagram.
std::optional<KinetoMessage> read_kineto_message(std::string_view datagram);

std::string kineto_hello_answer(std::int32_t processes);
// config: empty: no order.
std::string kineto_poll_answer(std::string_view config);

// A profile to take.
struct KinetoOrder {
  std::string file;  // absolute, ends with ".json". Kineto inserts "_PID" before the ".json"
  int steps = 0;     // calls of an optimizer's step(); 0: `millis` counts
  int multiple = 1;  // of steps: begin with a step whose number is a multiple of this
  int millis = 0;
  std::int64_t start_ms = 0;  // of millis: Unix time of the begin; 0: at once
};

// Seconds before `start_ms` in which a process must have the order: it warms up first.
inline constexpr int kKinetoWarmUp = 2;

std::string kineto_config(const KinetoOrder& order);

// Returns whether a client's socket may have this file name: "dynoconfigclient" and a UUID.
bool is_kineto_client(std::string_view name);

// A folder for sockets must not have a longer path. Kineto copies "FOLDER/dynoconfigclient<uuid>"
// into the 108 bytes of sun_path without a check.
inline constexpr std::size_t kMostKinetoFolder = 54;

}  // namespace lockstep::codec
