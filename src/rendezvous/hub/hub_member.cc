// The driver of HubMemberCore: socket, timer and callbacks.
#include "rendezvous/hub/hub_member.h"

#include "base/text.h"
#include "io/place_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace lockstep::rendezvous::hub {

using std::chrono::milliseconds;

HubMember::HubMember(io::Loop& loop, HubMemberSettings settings)
    : loop_(loop),
      settings_(std::move(settings)),
      core_(settings_.rules),
      back_(loop),
      timer_(loop) {}

HubMember::~HubMember() = default;

// --- around the core ---

// Carries out the steps of a request. Callbacks wait for the next turn of the loop.
void HubMember::asked() {
  take_steps();
  arm();
}

// Carries out the steps of an event and tells the agent. Any callback may ask for more, or destroy
// this member.
void HubMember::happened() {
  const auto here = scope_.witness();
  take_steps();
  while (auto outcome = core_.next_outcome()) {
    std::visit([this](auto& told) { tell(told); }, *outcome);
    if (here.gone()) return;
  }
  asked();
}

void HubMember::take_steps() {
  for (auto steps = core_.take_steps(); !steps.empty(); steps = core_.take_steps()) {
    for (const auto& step : steps)
      std::visit([this](const auto& todo) { take(todo); }, step);
  }
}

void HubMember::arm() {
  auto next = core_.next_time();
  // A request has produced an outcome: tell the agent in the next turn.
  if (core_.has_outcome()) next = io::Clock::now();
  if (!next) return timer_.cancel();
  timer_.start(std::max(*next - io::Clock::now(), io::Duration(0)), [this] {
    core_.tick(waiting_for(), io::Clock::now());
    happened();
  });
}

// --- steps ---

void HubMember::take(const Core::Dial& dial) {
  HubDialSettings settings{.host = host_,
                           .port = port_,
                           .run_id = settings_.run_id,
                           .token = settings_.token,
                           .agent = settings_.agent,
                           .name = settings_.rules.offer.host,
                           .patience = dial.patience,
                           .refused_patience = dial.refused_patience};
  dial_ = std::make_unique<HubDial>(
      loop_, std::move(settings),
      [this](Result<HubDial::Connected> connected) { dialed(std::move(connected)); });
  // Only before the first connection can this node still become the host.
  if (core_.phase() == Core::Phase::connecting) dial_->on_attempt(on_attempt_);
}

void HubMember::take(const Core::StopDialing&) {
  dial_.reset();
}

void HubMember::take(const Core::HangUp&) {
  dial_.reset();
  stream_.reset();
}

void HubMember::take(const Core::Send& send) {
  stream_->send(send.frame);
}

void HubMember::take(const Core::OpenStore& open) {
  core_.store_offered(open.round, settings_.offer_store(core_.address()));
}

void HubMember::dialed(Result<HubDial::Connected> connected) {
  dial_.reset();
  const auto now = io::Clock::now();
  if (!connected) {
    core_.dial_failed(std::move(connected).error());
    return happened();
  }
  stream_ = std::move(connected->stream);
  local_address_ = connected->local_address;
  stream_->set_events({.frame =
                           [this](Frame frame) {
                             if (take_as_witness(frame) || is_redirected(frame)) return;
                             core_.take(std::move(frame), io::Clock::now());
                             happened();
                           },
                       .bytes = [this] { core_.bytes_came(io::Clock::now()); },
                       .ended =
                           [this](const Error& error) {
                             core_.lost(error, io::Clock::now());
                             go_back();
                             happened();
                           }});
  // For the message counter: hello and welcome; with a token also challenge and proof.
  constexpr std::uint64_t kGreeting = 2;
  constexpr std::uint64_t kProvenGreeting = 4;
  core_.connected(milliseconds(connected->welcome.heartbeat_ms),
                  milliseconds(connected->welcome.dead_ms),
                  settings_.token ? kProvenGreeting : kGreeting, now);
  happened();
}

// --- outcomes ---

void HubMember::tell(Core::Connected& outcome) {
  if (const auto done = std::exchange(connect_done_, nullptr)) done(std::move(outcome.status));
}

void HubMember::tell(Core::Joined& outcome) {
  if (const auto done = std::exchange(join_done_, nullptr)) done(std::move(outcome.round));
}

void HubMember::tell(Core::AllFinished& outcome) {
  if (const auto done = std::exchange(finish_done_, nullptr)) done(std::move(outcome.status));
}

void HubMember::tell(Interruption& outcome) {
  // Copy the function: the call may destroy this member.
  if (const auto call = on_interruption_) call(outcome);
}

void HubMember::tell(Core::Reported& outcome) {
  if (const auto done = std::exchange(reports_done_, nullptr)) done(std::move(outcome.reports));
}

void HubMember::tell(Core::Departed&) {
  if (const auto done = std::exchange(leave_done_, nullptr)) done({});
}

