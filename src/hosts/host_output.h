// Prints the output of commands on hosts. Output of one host is printed as it arrives. Output of
// several hosts is printed in whole lines, each after the name of its host. Reports printed bytes,
// so that hosts never run far ahead of the reader of this process.
#pragma once

#include "io/loop.h"
#include "io/own_stream.h"
#include "link/stream_ends.h"

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::hosts {

class HostOutput {
 public:
  // Called with the number of bytes of a put(), once they are printed.
  using Printed = std::function<void(std::size_t bytes)>;

  HostOutput(io::Loop& loop, io::OwnStream stream);

  // Prints bytes of a host. prefix: empty for one host. Calls `printed` once, possibly before put()
  // returns.
  void put(std::string_view prefix, std::string_view bytes, Printed printed);
  // Prints text made from `given` bytes of a host. Calls `printed` once with `given`.
  void put_text(std::string_view text, std::size_t given, Printed printed);
  // Prints the unfinished last line of a host.
  void end(std::string_view prefix);
  // Returns whether all bytes are written.
  bool idle() const { return sink_.idle(); }
  // Calls fn once everything is printed. Only one function can wait at a time.
  void when_idle(std::function<void()> fn);

 private:
  struct Piece {
    std::size_t printed_bytes;  // with the prefixes, as written
    std::size_t given_bytes;    // as put() got them, for the credit
    Printed printed;
  };
  void write(std::string_view text);
  void on_consumed(std::size_t bytes);
  std::string whole_lines(std::string_view prefix, std::string_view bytes);

  io::OwnStream stream_;
  bool on_terminal_;  // this stream and stderr are terminals, usually the same
  link::Sink sink_;
  std::deque<Piece> pieces_;                                    // not printed yet, oldest first
  std::map<std::string, std::string, std::less<>> unfinished_;  // unfinished lines, by prefix
  std::function<void()> when_idle_;
};

}  // namespace lockstep::hosts
