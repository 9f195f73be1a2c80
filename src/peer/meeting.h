// The messages between the client and the two hosts of a transfer. Pure. See
// docs/protocols/peer.md.
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

// Client to both hosts. The key is new for each sync.
struct Meeting {
  std::string destination = {};  // as in the offer that both hosts answered
  sync::Owner owner = {};
  std::string key = {};
  // Where the serving host listens; only the taking host gets these.
  std::vector<std::string> addresses = {};
  std::uint16_t port = 0;
};
// Returns the bytes with their length in front (length.h).
std::string encode_meeting(const Meeting& meeting);
Result<Meeting> decode_meeting(std::string_view bytes);  // without the length

// The hosts' answers, one line of JSON each.
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
  std::uint64_t missing = 0;  // files that the serving host could not give
};
struct Trouble {
  std::string why = {};
};
using Answer = std::variant<Listening, Connected, Progress, Done, Trouble>;

std::string print_answer(const Answer& answer);  // with a newline
// nullopt: the line is invalid.
std::optional<Answer> parse_answer(std::string_view line);

}  // namespace lockstep::peer
