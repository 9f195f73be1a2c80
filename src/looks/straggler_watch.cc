#include "looks/straggler_watch.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::looks {

std::string straggler_words(const Straggler& straggler, const std::string& node) {
  return fmt::format(
      "rank {} (node {}) makes the others wait: it waits {:.0f} % of the time, the median {:.0f} %",
      straggler.rank, node, 100 * straggler.share, 100 * straggler.others);
}

StragglerWatch::News StragglerWatch::feed(std::span<const RankShares> shares,
                                          const Verdict& verdict) {
  News news;
  const bool stands = verdict.state != JobState::training && verdict.state != JobState::starting;
  if (stands && verdict.since >= kLongStand) {
    news.forget = true;
    return news;
  }
  const auto found = find_straggler(shares);
  if (found && current_ && found->rank == current_->rank) {
    current_ = found;
    missed_ = 0;
    return news;
  }
  if (current_ && ++missed_ >= kWithdrawn) {
    news.ends = current_->rank;
    current_.reset();
  }
  if (found && !current_) {
    news.begins = current_ = found;
    missed_ = 0;
  }
  return news;
}

}  // namespace lockstep::looks
