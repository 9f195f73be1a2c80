#include "agent/world_sight.h"

#include <utility>

namespace lockstep::agent {

void WorldSight::begin(int group_rank, int nodes, int ranks) {
  shared_ = nodes > 1 && way_.open();
  rank_ = group_rank;
  teller_ = looks::NodeTeller();
  world_ = looks::WorldLooks(nodes, ranks);
  leader_ = looks::WorldTeller(nodes);
  view_ = looks::WorldView();
}

void WorldSight::tell_own(const looks::Fold& own, Own besides, io::TimePoint now) {
  if (!is_judged()) return;
  const auto news = teller_.feed(own,
                                 {.pids = std::move(besides.pids),
                                  .gpus = std::move(besides.gpus),
                                  .recorders = std::move(besides.recorders),
                                  .waits = std::move(besides.waits),
                                  .lacks = view_.lacks_fold(),
                                  .timed_out = besides.timed_out},
                                 now);
  if (news && !way_.send(looks::print_news(*news))) teller_.forget();
}

looks::Fold WorldSight::fold(const looks::Fold& own, io::TimePoint now) const {
  if (!shared_) return own;
  return rank_ == 0 ? world_.merged(own, now) : view_.merged(own);
}

std::string WorldSight::silence(io::TimePoint now) const {
  return judges_all() ? world_.silence(now) : std::string();
}

void WorldSight::tell_verdict(looks::WorldNews news, io::TimePoint now) {
  if (!judges_all()) return;
  news.unknown = world_.unknown();
  const auto told = leader_.feed(std::move(news), now);
  if (told && !way_.send(looks::print_news(*told))) leader_.forget();
}

bool WorldSight::hear(int from, const std::string& text, io::TimePoint now) {
  if (!shared_) return false;
  if (rank_ == 0) {
    if (world_.hear(from, text, now)) leader_.repeat_fold();
    return false;
  }
  if (from != 0) return false;
  const bool alarm = view_.hear(text, now);
  if (view_.asks(rank_)) teller_.forget();
  return alarm;
}

}  // namespace lockstep::agent
