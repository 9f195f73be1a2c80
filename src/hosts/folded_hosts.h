// Prints the output of a job on hosts for people. Equal lines that several ranks print at about the
// same time, on any host, become one line. A line without a rank keeps the name of its host.
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

  // Adds output of a host, with the arguments of HostOutput::put(). The host gets credit for the
  // bytes with the next bytes that are printed, or when nothing is left to print.
  void put(std::string_view prefix, std::string_view bytes, HostOutput::Printed printed);
  // Adds the unfinished last line of a host.
  void end(std::string_view prefix);
  // Prints all lines that still wait. Call after the last put().
  void finish();

 private:
  using Waiting = std::vector<std::pair<std::size_t, HostOutput::Printed>>;

  static void tell_printed(const Waiting& waiting);
  void add(std::string_view prefix, const OutputLine& line);
  Status write(std::string_view text);
  void look_again();

  HostOutput& output_;
  FoldedLines lines_;
  std::map<std::string, OutputLines, std::less<>> hosts_;  // by prefix
  // Hosts that get credit with the next printed bytes.
  Waiting waiting_;
  // Ticks of next_look_ that are due after the last output.
  int looks_left_ = 0;
  io::Timer next_look_;
};

}  // namespace lockstep::hosts
