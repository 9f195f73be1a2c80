#include "cli/transfer_bar.h"

#include "project/sync_tree.h"

#include <fmt/core.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace lockstep::cli {
namespace {
constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::size_t kLongestBar = 30;
constexpr std::size_t kShortestBar = 4;

TransferBar::Sink& sink() {
  static TransferBar::Sink one;
  return one;
}
}  // namespace

void TransferBar::send_to(Sink sink) {
  cli::sink() = std::move(sink);
}

std::string bar_text(std::uint64_t bytes, std::uint64_t of, std::size_t columns) {
  const std::size_t room = columns - std::min<std::size_t>(columns, 1);
  if (of == 0) return project::size_text(bytes).substr(0, room);
  const std::uint64_t done = std::min(bytes, of);
  const std::string words =
      fmt::format("{} of {}", project::size_text(done), project::size_text(of));
  constexpr std::size_t kFrame = 3;  // the brackets and the space behind them
  if (room < words.size() + kFrame + kShortestBar) return words.substr(0, room);
  const std::size_t width = std::min(kLongestBar, room - words.size() - kFrame);
  const auto part = static_cast<std::size_t>(static_cast<double>(done) / static_cast<double>(of) *
                                             static_cast<double>(width));
  return fmt::format("[{:#<{}}{:.<{}}] {}", "", part, "", width - part, words);
}

void TransferBar::draw(std::uint64_t bytes, std::uint64_t of) {
  const auto now = std::chrono::steady_clock::now();
  if (!wanted_ || (drawn_ && now - last_ < kRedraw)) return;
  if (sink()) {
    last_ = now;
    drawn_ = true;
    return sink()(bytes, of);
  }
  // Ask each time: the user may have resized the window.
  const std::size_t columns = terminal_size(STDERR_FILENO).columns;
  if (columns == 0) return;
  last_ = now;
  drawn_ = true;
  std::fputs(("\r\x1b[K" + bar_text(bytes, of, columns)).c_str(), stderr);
  std::fflush(stderr);
}

void TransferBar::clear() {
  if (!std::exchange(drawn_, false)) return;
  if (sink()) return sink()(0, 0);
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
}

}  // namespace lockstep::cli
