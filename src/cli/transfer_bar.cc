#include "cli/transfer_bar.h"

#include "cluster/sync_tree.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

namespace lockstep::cli {
namespace {
constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::uint64_t kBarWidth = 30;
}  // namespace

TransferBar::~TransferBar() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void TransferBar::draw(std::uint64_t bytes, std::uint64_t of) {
  const auto now = std::chrono::steady_clock::now();
  if (!shown_ || of == 0 || (drawn_ && now - last_ < kRedraw)) return;
  last_ = now;
  drawn_ = true;
  const std::uint64_t done = std::min(bytes, of);
  const auto part =
      static_cast<std::uint64_t>(static_cast<double>(done) / static_cast<double>(of) * kBarWidth);
  std::fputs(fmt::format("\r\x1b[K[{:#<{}}{:.<{}}] {} of {}", "", part, "", kBarWidth - part,
                         cluster::size_text(done), cluster::size_text(of))
                 .c_str(),
             stderr);
  std::fflush(stderr);
}

}  // namespace lockstep::cli
