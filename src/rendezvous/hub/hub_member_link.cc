// The member's connection: made, kept, watched, lost and made anew.
#include "base/text.h"
#include "rendezvous/hub/hub_member.h"

#include <fmt/core.h>

#include <errno.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::hub {

using std::chrono::milliseconds;

HubMember::HubMember(io::Loop& loop, HubMemberSettings settings)
    : loop_(loop),
      settings_(std::move(settings)),
      beat_timer_(loop),
      join_timer_(loop),
      reports_timer_(loop),
      leave_timer_(loop) {}

HubMember::~HubMember() = default;

std::string HubMember::place() const {
  const bool bracketed = host_.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(bracketed ? "[{}]:{}" : "{}:{}"), printable(host_), port_);
}

void HubMember::begin() {
  if (!first_until_) first_until_ = io::Clock::now() + settings_.join_timeout;
}

// What is left for it where the first round is meant.
milliseconds HubMember::time_to_join() const {
  if (round_ || !first_until_) return settings_.join_timeout;
  const auto left = std::chrono::ceil<milliseconds>(*first_until_ - io::Clock::now());
  return std::max(left, milliseconds(1));
}

void HubMember::connect(const std::string& host, int port, Done<void> done) {
  host_ = host;
  port_ = port;
  connect_done_ = std::move(done);
  down_since_ = io::Clock::now();
  begin();
  const milliseconds patience = std::min(settings_.connect_timeout, time_to_join());
  join_until_ = io::Clock::now() + patience;
  dial(patience, patience);
}

void HubMember::forget_connect() {
  dial_.reset();
  connect_done_ = nullptr;
}

void HubMember::move_to(const std::string& host, int port) {
  if (host == host_ && port == port_ && !gone_) return;
  host_ = host;
  port_ = port;
  hang_up();
  down_since_ = io::Clock::now();
  if (needs_link()) dial(time_to_join(), time_to_join());
}

void HubMember::dial(milliseconds patience, milliseconds refused_patience) {
  gone_.reset();
  HubDialSettings settings{.host = host_,
                           .port = port_,
                           .run_id = settings_.run_id,
                           .token = settings_.token,
                           .agent = settings_.agent,
                           .name = settings_.offer.host,
                           .patience = patience,
                           .refused_patience = refused_patience};
  dial_ = std::make_unique<HubDial>(loop_, std::move(settings),
                                    [this](Result<HubDial::Connected> connected) {
                                      if (!connected)
                                        return dial_failed(std::move(connected).error());
                                      connected_to(std::move(*connected));
                                    });
  if (connect_done_) dial_->on_attempt(on_attempt_);
}

void HubMember::connected_to(HubDial::Connected connected) {
  dial_.reset();
  stream_ = std::move(connected.stream);
  local_address_ = connected.local_address;
  heartbeat_ = milliseconds(connected.welcome.heartbeat_ms);
  dead_ = milliseconds(connected.welcome.dead_ms);
  messages_ += settings_.token ? 4 : 2;
  last_tick_ = io::Clock::now();
  heard_ = watched_;
  down_since_.reset();
  join_timer_.cancel();
  stream_->set_events({.frame = [this](Frame frame) { on_frame(std::move(frame)); },
                       .bytes = [this] { heard_ = watched_ + unwatched(); },
                       .ended = [this](const Error& error) { link_lost(error); }});
  beat_timer_.start(heartbeat_, [this] { tick(); });
  if (const auto done = std::exchange(connect_done_, nullptr)) return done({});
  // A failure counts in its round: first of all we are in it again.
  if (failure_ || resumes()) send_join(finish_done_ ? Join::Holds::finished : Join::Holds::running);
  if (failure_) send(*failure_);
  if (join_done_) send_join();
}

void HubMember::dial_failed(Error error) {
  dial_.reset();
  if (auto done = std::exchange(connect_done_, nullptr))
    return done(tl::make_unexpected(std::move(error)));
  if (error.code == Errc::unavailable || error.code == Errc::timeout)
    error.message =
        fmt::format("the host of the rendezvous at {} is gone: {}", place(), error.message);
  gone_ = error;
  const std::weak_ptr<const bool> life = life_;
  if (join_done_) return end_join(tl::make_unexpected(error));
  const bool finishing = finish_done_ != nullptr;
  if (const auto done = std::exchange(finish_done_, nullptr)) done(tl::make_unexpected(error));
  if (life.expired() || finishing) return;
  interrupt(Interruption::Kind::end, error.message);
}

// Broken or closed, or silent.
void HubMember::link_lost(const Error& error) {
  const std::string text =
      fmt::format("lost the connection to the rendezvous at {}: {}", place(), error.message);
  hang_up();
  down_since_ = io::Clock::now();
  status_.clear();
  const bool needed = needs_link();
  if (needed) dial(time_to_join(), settings_.lost_patience);
  if (join_done_)
    join_timer_.start(time_to_join(), [this] {
      const std::string waited = waiting_for();
      dial_.reset();
      end_join(fail(Errc::timeout, "joining timed out: " + waited));
    });
  const std::weak_ptr<const bool> life = life_;
  if (reports_done_) end_reports({own_report_});
  if (!life.expired() && leave_done_) end_leave();
  // A closed connection may still turn out to be a host that is gone: the next attempt tells. And
  // workers that have ended well are not started again for a host that is silent.
  if (!life.expired() && error.code == Errc::timeout && !finish_done_)
    interrupt(Interruption::Kind::rejoin, text);
}

void HubMember::hang_up() {
  beat_timer_.cancel();
  dial_.reset();
  stream_.reset();
}

bool HubMember::needs_link() const {
  return in_round_ || join_done_ || finish_done_ || connect_done_;
}

// Since the last tick, as far as this process ran: a longer pause is one in which it did not, and
// in which what others have sent was left unread.
milliseconds HubMember::unwatched() const {
  const auto passed = std::chrono::duration_cast<milliseconds>(io::Clock::now() - last_tick_);
  return passed > heartbeat_ * 3 / 2 ? heartbeat_ / 2 : std::max(passed, milliseconds(0));
}

void HubMember::tick() {
  watched_ += unwatched();
  last_tick_ = io::Clock::now();
  if (watched_ - heard_ >= dead_) {
    // A host that was only frozen learns of it when it wakes.
    send(Leave{Leave::How::returns});
    return link_lost({Errc::timeout,
                      fmt::format("nothing was heard of it for {:.1f} s",
                                  std::chrono::duration<double>(watched_ - heard_).count()),
                      {},
                      ETIMEDOUT});
  }
  stream_->send(Beat{});
  beat_timer_.start(heartbeat_, [this] { tick(); });
}

void HubMember::send(const Frame& frame) {
  ++messages_;
  stream_->send(frame);
}

}  // namespace lockstep::rendezvous::hub
