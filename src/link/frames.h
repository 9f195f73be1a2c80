// The frames that a client and the binary on a host exchange over one SSH channel, as bytes. Pure.
// See docs/protocols/link.md. Every length and count is bounded.
#pragma once

#include "codec/wire.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lockstep::link {

inline constexpr std::uint16_t kVersion = 1;
// The first bytes of the host's end. A login shell may print text before, which is skipped.
inline constexpr std::string_view kGreeting = "\n\x01lockstep-link\x02";

// Bytes of credit that each stream of a channel starts with; Credit frames add more.
inline constexpr std::size_t kWindow = 2UL << 20;
inline constexpr std::size_t kMaxData = 64UL << 10;  // bytes in one Data frame
// holds a Start with everything that execve() takes
inline constexpr std::size_t kMaxFrame = 8UL << 20;
inline constexpr std::size_t kMaxArgument = 128UL << 10;
// The kernel's limit depends on the stack limit; kMaxFrame is hit first.
inline constexpr std::size_t kMaxArguments = 1UL << 20;
inline constexpr std::size_t kMaxLine = 4096;
inline constexpr std::size_t kMaxPath = 4096;

// result: the program's descriptor 3, if Start asked for it.
enum class Stream : std::uint8_t { in, out, err, result };

// The first frame in both directions. A client need not wait for the host's Hello.
struct Hello {
  std::uint16_t version = kVersion;
  std::string software = {};  // "0.1.0"
  // Only from the host; empty from a client.
  std::string host = {};
  std::string home = {};
};

// Client to host: starts a program on a new channel, numbered by the client.
struct Start {
  std::uint32_t channel = 0;
  std::vector<std::string> argv = {};  // argv[0] is searched in PATH
  std::vector<std::string> env = {};   // "NAME=value", added to or replacing the host's own
  std::string folder = {};             // relative to the home; empty: the home
  bool input = false;                  // Data for stdin follows; otherwise stdin is /dev/null
  bool own = false;                    // run the binary behind the link, with argv as its arguments
  bool result = false;                 // open descriptor 3 for writing and set LOCKSTEP_RESULT_FD
};
// Host to client: one of these two answers a Start.
struct Started {
  std::uint32_t channel = 0;
  std::int64_t pid = 0;
};
struct Refused {
  std::uint32_t channel = 0;
  std::int32_t code = 0;  // exit code of a shell: 127 not found, 126 cannot run
  std::string why;
};
// The program has ended and all Data of its outputs has been sent. Ends the channel.
struct Exit {
  std::uint32_t channel = 0;
  std::int32_t code = 0;
  std::int32_t signal = 0;  // number of the killing signal, or 0
};

struct Data {
  std::uint32_t channel = 0;
  Stream stream = Stream::out;
  std::string bytes;
};
struct Eof {
  std::uint32_t channel = 0;
  Stream stream = Stream::out;
};
// From the reader of a stream: the sender may send this many bytes more.
struct Credit {
  std::uint32_t channel = 0;
  Stream stream = Stream::out;
  std::uint32_t bytes = 0;
};
// Client to host: sends a signal to the program's process group.
struct Signal {
  std::uint32_t channel = 0;
  std::int32_t number = 0;
};

// Either side may ask; the other side answers with the same number.
struct Ping {
  std::uint64_t number = 0;
};
struct Pong {
  std::uint64_t number = 0;
};

using Frame =
    std::variant<Hello, Start, Started, Refused, Exit, Data, Eof, Credit, Signal, Ping, Pong>;

// Returns the name of the frame's type, for messages.
std::string_view frame_name(const Frame& frame);
// Appends the frame with its length.
void put_frame(std::string& out, const Frame& frame);
// Parses a frame's content, without its length. nullopt: the content is invalid.
std::optional<Frame> parse_frame(std::string_view content);

// Cuts a stream of bytes into frames; chunks may have any size.
class FrameReader {
 public:
  enum class Wants { greeting, frames };
  // greeting: skips everything before the greeting, at most kMaxChatter bytes.
  explicit FrameReader(Wants wants) : greeted_(wants == Wants::frames) {}

  static constexpr std::size_t kMaxChatter = 256UL << 10;

  enum class Step { more, frame, error };
  // Removes the bytes it uses from `chunk`. more: the chunk is used up. frame: `frame` is set; call
  // again. error: see error(); the reader cannot continue.
  Step next(std::string_view& chunk, Frame& frame);

  bool greeted() const { return greeted_; }
  // Returns the bytes before the greeting.
  const std::string& chatter() const { return chatter_; }
  const std::string& error() const { return error_; }

 private:
  Step broken(std::string text);
  Step find_greeting(std::string_view& chunk);

  bool greeted_;
  bool broken_ = false;
  std::string chatter_;
  codec::wire::FrameCutter cutter_;
  std::string error_;
};

}  // namespace lockstep::link
