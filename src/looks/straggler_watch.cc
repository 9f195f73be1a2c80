#include "looks/straggler_watch.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::looks {

std::string straggler_name(int rank, const std::string& node, std::optional<int> gpu) {
  if (node.empty()) return fmt::format("rank {}", rank);
  return fmt::format("rank {} (node {}{})", rank, node, gpu ? fmt::format(", GPU {}", *gpu) : "");
}

std::string straggler_words(const Straggler& straggler, const std::string& name) {
  return fmt::format("{} makes the others wait: it waits {:.0f} % of the time, the median {:.0f} %",
                     name, 100 * straggler.share, 100 * straggler.others);
}

bool is_long_stand(const Verdict& verdict) {
  const bool stands =
      verdict.state != VerdictState::training && verdict.state != VerdictState::starting;
  return stands && verdict.since >= kLongStand;
}

StragglerWatch::News StragglerWatch::feed(std::span<const RankShares> shares,
                                          const Verdict& verdict) {
  return is_long_stand(verdict) ? News{.forget = true} : note(find_straggler(shares));
}

StragglerWatch::News StragglerWatch::note(const std::optional<Straggler>& found) {
  News news;
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
