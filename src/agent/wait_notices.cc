// Repeats a notice while a node waits.
#include "agent/wait_notices.h"

#include "base/log.h"
#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::agent {
namespace {
// kFirstStaying is for a node that stays after its own job has ended. kSeldom is the longest pause.
constexpr std::chrono::seconds kFirst{5};
constexpr std::chrono::seconds kEvery{10};
constexpr std::chrono::seconds kFirstStaying{1};
constexpr std::chrono::seconds kSeldom{300};
constexpr std::chrono::minutes kLong{10};
}  // namespace

void WaitNotices::start(const rendezvous::Backend& backend) {
  since_ = io::Clock::now();
  said_.clear();
  say_later(backend, kFirst);
}

std::chrono::seconds WaitNotices::waited() const {
  return std::chrono::round<std::chrono::seconds>(io::Clock::now() - since_);
}

void WaitNotices::say_later(const rendezvous::Backend& backend, io::Duration pause) {
  timer_.start(pause, [this, &backend, pause] {
    const auto so_far = waited();
    std::string text = printable(backend.waiting_for(), kMostWords);
    if (!text.empty()) {
      // A backend without a limit waits for ever: print no end.
      const auto until = backend.gives_up_at().value_or(io::TimePoint::min());
      const auto left = std::chrono::round<std::chrono::seconds>(until - io::Clock::now());
      log::warning("waiting for {} s: {}{}", so_far.count(), text,
                   until > io::Clock::now() ? fmt::format("; gives up in {} s", left.count()) : "");
    }
    // The pause doubles only after ten minutes without a change: a spare may wait for days.
    const bool news = text != said_;
    said_ = std::move(text);
    const bool often = news || so_far <= kLong;
    say_later(backend, often ? kEvery : std::min<io::Duration>(2 * pause, kSeldom));
  });
}

void WaitNotices::start_staying(const rendezvous::Backend& backend) {
  say_staying_later(backend, kFirstStaying);
}

void WaitNotices::say_staying_later(const rendezvous::Backend& backend, io::Duration pause) {
  timer_.start(pause, [this, &backend] {
    const std::string text = printable(backend.staying_for(), kMostWords);
    if (!text.empty()) log::warning("{}", text);
    say_staying_later(backend, kEvery);
  });
}

}  // namespace lockstep::agent
