// Requests of the agent and frames of the hub; hub_member_core_link.cc has the connection.
#include "rendezvous/hub/hub_member_core.h"

#include "rendezvous/hub/hub_refusal.h"

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::hub {

HubMemberCore::HubMemberCore(HubMemberRules rules) : rules_(std::move(rules)) {}

bool HubMemberCore::in_round() const {
  return phase_ == Phase::running || phase_ == Phase::finishing || phase_ == Phase::over;
}

std::optional<io::TimePoint> HubMemberCore::gives_up_at() const {
  const bool waits = phase_ == Phase::connecting || phase_ == Phase::joining;
  return waits ? join_until_ : std::nullopt;
}

std::optional<HubMemberCore::Outcome> HubMemberCore::next_outcome() {
  if (outcomes_.empty()) return std::nullopt;
  Outcome first = std::move(outcomes_.front());
  outcomes_.pop_front();
  return first;
}

// Drops the outcomes of earlier requests because the agent has moved on. Keeps reports, which no
// other request replaces, and the loss of the connection.
void HubMemberCore::forget_outcomes() {
  std::erase_if(outcomes_, [](const Outcome& outcome) {
    return !std::holds_alternative<Reported>(outcome) && !std::holds_alternative<Unlinked>(outcome);
  });
}

void HubMemberCore::send(const Frame& frame) {
  ++messages_;
  steps_.emplace_back(Send{frame});
}

// --- rounds ---

void HubMemberCore::begin(io::TimePoint now) {
  if (!first_until_) first_until_ = now + rules_.join_timeout;
}

// Returns the time left for a join. The first round has one deadline, however many attempts it
// takes.
HubMemberCore::Ms HubMemberCore::time_to_join(io::TimePoint now) const {
  if (round_ || !first_until_) return rules_.join_timeout;
  return std::max(std::chrono::ceil<Ms>(*first_until_ - now), Ms(1));
}

void HubMemberCore::join(io::TimePoint now) {
  forget_outcomes();
  phase_ = Phase::joining;
  status_.clear();
  const Ms allowed = time_to_join(now);
  join_until_ = now + allowed;
  if (link_ == Link::up) return send_join(Join::Holds::nothing, now);
  // With succession another host may open a hub at any time, so keep dialing.
  if (link_ == Link::none) dial(allowed, rules_.succession ? allowed : rules_.lost_patience);
  linkless_until_ = now + allowed;
}

void HubMemberCore::send_join(Join::Holds holds, io::TimePoint now) {
  const NodeOffer& offer = rules_.offer;
  Join join;
  join.role = offer.role;
  join.local_world_size = offer.local_world_size;
  join.host = offer.host;
  join.address = address_;
  join.node_rank = offer.node_rank.value_or(-1);
  join.max_restarts = offer.max_restarts;
  join.launched = offer.launched;
  join.replacement = offer.replacement;
  join.gives_way = gives_way_;
  join.min_nodes = static_cast<std::uint32_t>(rules_.min_nodes);
  join.max_nodes = static_cast<std::uint32_t>(rules_.max_nodes);
  join.join_timeout_ms = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(time_to_join(now).count(), 1, UINT32_MAX));
  if (round_ && !foreign_round_) {
    join.last_round = round_->number;
    join.last_rank = round_->group_rank;
    // A hub that takes over learns the order and size of the last round from the joins.
    join.last_nodes = round_->group_world_size;
    join.restarts = round_->restarts;
    join.holds = holds;
  }
  send(join);
}

void HubMemberCore::forget_round() {
  interrupt(Interruption::Kind::rejoin, "the job goes on at another host, without this round");
  foreign_round_ = round_.has_value();
  failure_.reset();
}

void HubMemberCore::store_offered(std::int64_t round, Result<StorePlace> place) {
  StoreOffer answer;
  answer.round = round;
  if (place) {
    answer.addr = place->addr;
    answer.port = place->port;
  } else {
    answer.error = place.error().message;
  }
  send(answer);
}

void HubMemberCore::end_join(Result<std::optional<Round>> outcome) {
  if (phase_ != Phase::joining) return;
  phase_ = outcome && *outcome ? Phase::running : Phase::idle;
  linkless_until_.reset();
  outcomes_.emplace_back(Joined{std::move(outcome)});
}

void HubMemberCore::interrupt(Interruption::Kind kind, const std::string& why) {
  if (phase_ != Phase::running && phase_ != Phase::finishing) return;
  phase_ = Phase::over;
  outcomes_.emplace_back(Interruption{kind, why});
}

void HubMemberCore::tell_failure(const std::string& line, bool final) {
  if (!in_round()) return;
  // Keep the failure: after a reconnection the hub must hear of it again.
  failure_ = Failed{round_->number, final, line};
  if (link_ == Link::up) send(*failure_);
}

// News do not count as messages. A lost connection loses them.
bool HubMemberCore::send_news(const std::string& text) {
  const bool runs = phase_ == Phase::running || phase_ == Phase::finishing;
  if (!runs || link_ != Link::up) return false;
  steps_.emplace_back(Send{News{.round = round_->number, .from = 0, .text = text}});
  return true;
}

