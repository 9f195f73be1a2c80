#include "rendezvous/hub/report_exchange.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace lockstep::rendezvous::hub {

void ReportExchange::failed(int rank) {
  if (!first_failed_) first_failed_ = rank;
}

void ReportExchange::tell(int rank, TellReport tell, Time now) {
  told_[rank] = std::move(tell.report);
  // The answer must arrive before the first node's own timeout ends, hence four fifths of it.
  if (!until_) until_ = now + Ms(tell.timeout_ms) * 4 / 5;
}

void ReportExchange::leave(int rank) {
  const auto at = told_.find(rank);
  if (at == told_.end()) return;
  // A node that comes back and leaves again must not add to the memory.
  left_.insert_or_assign(rank, std::move(at->second));
  told_.erase(at);
}

std::set<int> ReportExchange::close() {
  until_.reset();
  std::set<int> waiting;
  std::vector<std::pair<int, Report>> all(std::make_move_iterator(left_.begin()),
                                          std::make_move_iterator(left_.end()));
  for (auto& [rank, report] : told_) {
    waiting.insert(rank);
    all.emplace_back(rank, std::move(report));
  }
  told_.clear();
  left_.clear();
  const int first = first_failed_.value_or(-1);
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    return std::pair(a.first != first, a.first) < std::pair(b.first != first, b.first);
  });
  Reports answer;
  std::size_t size = 0;
  for (auto& [rank, report] : all) {
    size += report.text.size();
    // A frame has a bound. The first failure's report comes first, so it is never the one left out.
    if (size > kMaxReports) break;
    answer.reports.push_back(std::move(report));
  }
  answer_ = std::make_shared<const std::string>(frame_bytes(std::move(answer)));
  return waiting;
}

}  // namespace lockstep::rendezvous::hub
