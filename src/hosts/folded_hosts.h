// Prints the output of a job on hosts for people. Folds equal lines that several ranks print at
// about the same time, on any host, into one line. A line without a rank keeps the name of its
// host.
#pragma once

#include "hosts/folded_lines.h"
#include "hosts/host_output.h"
#include "io/loop.h"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::hosts {

class FoldedHosts {
 public:
  FoldedHosts(io::Loop& loop, HostOutput& output);

  // Same as HostOutput. A host receives credit for its bytes with the next bytes that are printed.
  void put(std::string_view prefix, std::string_view bytes, HostOutput::Printed printed);
  void end(std::string_view prefix);
  // All hosts have said all they will.
  void finish();

 private:
  using Waiting = std::vector<std::pair<std::size_t, HostOutput::Printed>>;

  static void tell_printed(const Waiting& waiting);
  void put_line(std::string_view prefix, std::string_view line);
  Status write(std::string_view text);
  void look_again();

  HostOutput& output_;
  FoldedLines lines_;
  std::map<std::string, std::string, std::less<>> unfinished_;  // by prefix
  Waiting waiting_;
  int looks_left_ = 0;
  io::Timer next_look_;
};

}  // namespace lockstep::hosts
