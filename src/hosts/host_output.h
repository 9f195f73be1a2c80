// What a client prints of what commands on hosts say: as it comes from one host, in whole lines
// behind the host's name from several. Tells how much has been printed, so that the hosts go no
// further ahead than the reader of this process.
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
  using Printed = std::function<void(std::size_t bytes)>;  // of those that were given

  // What is printed of a line behind its prefix; empty: nothing, and no prefix either. A line that
  // is cut (too long, or the last one of a host) comes without its end. Not given: all as it is.
  using LineText = std::function<std::string(std::string_view line)>;
  HostOutput(io::Loop& loop, io::OwnStream stream, LineText line_text = {});

  // prefix: empty for one host.
  void put(std::string_view prefix, std::string_view bytes, Printed printed);
  // The host says no more: what stands without an end of line is printed.
  void end(std::string_view prefix);
  bool idle() const { return sink_.idle(); }
  // fn is called once all is printed.
  void when_idle(std::function<void()> fn);

 private:
  struct Piece {
    std::size_t printed_bytes;  // with the prefixes
    std::size_t given_bytes;
    Printed printed;
  };
  void write(std::string_view text);
  void on_consumed(std::size_t bytes);
  void add_line(std::string_view prefix, std::string_view line, std::string& text) const;
  std::string whole_lines(std::string_view prefix, std::string_view bytes);

  io::OwnStream stream_;
  bool on_terminal_;  // of stderr, too: there errors follow what is printed here
  LineText line_text_;
  link::Sink sink_;
  std::deque<Piece> pieces_;
  std::map<std::string, std::string, std::less<>> unfinished_;  // by prefix
  std::function<void()> when_idle_;
};

}  // namespace lockstep::hosts
