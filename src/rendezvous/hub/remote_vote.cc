// One connection at a time; the witness (ledger.h) remembers across connections.
#include "rendezvous/hub/remote_vote.h"

#include "rendezvous/hub/hub_member.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace lockstep::rendezvous::hub {
namespace {
using namespace std::chrono_literals;
using Ms = std::chrono::milliseconds;
constexpr Ms kDialPatience = 3'000ms;  // with one dial, which starts a process on the host
constexpr Ms kLeastBeat = 100ms;       // whatever the hub says
constexpr Ms kLeastDead = 1'000ms;
constexpr int kTriesOfOther = 7;  // for each try of the host that was lost
// Each dial starts a process on the host. So dial often only while a hub is likely to open.
constexpr int kQuickTries = 20;
constexpr Ms kQuickPause = 200ms;
constexpr Ms kPause = 2'000ms;
}  // namespace

RemoteVote::RemoteVote(io::Loop& loop, Settings settings)
    : loop_(loop), settings_(std::move(settings)), agent_(random_nonce()), timer_(loop) {
  dial();
}

void RemoteVote::dial() {
  // The other host may open a hub now, shortly after this process has noticed the loss.
  dialed_ = (tries_ + 1) % (kTriesOfOther + 1) == 0 ? host_ : 1 - host_;
  int port = settings_.way(dialed_);
  if (port == 0) {
    dialed_ = 1 - dialed_;
    port = settings_.way(dialed_);
  }
  if (port == 0) {
    tries_ = 0;  // quick again once there is a way
    return pause();
  }
  ++tries_;
  dial_ = std::make_unique<HubDial>(
      loop_,
      HubDialSettings{.host = std::string(kOwnHub),
                      .port = port,
                      .run_id = settings_.run_id,
                      .token = settings_.token,
                      .agent = agent_,
                      .name = settings_.name,
                      .patience = kDialPatience,
                      .other_job_patience = 0ms},
      [this](Result<HubDial::Connected> connected) { dialed(std::move(connected)); });
  // One attempt, then the other host.
  dial_->on_attempt([this](const Error&) { dialed(tl::make_unexpected(Error{})); });
}

void RemoteVote::pause() {
  timer_.start(tries_ < kQuickTries ? kQuickPause : kPause, [this] { dial(); });
}

void RemoteVote::dialed(Result<HubDial::Connected> connected) {
  dial_.reset();
  if (!connected) return pause();
  host_ = dialed_;
  heartbeat_ = std::max(Ms(connected->welcome.heartbeat_ms), kLeastBeat);
  dead_ = std::max(Ms(connected->welcome.dead_ms), kLeastDead);
  silent_ = {};
  stream_ = std::move(connected->stream);
  stream_->set_events({.frame = [this](const Frame& frame) { on_frame(frame); },
                       .bytes = [this] { silent_ = {}; },
                       .ended = [this](const Error&) { lost(); }});
  beat();
}

void RemoteVote::on_frame(const Frame& frame) {
  tries_ = 0;  // a hub that only welcomes and closes is dialed slowly
  if (const auto* call = std::get_if<Call>(&frame)) return stream_->send(witness_.testify(*call));
  if (const auto* charter = std::get_if<Charter>(&frame))
    return stream_->send(witness_.take(*charter));
  // The hub was not of this job.
  const auto* moved = std::get_if<Moved>(&frame);
  if (moved != nullptr && moved->forget) witness_.forget();
}

// Counts silence in beats of this process, so a process that was stopped takes no hub for gone.
void RemoteVote::beat() {
  if (silent_ >= dead_) return lost();
  silent_ += heartbeat_;
  stream_->send(Beat{});
  timer_.start(heartbeat_, [this] { beat(); });
}

void RemoteVote::lost() {
  stream_.reset();
  pause();
}

}  // namespace lockstep::rendezvous::hub