void HubMemberCore::finish() {
  // The search for the hub has ended before. Without a hub no barrier can be awaited.
  if (gone_) {
    outcomes_.emplace_back(AllFinished{tl::make_unexpected(*gone_)});
    return;
  }
  if (!in_round()) return;
  phase_ = Phase::finishing;
  status_.clear();
  if (link_ == Link::up) send(Finish{round_->number});
}

// --- the end ---

void HubMemberCore::tell_stop() {
  if (phase_ == Phase::stopping) return;
  forget_outcomes();
  failure_.reset();
  stop_dialing();
  linkless_until_.reset();
  phase_ = Phase::stopping;
  if (link_ == Link::up) send(Leave{Leave::How::stopped});
}

void HubMemberCore::exchange_reports(const NodeReport& own, Ms timeout, io::TimePoint now) {
  own_report_ = own;
  // Without a hub only the own report is known, and the agent must not wait for others.
  if (link_ != Link::up) return end_reports({own});
  reports_until_ = now + timeout;
  send(TellReport{static_cast<std::uint32_t>(std::clamp<std::int64_t>(timeout.count(), 1, 1 << 30)),
                  {own.host, own.group_rank, own.text}});
}

void HubMemberCore::end_reports(std::vector<NodeReport> reports) {
  reports_until_.reset();
  outcomes_.emplace_back(Reported{std::move(reports)});
}

void HubMemberCore::leave(Departure how, io::TimePoint now) {
  // tell_stop() has already sent the Leave.
  const bool told = phase_ == Phase::stopping;
  forget_outcomes();
  phase_ = Phase::leaving;
  linkless_until_.reset();
  stop_dialing();
  leave_until_ = link_ == Link::up ? now + rules_.close_timeout : now;
  if (link_ != Link::up || told) return;
  send(Leave{how == Departure::succeeded ? Leave::How::succeeded
             : how == Departure::failed  ? Leave::How::failed
                                         : Leave::How::stopped});
}

void HubMemberCore::end_leave() {
  leave_until_.reset();
  hang_up();
  phase_ = Phase::idle;
  outcomes_.emplace_back(Departed{});
}

// --- what the hub says ---

void HubMemberCore::take(Frame frame, io::TimePoint now) {
  if (auto* beat = std::get_if<Beat>(&frame)) return on_beat(std::move(*beat), now);
  if (auto* news = std::get_if<News>(&frame)) {
    if (in_round() && news->round == round_->number) outcomes_.emplace_back(std::move(*news));
    return;
  }
  ++messages_;
  if (const auto* placed = std::get_if<Placed>(&frame)) return on_placed(*placed);
  if (const auto* wanted = std::get_if<StoreWanted>(&frame)) {
    // The request may reach a node that has stopped joining.
    if (phase_ == Phase::joining) steps_.emplace_back(OpenStore{wanted->round});
    return;
  }
  if (const auto* stop = std::get_if<Interrupted>(&frame)) {
    if (!round_ || stop->round != round_->number) return;
    using Kind = Interruption::Kind;
    return interrupt(stop->end ? Kind::end : Kind::rejoin, stop->why);
  }
  if (const auto* all = std::get_if<Finished>(&frame)) {
    if (phase_ != Phase::finishing || all->round != round_->number) return;
    // Nothing can interrupt this round any more.
    phase_ = Phase::over;
    outcomes_.emplace_back(AllFinished{});
    return;
  }
  if (std::holds_alternative<Ended>(frame)) return end_join(std::optional<Round>());
  if (const auto* refusal = std::get_if<Refusal>(&frame))
    return end_join(tl::make_unexpected(refusal_error(*refusal)));
  if (std::holds_alternative<Left>(frame)) {
    if (phase_ == Phase::leaving) return end_leave();
    if (phase_ == Phase::stopping) return hang_up();
  }
  if (auto* told = std::get_if<Reports>(&frame)) on_reports(std::move(*told));
}

// A spare waits as long as the job runs. A node that stops being a spare gets a fresh join timeout.
void HubMemberCore::on_beat(Beat beat, io::TimePoint now) {
  status_ = std::move(beat.status);
  const bool spare = status_.ends_with(kSpareStatus);
  if (spare) join_until_.reset();
  if (!spare && !join_until_) join_until_ = now + time_to_join(now);
}

void HubMemberCore::on_placed(const Placed& placed) {
  if (phase_ != Phase::joining) return;
  round_ = placed.round;
  foreign_round_ = false;
  failure_.reset();
  end_join(std::optional<Round>(placed.round));
}

void HubMemberCore::on_reports(Reports told) {
  if (!reports_until_) return;
  std::vector<NodeReport> reports;
  reports.reserve(told.reports.size());
  for (auto& report : told.reports)
    reports.push_back({std::move(report.host), report.group_rank, std::move(report.text)});
  end_reports(std::move(reports));
}

}  // namespace lockstep::rendezvous::hub
