#include "looks/look_book.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace lockstep::looks {
namespace {

// Shares of fewer looks change too fast to be read.
constexpr int kLeastLooks = 5;

double rounded(double number) {
  return std::round(number * 100) / 100;
}

}  // namespace

LookBook::LookBook(std::string node, io::Duration period)
    : node_(std::move(node)),
      tracker_(period),
      uses_(static_cast<double>(std::max(sysconf(_SC_CLK_TCK), 1L))) {}

Fold LookBook::feed(std::span<const RankLook> looks, io::TimePoint now) {
  std::vector<Seen> seen;
  known_.clear();
  for (const RankLook& look : looks) {
    Activity activity = what_doing(look);
    const Motion motion = tracker_.feed(look, activity, now);
    uses_.feed(look, now);
    if (look.process)
      shares_.add(look.rank, activity, look.process->state == 'R');
    else
      shares_.forget(look.rank);
    known_.insert_or_assign(look.rank, std::pair(activity, motion));
    seen.push_back({&look, std::move(activity), motion});
  }
  return fold(node_, seen);
}

std::vector<RankRow> LookBook::rows(std::span<const RankLook> looks, const Verdict& verdict) const {
  const std::vector<RankShares> shares = shares_.shares();
  std::vector<RankRow> rows;
  rows.reserve(looks.size());
  for (const RankLook& look : looks) {
    const auto known = known_.find(look.rank);
    if (known == known_.end()) continue;
    RankRow& row =
        rows.emplace_back(row_of(look, known->second.first, known->second.second, verdict));
    row.node = node_;
    const Use use = uses_.of(look.rank);
    row.cpu = rounded(use.cpu);
    row.memory_bytes = use.memory_bytes;
    row.loaders = use.loaders;
    const auto share = std::find_if(shares.begin(), shares.end(), [&](const RankShares& each) {
      return each.rank == look.rank && each.looks >= kLeastLooks;
    });
    if (share == shares.end() || !look.process) continue;
    row.waiting_share = rounded(share->wait_share());
    row.input_share = rounded(share->input_share());
  }
  return rows;
}

}  // namespace lockstep::looks
