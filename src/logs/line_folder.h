// Folds a line that several ranks say at about the same time into one. Pure: the time is given.
//
// A rank's lines stay in order, and none is lost: a line waits until all sources have said it,
// until the window is over, or until too many wait; then it is shown with the ranks that have said
// it.
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
    std::size_t lines = 256;  // that wait at most
    std::size_t bytes = 256 << 10;
  };
  // ranks: in ascending order. since: when the first of them said it.
  using Show = std::function<void(std::span<const int> ranks, std::string_view line, Time since)>;

  LineFolder(Limits limits, Show show) : limits_(limits), show_(std::move(show)) {}

  // How many ranks there are: a line that all of them have said does not wait. 0: nobody knows.
  void set_sources(std::size_t sources);

  void put(int rank, std::string_view line, Time now);
  // What a rank draws over and over in one line with '\r', with a '\n' at its end or without.
  // Frames that differ only in numbers and blocks belong to one progress bar. While several ranks
  // draw a bar, it is a line a second: the latest frame of its lowest rank. Frames between are
  // dropped. Returns false, and takes nothing, while this rank alone draws it: the caller shows
  // that as it is.
  bool draw(int rank, std::string_view piece, Time now);
  // What waits up to this rank's last line is shown: something else of it follows.
  void flush_of(int rank);
  void flush();
  void flush_due(Time now);
  std::optional<Time> due() const;  // nullopt: nothing waits
  std::size_t waiting() const { return bytes_; }

 private:
  struct Group {
    std::size_t hash;
    std::string line;
    std::vector<int> ranks;
    Time since;
  };

  struct Bar {
    std::map<int, Time> drawn;  // by rank, when it drew last
    std::set<int> ranks;        // that have drawn since the bar was last shown
    std::string frame;
    Time since;  // the first of these
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
  std::uint64_t shown_ = 0;  // groups that have gone; the number of the first one that waits
  std::unordered_map<int, std::uint64_t> next_;   // the first group that a rank may still join
  std::map<std::string, Bar, std::less<>> bars_;  // by skeleton_of() their frames
  std::set<int> drawing_;                         // ranks whose last words were a frame
};

// "0-6,8" of ascending ranks. Of very many ranges the first ones and "...".
std::string ranks_text(std::span<const int> ranks);

}  // namespace lockstep::logs
