// What a client and the binary on a host say to each other over one SSH channel, as bytes; pure.
// docs/protocols/link.md describes it. Every length and count is bounded.
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
// The host's end begins with it. A login shell may print something before, which is skipped.
inline constexpr std::string_view kGreeting = "\n\x01lockstep-link\x02";

// Every stream of a channel begins with this much room at its reader; Credit gives more.
inline constexpr std::size_t kWindow = 2UL << 20;
inline constexpr std::size_t kMaxData = 64UL << 10;  // bytes of one Data
inline constexpr std::size_t kMaxFrame = 8UL << 20;  // a Start with all that execve takes fits
inline constexpr std::size_t kMaxArgument = 128UL << 10;
// The kernel takes as many as fit in a quarter of the stack's limit; kMaxFrame bounds them before.
inline constexpr std::size_t kMaxArguments = 1UL << 20;
inline constexpr std::size_t kMaxLine = 4096;
inline constexpr std::size_t kMaxPath = 4096;

// result: what the program writes to descriptor 3, where Start asks for that.
enum class Stream : std::uint8_t { in, out, err, result };

// First frame in both directions. A client need not wait for the host's.
struct Hello {
  std::uint16_t version = kVersion;
  std::string software = {};  // "0.1.0"
  // Of the host's end; empty from a client.
  std::string host = {};
  std::string home = {};
};

// Client to host: starts a program on a new channel, whose number the client chooses.
struct Start {
  std::uint32_t channel = 0;
  std::vector<std::string> argv = {};  // argv[0] is looked up in PATH
  std::vector<std::string> env = {};   // "NAME=value", beside or over what the host's end has
  std::string folder = {};             // relative to the home; empty: the home
  bool input = false;                  // Data for stdin follows; else it is /dev/null
  bool own = false;     // argv are arguments of the binary that serves the link, which is started
  bool result = false;  // descriptor 3 is open for writing, and LOCKSTEP_RESULT_FD says so
};
// Host to client: either of them answers a Start.
struct Started {
  std::uint32_t channel = 0;
  std::int64_t pid = 0;
};
struct Refused {
  std::uint32_t channel = 0;
  std::int32_t code = 0;  // as a shell would exit: 127 not found, 126 can't be run
  std::string why;
};
// The program has ended, and all Data of its outputs was sent. Ends the channel.
struct Exit {
  std::uint32_t channel = 0;
  std::int32_t code = 0;
  std::int32_t signal = 0;  // that killed it, or 0
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
// From the reader of a stream: so many more bytes may be sent.
struct Credit {
  std::uint32_t channel = 0;
  Stream stream = Stream::out;
  std::uint32_t bytes = 0;
};
// Client to host: to the program's process group.
struct Signal {
  std::uint32_t channel = 0;
  std::int32_t number = 0;
};

// Either side may ask; the other answers with the same number.
struct Ping {
  std::uint64_t number = 0;
};
struct Pong {
  std::uint64_t number = 0;
};

using Frame =
    std::variant<Hello, Start, Started, Refused, Exit, Data, Eof, Credit, Signal, Ping, Pong>;

std::string_view frame_name(const Frame& frame);
void put_frame(std::string& out, const Frame& frame);
// One frame's content, without its length. nullopt: it makes no sense.
std::optional<Frame> parse_frame(std::string_view content);

// Takes a stream of bytes apart, in chunks of any size.
class FrameReader {
 public:
  enum class Wants { greeting, frames };
  // greeting: everything up to the greeting is skipped, at most kMaxChatter bytes of it.
  explicit FrameReader(Wants wants) : greeted_(wants == Wants::frames) {}

  static constexpr std::size_t kMaxChatter = 256UL << 10;

  enum class Step { more, frame, error };
  // Takes the bytes it uses off `chunk`. more: the chunk is used up. frame: `frame` is set, call
  // again. error: see error(); nothing more can be read.
  Step next(std::string_view& chunk, Frame& frame);

  bool greeted() const { return greeted_; }
  // What came before the greeting.
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
