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
#include <optional>
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

  void show_first();
  void show_ready();
  void forget_ranks();

  Limits limits_;
  Show show_;
  std::size_t sources_ = 0;
  std::deque<Group> groups_;
  std::size_t bytes_ = 0;
  std::uint64_t shown_ = 0;  // groups that have gone; the number of the first one that waits
  std::unordered_map<int, std::uint64_t> next_;  // the first group that a rank may still join
};

// "0-6,8" of ascending ranks. Of very many ranges the first ones and "...".
std::string ranks_text(std::span<const int> ranks);

}  // namespace lockstep::logs
