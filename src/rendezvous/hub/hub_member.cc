// What the agent asks of the hub, and what the hub says; hub_member_link.cc has the connection.
#include "rendezvous/hub/hub_member.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::hub {

using std::chrono::milliseconds;

// In a later turn of the loop, unless the member is gone by then.
void HubMember::later(std::function<void()> fn) {
  loop_.post([life = std::weak_ptr<const bool>(life_), fn = std::move(fn)] {
    if (!life.expired()) fn();
  });
}

// --- rounds ---

void HubMember::join(Done<std::optional<Round>> done) {
  join_done_ = std::move(done);
  finish_done_ = nullptr;
  in_round_ = false;
  interrupted_ = false;
  status_.clear();
  join_until_ = io::Clock::now() + time_to_join();
  if (stream_) return send_join();
  const milliseconds allowed = time_to_join();
  if (!dial_) dial(allowed, settings_.lost_patience);
  join_timer_.start(allowed, [this] {
    const std::string waited = waiting_for();
    dial_.reset();
    end_join(fail(Errc::timeout, "joining timed out: " + waited));
  });
}

void HubMember::send_join(Join::Holds holds) {
  const NodeOffer& offer = settings_.offer;
  Join join;
  join.role = offer.role;
  join.local_world_size = offer.local_world_size;
  join.host = offer.host;
  join.address = address_;
  join.node_rank = offer.node_rank.value_or(-1);
  join.max_restarts = offer.max_restarts;
  join.launched = offer.launched;
  join.replacement = offer.replacement;
  join.min_nodes = static_cast<std::uint32_t>(settings_.min_nodes);
  join.max_nodes = static_cast<std::uint32_t>(settings_.max_nodes);
  join.join_timeout_ms =
      static_cast<std::uint32_t>(std::clamp<std::int64_t>(time_to_join().count(), 1, UINT32_MAX));
  if (round_) {
    join.last_round = round_->number;
    join.last_rank = round_->group_rank;
    join.last_nodes = round_->group_world_size;
    join.restarts = round_->restarts;
    join.holds = holds;
  }
  send(join);
}

bool HubMember::resumes() const {
  return in_round_ && !interrupted_ && !join_done_;
}

void HubMember::offer_store(const StoreWanted& wanted) {
  if (!join_done_) return;
  auto place = settings_.offer_store(address_);
  StoreOffer answer;
  answer.round = wanted.round;
  if (place) {
    answer.addr = place->addr;
    answer.port = place->port;
  } else {
    answer.error = place.error().message;
  }
  send(answer);
}

void HubMember::on_placed(const Placed& placed) {
  if (!join_done_) return;
  round_ = placed.round;
  in_round_ = true;
  failure_.reset();
  end_join(std::optional<Round>(placed.round));
}

void HubMember::end_join(Result<std::optional<Round>> outcome) {
  join_timer_.cancel();
  if (const auto done = std::exchange(join_done_, nullptr)) done(std::move(outcome));
}

void HubMember::interrupt(Interruption::Kind kind, const std::string& why) {
  if (!in_round_ || std::exchange(interrupted_, true)) return;
  finish_done_ = nullptr;
  if (const auto tell = on_interruption_) tell({kind, why});
}

void HubMember::tell_failure(const std::string& line, bool final) {
  if (!in_round_) return;
  failure_ = Failed{round_->number, final, line};
  if (stream_) send(*failure_);
}

// leave() comes when the workers have ended; the hub need not wait so long.
void HubMember::tell_stop() {
  in_round_ = false;
  finish_done_ = nullptr;
  failure_.reset();
  dial_.reset();
  if (stream_ && !std::exchange(told_stop_, true)) send(Leave{Leave::How::stopped});
}

void HubMember::finish(Done<void> done) {
  if (gone_ && !stream_ && !dial_)
    return later([done = std::move(done), error = *gone_] { done(tl::make_unexpected(error)); });
  finish_done_ = std::move(done);
  status_.clear();
  if (stream_ && in_round_) send(Finish{round_->number});
}

// --- the end ---

