// The messages of OpenSSH's connection sharing (PROTOCOL.mux). Over a master's socket a session
// opens without starting another ssh. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace lockstep::ssh::mux {

inline constexpr std::uint32_t kVersion = 4;
inline constexpr std::size_t kMaxPacket = 256UL << 10;  // OpenSSH's own limit

// Returns the greeting that both ends send first.
std::string hello();
// Returns the request for a session without a terminal: `command` runs through the user's login
// shell. The descriptors of its three streams must follow on the socket, one by one.
std::string new_session(std::uint32_t request, std::string_view command);

// Returns the request for a connection from the server to host:port. Two descriptors must follow:
// bytes read from the first go out, and incoming bytes are written to the second.
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
struct Other {  // any other message, ignored
  std::uint32_t type = 0;
};
using Message = std::variant<Hello, Opened, Refused, Exited, Other>;

// Takes one packet from the front of `bytes`. nullopt: more bytes are needed or, if `broken` was
// set, the packet cannot be read.
std::optional<Message> take_message(std::string_view& bytes, bool& broken);

}  // namespace lockstep::ssh::mux
