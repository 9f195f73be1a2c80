// What the client says to the two hosts of a transfer between them, and what they answer. Pure.
// docs/protocols/peer.md describes it.
#pragma once

#include "base/error.h"
#include "sync/record.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lockstep::peer {

inline constexpr std::size_t kKeyBytes = 32;
inline constexpr std::size_t kMostAddresses = 64;
inline constexpr std::size_t kMostMeeting = 64UL << 10;

// Client to both ends. The key is made for this one sync.
struct Meeting {
  std::string destination = {};  // as in the offer that both have answered
  sync::Owner owner = {};
  std::string key = {};
  // Of the end that serves; the other one is told.
  std::vector<std::string> addresses = {};
  std::uint16_t port = 0;
};
// With its length in front (length.h).
std::string encode_meeting(const Meeting& meeting);
Result<Meeting> decode_meeting(std::string_view bytes);  // behind the length

// The hosts' answers, each one line of JSON.
struct Listening {
  std::vector<std::string> addresses = {};
  std::uint16_t port = 0;
};
struct Connected {
  std::string address = {};
};
struct Progress {
  std::uint64_t bytes = 0;
};
struct Done {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t missing = 0;  // that the other end did not have
};
struct Trouble {
  std::string why = {};
};
using Answer = std::variant<Listening, Connected, Progress, Done, Trouble>;

std::string print_answer(const Answer& answer);  // with its line's end
// nullopt: it makes no sense.
std::optional<Answer> parse_answer(std::string_view line);

}  // namespace lockstep::peer
