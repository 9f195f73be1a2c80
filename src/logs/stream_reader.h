// Reads one captured stream of one worker. Sends raw bytes to the log file, lines to the console,
// picked lines to the filtered file, and the latest bytes to the tail.
#pragma once

#include "io/fd.h"
#include "io/loop.h"
#include "logs/console.h"
#include "logs/line_filter.h"
#include "logs/line_hold.h"
#include "logs/line_prefix.h"
#include "logs/line_tagger.h"
#include "logs/log_file.h"
#include "logs/tail_ring.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::logs {

class StreamReader final : public ConsoleSource {
 public:
  struct Parts {
    Stream stream = Stream::out;
    io::Fd input;  // pipe or pty master
    std::unique_ptr<LogFile> file;
    LinePrefix prefix;                 // for tagger and filter
    std::optional<LineTagger> tagger;  // nullopt: not shown
    std::optional<LineFilter> filter;
    std::shared_ptr<LogFile> filtered;
    bool keep_tail = false;
    ConsoleFold* fold = nullptr;  // of the console's sink; nullptr: no folding
    bool folds = false;           // lines of this stream may wait in `fold` for equal ones
    FoldSource source;
  };

  StreamReader(io::Loop& loop, Console& console, Parts parts);
  ~StreamReader();
  StreamReader(const StreamReader&) = delete;
  StreamReader& operator=(const StreamReader&) = delete;

  // Sets a callback for the end of the stream. Runs once, as the last action in a turn of the loop,
  // and may destroy the reader.
  void set_on_end(std::function<void()> fn) { on_end_ = std::move(fn); }
  // Reads what is there and releases held bytes. Does not run the on_end callback, even at the end
  // of the stream.
  void take_now();
  bool ended() const { return watch_ == nullptr; }

  int input() const { return parts_.input.get(); }
  std::string tail(std::size_t lines) const;
  bool tail_has(std::string_view words) const { return tail_.has(words); }
  std::uint64_t bytes_read() const { return bytes_read_; }
  io::TimePoint last_read() const { return last_read_; }  // at first: when the reader was made
  // The newest few bytes. They may begin within a line if they are not all that was read.
  std::string_view newest() const { return newest_.bytes(); }
  std::uint64_t lost_bytes() const { return parts_.file ? parts_.file->lost() : 0; }

 private:
  void on_pause(bool paused) override;
  void on_cut() override;

  // Result of one read.
  enum class Found { bytes, nothing, end };
  Found read_once(std::size_t& left);
  void on_readable();
  void take(std::string_view bytes);
  void stamp();
  void show(std::string_view bytes);
  void show_folded(std::string_view bytes);
  void show_plain(std::string_view bytes);
  bool draw_folded(std::string_view rest);
  void show_folded_first() const;
  void leave_fold();
  void release_held();
  io::Duration time_to_hold() const;
  void hold_on();
  void on_held_long();
  void finish();

  Console& console_;
  Parts parts_;
  TailRing tail_;
  NewestBytes newest_;
  std::uint64_t bytes_read_ = 0;
  io::TimePoint last_read_ = io::Clock::now();
  std::unique_ptr<io::Watch> watch_;
  io::Timer timer_;
  io::TimePoint fires_;  // when timer_ fires, if active
  LineHold hold_;
  bool paused_ = false;
  bool in_fold_ = false;
  std::function<void()> on_end_;
};

}  // namespace lockstep::logs
