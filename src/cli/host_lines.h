// Progress on a terminal: one line per host, drawn over and over, gone in the end. The text is made
// purely; whoever owns the terminal prints it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

class HostLines {
 public:
  explicit HostLines(std::vector<std::string> names);

  // Adds output of a host. Lines that begin with two spaces are details of the last one
  // that does not.
  void put(std::size_t host, std::string_view bytes);
  // Replaces what was drawn before. Lines are cut to `columns`.
  std::string draw(std::size_t columns);
  std::string erase();

 private:
  struct Host {
    std::string name;
    std::string unfinished = {};
    std::string step = {};
    std::string detail = {};
  };
  static void end_line(Host& host);

  std::vector<Host> hosts_;
  bool drawn_ = false;
};

}  // namespace lockstep::cli
