// The output of a job on hosts, for people: lines that several ranks say at about the same time,
// on whichever hosts, become one. What no rank says keeps its host's name.
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

  // As HostOutput has them. A host is told that its bytes are printed with what is printed next.
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