void HubMember::exchange_reports(const NodeReport& own, milliseconds timeout,
                                 std::function<void(std::vector<NodeReport>)> done) {
  if (!stream_) return later([done = std::move(done), own] { done({own}); });
  own_report_ = own;
  reports_done_ = std::move(done);
  reports_timer_.start(timeout, [this] { end_reports({own_report_}); });
  send(TellReport{static_cast<std::uint32_t>(std::clamp<std::int64_t>(timeout.count(), 1, 1 << 30)),
                  {own.host, own.group_rank, own.text}});
}

void HubMember::end_reports(std::vector<NodeReport> reports) {
  reports_timer_.cancel();
  if (const auto done = std::exchange(reports_done_, nullptr)) done(std::move(reports));
}

void HubMember::leave(Departure how, Done<void> done) {
  leave_done_ = std::move(done);
  in_round_ = false;
  finish_done_ = nullptr;
  join_done_ = nullptr;
  join_timer_.cancel();
  dial_.reset();
  leave_timer_.start(stream_ ? settings_.close_timeout : milliseconds(0), [this] { end_leave(); });
  if (!stream_ || told_stop_) return;
  send(Leave{how == Departure::succeeded ? Leave::How::succeeded
             : how == Departure::failed  ? Leave::How::failed
                                         : Leave::How::stopped});
}

// The connection goes with it.
void HubMember::end_leave() {
  leave_timer_.cancel();
  hang_up();
  if (const auto done = std::exchange(leave_done_, nullptr)) done({});
}

// --- what the hub says ---

void HubMember::on_frame(Frame frame) {
  if (const auto* beat = std::get_if<Beat>(&frame)) {
    status_ = beat->status;
    const bool spare = status_.ends_with(kSpareStatus);
    if (spare) join_until_.reset();
    if (!spare && !join_until_) join_until_ = io::Clock::now() + time_to_join();
    return;
  }
  ++messages_;
  if (const auto* placed = std::get_if<Placed>(&frame)) return on_placed(*placed);
  if (const auto* wanted = std::get_if<StoreWanted>(&frame)) return offer_store(*wanted);
  if (const auto* over = std::get_if<Interrupted>(&frame)) {
    if (!round_ || over->round != round_->number) return;
    using Kind = Interruption::Kind;
    return interrupt(over->end ? Kind::end : Kind::rejoin, over->why);
  }
  if (const auto* all = std::get_if<Finished>(&frame)) {
    if (!round_ || all->round != round_->number || !finish_done_) return;
    interrupted_ = true;  // nothing can end this round any more
    return std::exchange(finish_done_, nullptr)({});
  }
  if (std::holds_alternative<Ended>(frame)) return end_join(std::optional<Round>());
  if (const auto* refusal = std::get_if<Refusal>(&frame))
    return end_join(tl::make_unexpected(refusal_error(*refusal)));
  if (std::holds_alternative<Left>(frame)) {
    if (leave_done_) return end_leave();
    if (told_stop_) return hang_up();
  }
  if (auto* told = std::get_if<Reports>(&frame); told != nullptr && reports_done_) {
    std::vector<NodeReport> reports;
    reports.reserve(told->reports.size());
    for (auto& report : told->reports)
      reports.push_back({std::move(report.host), report.group_rank, std::move(report.text)});
    end_reports(std::move(reports));
  }
}

std::string HubMember::waiting_for() const {
  const std::string id = printable(settings_.run_id);
  const auto since = [](io::TimePoint time) {
    return std::chrono::duration<double>(io::Clock::now() - time).count();
  };
  if (!stream_ && !host_.empty()) {
    const std::string where = fmt::format("the rendezvous '{}' at {}", id, place());
    const std::string trouble = dial_ ? dial_->trouble() : std::string();
    const std::string why = trouble.empty() ? "" : ": " + trouble;
    if (connect_done_) return where + why;
    return fmt::format("no connection to {} for {:.0f} s{}", where,
                       since(down_since_.value_or(io::Clock::now())), why);
  }
  if (join_done_)
    return fmt::format("the rendezvous '{}': {}", id, status_.empty() ? "joined" : status_);
  if (finish_done_) return status_.empty() ? "the workers of other nodes to end" : status_;
  if (reports_done_) return "reports of the other nodes";
  return {};
}

std::optional<io::TimePoint> HubMember::gives_up_at() const {
  return connect_done_ || join_done_ ? join_until_ : std::nullopt;
}

}  // namespace lockstep::rendezvous::hub
