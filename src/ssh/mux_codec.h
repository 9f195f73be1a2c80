// The messages of OpenSSH's connection sharing (PROTOCOL.mux), pure. Through the socket of a master
// a session is opened without starting another ssh.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace lockstep::ssh::mux {

inline constexpr std::uint32_t kVersion = 4;
inline constexpr std::size_t kMaxPacket = 256UL << 10;  // as OpenSSH has it

std::string hello();
// A session without a terminal that runs `command` through the user's login shell. The descriptors
// of its three streams follow it on the socket, one by one.
std::string new_session(std::uint32_t request, std::string_view command);

// A connection to host:port as the server sees them, without a command. Two descriptors follow it:
// what is read from the first goes there, what comes from there is written to the second.
std::string new_forward(std::uint32_t request, std::string_view host, std::uint32_t port);

struct Hello {
  std::uint32_t version = 0;
};
struct Opened {
  std::uint32_t session = 0;
};
struct Refused {  // by the master, or by the server behind it
  std::string why;
};
struct Exited {
  std::uint32_t code = 0;
};
struct Other {  // of no interest
  std::uint32_t type = 0;
};
using Message = std::variant<Hello, Opened, Refused, Exited, Other>;

// Takes one packet off the front of `bytes`. nullopt: more is needed, or, where `broken` was set,
// it makes no sense.
std::optional<Message> take_message(std::string_view& bytes, bool& broken);

}  // namespace lockstep::ssh::mux
