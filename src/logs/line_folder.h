// Folds a line that several ranks print at about the same time into one. Pure: the caller passes
// the time.
//
// Each rank's lines stay in order, and no line is lost. A line waits until all ranks have printed
// it, until the window is over, or until too many lines wait. It is then shown with the ranks that
// printed it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lockstep::logs {

class LineFolder {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Limits {
    std::chrono::milliseconds window{100};
    std::size_t lines = 256;  // most lines that wait
    std::size_t bytes = 256 << 10;
  };
  // ranks: in ascending order. since: time at which the first of these ranks printed the line.
  using Show = std::function<void(std::span<const int> ranks, std::string_view line, Time since)>;

  LineFolder(Limits limits, Show show) : limits_(limits), show_(std::move(show)) {}

  // Sets the number of ranks: a line printed by all of them does not wait. 0: unknown.
  void set_sources(std::size_t sources);

  // Takes a whole line of a rank.
  void put(int rank, std::string_view line, Time now);
  // Takes a redrawn line: text that a rank draws over and over with '\r', with or without a final
  // '\n'. Frames that differ only in numbers and blocks belong to one progress bar. While several
  // ranks draw a bar, the bar is shown as one line a second, namely the latest frame of its lowest
  // rank. The frames in between are dropped. Returns false and takes nothing while only this rank
  // draws the bar: the caller then shows the piece unchanged.
  bool draw(int rank, std::string_view piece, Time now);
  // Shows everything up to this rank's last line. Call before other output of the rank.
  void flush_of(int rank);
  // Shows everything that waits.
  void flush();
  // Shows the lines whose window is over.
  void flush_due(Time now);
  std::optional<Time> due() const;  // next time for flush_due(); nullopt: nothing waits
  std::size_t waiting() const { return bytes_; }

 private:
  struct Group {
    std::size_t hash;
    std::string line;
    std::vector<int> ranks;
    Time since;
  };

  struct Bar {
    std::map<int, Time> drawn;  // time of the last frame by rank
    std::set<int> ranks;        // ranks that have drawn since the bar was last shown
    std::string frame;
    Time since;  // time of the first frame not yet shown
    Time shown;
  };

  void draw_frame(Bar& bar, int rank, std::string_view frame, Time now);
  void show_bar(Bar& bar);
  Time due_of(const Bar& bar) const;
  void show_first();
  void show_ready();
  void forget_ranks();

  Limits limits_;
  Show show_;
  std::size_t sources_ = 0;
  std::deque<Group> groups_;
  std::size_t bytes_ = 0;
  // Number of groups shown so far, which is the number of the first waiting group.
  std::uint64_t shown_ = 0;
  std::unordered_map<int, std::uint64_t> next_;   // the first group that a rank may still join
  std::map<std::string, Bar, std::less<>> bars_;  // by skeleton_of() their frames
  std::set<int> drawing_;                         // ranks whose last output was a frame
};

// Formats ascending ranks as "0-6,8". Very many ranges end with "...".
std::string ranks_text(std::span<const int> ranks);

}  // namespace lockstep::logs
