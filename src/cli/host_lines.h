// Progress on a terminal: a line per host, drawn again and again, and erased in the end. Pure: the
// caller prints the returned texts.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

// Keeps the latest step of each host, and the latest detail of that step.
class HostLines {
 public:
  explicit HostLines(std::vector<std::string> names);  // the hosts' names, in order

  // Adds output of a host, in pieces of any size. A line that begins with two spaces is a detail of
  // the host's last step. Any other line is the next step.
  void put(std::size_t host, std::string_view bytes);
  // Returns the text that replaces the drawn lines. Each line fits into `columns`.
  std::string draw(std::size_t columns);
  // Returns the text that removes the drawn lines. Empty: nothing is drawn.
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
