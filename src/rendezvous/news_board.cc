#include "rendezvous/news_board.h"

#include "rendezvous/backend.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::rendezvous {

NewsBoard::NewsBoard(io::Loop& loop, KeyValue& keys, std::string prefix, int rank,
                     std::vector<bool> ours, Heard heard)
    : keys_(keys),
      prefix_(std::move(prefix)),
      rank_(rank),
      heard_(std::move(heard)),
      others_(ours.size()),
      timer_(loop) {
  for (std::size_t node = 0; node < ours.size(); ++node)
    others_[node].reads = ours[node] && (rank == 0 ? node != 0 : node == 0);
}

std::string NewsBoard::key(int node) const {
  return fmt::format("{}lockstep/news/{}", prefix_, node);
}

// A number before the text tells equal news apart.
void NewsBoard::send(const std::string& text) {
  if (number_ == 0) timer_.start({}, [this] { look(); });
  keys_.set(key(rank_), fmt::format("{} {}", ++number_, text), nullptr);
}

void NewsBoard::look() {
  timer_.start(kPeriod, [this] { look(); });
  for (std::size_t node = 0; node < others_.size(); ++node)
    if (others_[node].reads && !others_[node].pending) ask(node);
}

void NewsBoard::ask(std::size_t node) {
  others_[node].pending = true;
  keys_.probe(key(static_cast<int>(node)),
              calls_([this, node](const Result<std::optional<std::string>>& value) {
                others_[node].pending = false;
                if (value) take(node, *value);
              }));
}

void NewsBoard::take(std::size_t node, const std::optional<std::string>& value) {
  constexpr std::size_t kMostDigits = 20;
  if (!value || value->size() > kMostNews + kMostDigits) return;
  const std::size_t space = value->find(' ');
  if (space > kMostDigits) return;
  std::string number = value->substr(0, space);
  if (number == others_[node].last) return;
  others_[node].last = std::move(number);
  // Copy the function: the call may destroy this board.
  const auto heard = heard_;
  heard(static_cast<int>(node), value->substr(space + 1));
}

}  // namespace lockstep::rendezvous