void HubMember::tell(Core::Unlinked& outcome) {
  if (const auto call = on_unlinked_) call(outcome.error);
}

void HubMember::tell(News& outcome) {
  if (const auto call = on_news_) call(outcome.from, outcome.text);
}

// Answers as a witness. Returns whether the frame was for the witness. A charter always comes over
// the current connection, so a hub that this node has left cannot change the record.
bool HubMember::take_as_witness(const Frame& frame) {
  if (!settings_.witness) return false;
  if (const auto* call = std::get_if<Call>(&frame)) {
    stream_->send(settings_.witness->testify(*call));
    return true;
  }
  const auto* charter = std::get_if<Charter>(&frame);
  if (charter == nullptr) return false;
  const Frame answer = settings_.witness->take(*charter);
  stream_->send(answer);
  if (!std::holds_alternative<Agreed>(answer)) return true;
  core_.led();
  redirected_from_.reset();
  // Copy the function: the call may replace it.
  if (const auto call = on_charter_) call();
  return true;
}

// Goes to the hub that the endpoint's host names. Returns whether the frame was such a word.
bool HubMember::is_redirected(const Frame& frame) {
  const auto* moved = std::get_if<Moved>(&frame);
  if (moved == nullptr || !settings_.witness) return false;
  if (moved->forget) forget_job();
  if (!redirected_from_) redirected_from_ = Moved{{host_, port_}};
  move_to(moved->place.host, moved->place.port);
  constexpr milliseconds kPatience{3'000};
  back_.start(kPatience, [this] {
    if (!connected()) go_back();
  });
  return true;
}

// Asks the endpoint's host again, because the named hub was gone or did not come to lead.
void HubMember::go_back() {
  if (!redirected_from_) return;
  const Moved from = *std::exchange(redirected_from_, std::nullopt);
  move_to(from.place.host, from.place.port);
}

void HubMember::forget_job() {
  settings_.witness->forget();
  core_.forget_round();
}

std::optional<Moved> HubMember::hub_elsewhere() const {
  if (!connected() || host_ == kOwnHub) return std::nullopt;
  return Moved{{host_, port_}};
}

// --- what the agent asks for ---

void HubMember::begin() {
  core_.begin(io::Clock::now());
}

void HubMember::connect(const std::string& host, int port, Done<void> done) {
  host_ = host;
  port_ = port;
  connect_done_ = std::move(done);
  core_.connect(io::place_text(printable(host), port), io::Clock::now());
  asked();
}

void HubMember::forget_connect() {
  connect_done_ = nullptr;
  core_.forget_connect();
  asked();
}

void HubMember::move_to(const std::string& host, int port) {
  host_ = host;
  port_ = port;
  core_.move_to(io::place_text(printable(host), port), io::Clock::now());
  asked();
}

void HubMember::give_up(Error error) {
  core_.give_up(std::move(error));
  asked();
}

void HubMember::join(Done<std::optional<Round>> done) {
  join_done_ = std::move(done);
  core_.join(io::Clock::now());
  asked();
}

void HubMember::tell_failure(const std::string& line, bool final) {
  core_.tell_failure(line, final);
  asked();
}

void HubMember::tell_stop() {
  core_.tell_stop();
  asked();
}

bool HubMember::send_news(const std::string& text) {
  const bool sent = core_.send_news(text);
  asked();
  return sent;
}

void HubMember::finish(Done<void> done) {
  finish_done_ = std::move(done);
  core_.finish();
  asked();
}

void HubMember::exchange_reports(const NodeReport& own, milliseconds timeout, ReportsDone done) {
  reports_done_ = std::move(done);
  core_.exchange_reports(own, timeout, io::Clock::now());
  asked();
}

void HubMember::leave(Departure how, Done<void> done) {
  leave_done_ = std::move(done);
  core_.leave(how, io::Clock::now());
  asked();
}

std::string HubMember::waiting_for() const {
  using Phase = Core::Phase;
  const std::string id = printable(settings_.run_id);
  const std::string& status = core_.status();
  if (!stream_ && !host_.empty()) {
    const std::string where = fmt::format("the rendezvous '{}' at {}", id, core_.place());
    const std::string trouble = dial_ ? dial_->trouble() : std::string();
    const std::string why = trouble.empty() ? "" : ": " + trouble;
    if (core_.phase() == Phase::connecting) return where + why;
    const auto now = io::Clock::now();
    return fmt::format(
        "no connection to {} for {:.0f} s{}", where,
        std::chrono::duration<double>(now - core_.down_since().value_or(now)).count(), why);
  }
  if (core_.phase() == Phase::joining)
    return fmt::format("the rendezvous '{}': {}", id, status.empty() ? "joined" : status);
  if (core_.phase() == Phase::finishing)
    return status.empty() ? "the workers of other nodes to end" : status;
  if (core_.awaits_reports()) return "reports of the other nodes";
  return {};
}

}  // namespace lockstep::rendezvous::hub
