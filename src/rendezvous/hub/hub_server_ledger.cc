// The hub of a job with succession: nothing is decided until a quorum of the nodes has recorded it.
#include "base/log.h"
#include "base/text.h"
#include "rendezvous/hub/hub_server_guest.h"

#include <fmt/core.h>

#include <map>
#include <utility>

namespace lockstep::rendezvous::hub {
namespace {
// A join, a failure, a finish and a report, with room to spare.
constexpr std::size_t kMostKept = 8;
}  // namespace

// Hands this node and its guests over to their job, which goes on elsewhere. A first host that was
// started again may have formed a round with other newcomers before the call came: two rounds of
// one job must not go on. A hub that is older than that is left alone, because nobody knows which
// of the two is the job.
void HubServer::on_moved(PeerId caller, const Moved& moved) {
  constexpr Ms kYoung{15'000};
  close(caller);
  coordinator_.lose(caller, "it was a call", io::Clock::now());
  const bool first = settings_.ledger && !settings_.ledger->takes_over;
  const bool young = io::Clock::now() - opened_ < kYoung;
  if (!first || !young || deposed_ || !settings_.on_moved) return;
  deposed_ = true;
  step_down("the job goes on at " + printable(moved.place.host));
  for (const auto& [id, guest] : guests_) {
    // The owner sees to this node's own member.
    const bool own = guest->hello.agent == settings_.coordinator.host;
    if (guest->admitted() && !own) guest->stream->send(Moved{moved.place, true});
  }
  settings_.on_moved(moved);
}

// Returns whether the frame is not for the coordinator, or not yet.
bool HubServer::take_for_ledger(Guest& guest, Frame& frame) {
  if (const auto* moved = std::get_if<Moved>(&frame)) {
    on_moved(guest.id, Moved(*moved));
    return true;
  }
  if (const auto* testimony = std::get_if<Testimony>(&frame)) {
    if (testimony->place == kVoteOnly) note_vote_only(guest);
    ledger_->take(guest.id, *testimony);
    return true;
  }
  if (const auto* agreed = std::get_if<Agreed>(&frame)) {
    ledger_->take(guest.id, *agreed);
    return true;
  }
  if (leads_) return false;
  // lead() needs no beats, which only keep the connection alive, and no news, which grow old.
  if (std::holds_alternative<Beat>(frame) || std::holds_alternative<News>(frame)) return true;
  if (guest.kept.size() >= kMostKept) {
    turn_away(guest, Why::malformed, "too many frames before this hub leads", {});
  } else {
    guest.kept.push_back(std::move(frame));
  }
  return true;
}

// A leaving host does not wait for such a guest, and rounds do not need it.
void HubServer::note_vote_only(Guest& guest) {
  if (std::exchange(guest.state, Guest::State::vote_only) == Guest::State::vote_only) return;
  --counts_.guests;
  log::info("{} votes in this rendezvous", printable(guest.hello.name));
  if (leads_) coordinator_.count_vote_only(guest.id, io::Clock::now());
}

// Returns whether the coordinator may have more output.
bool HubServer::pump_ledger() {
  for (auto output = ledger_->take_output(); !output.empty(); output = ledger_->take_output()) {
    for (const auto& [to, frame] : output) {
      const auto at = guests_.find(to);
      if (at != guests_.end()) at->second->stream->send(frame);
    }
  }
  if (ledger_->deposed()) {
    depose("another node hosts the rendezvous now");
    return false;
  }
  if (!leads_ && ledger_->leads()) {
    lead();
    return true;
  }
  const auto permitted = ledger_->take_permitted();
  if (!permitted) return false;
  end_.release();
  coordinator_.permit(*permitted, io::Clock::now());
  return true;
}

// Starts to lead after a quorum has recorded this hub's leadership. The coordinator continues from
// the charter left by the previous hub, and then handles the frames kept meanwhile.
void HubServer::lead() {
  leads_ = true;
  const auto now = io::Clock::now();
  const Charter& left = ledger_->left();
  auto& rules = settings_.coordinator;
  // Numbers of rounds ascend over all hubs of a job.
  rules.first_round = left.round + 1;
  rules.restarts = left.restarts;
  rules.takeover = left.round >= 0;
  rules.last_lead = left.lead;
  rules.last_finished = left.finished;
  for (const Voter& voter : left.now.all)
    if (voter.agent == left.now.first && voter.place < settings_.hosts.size())
      rules.last_lead_called = settings_.hosts[voter.place];
  coordinator_ = Coordinator(rules, now);
  if (left.end != Charter::End::none)
    coordinator_.end_before(left.end == Charter::End::succeeded, left.why);
  // Ordered by arrival.
  std::map<PeerId, Guest*> members;
  for (const auto& [id, guest] : guests_)
    if (guest->admitted()) members[id] = guest.get();
  // All arrivals first, so that the coordinator waits for guests that are still idle.
  for (const auto& [id, guest] : members) {
    coordinator_.arrive(id, guest->hello.agent, guest->hello.name, now);
    if (guest->state == Guest::State::vote_only) coordinator_.count_vote_only(id, now);
  }
  for (const auto& [id, guest] : members) {
    for (Frame& frame : std::exchange(guest->kept, {})) {
      if (const auto taken = coordinator_.take(id, std::move(frame), now); !taken)
        log::debug("rendezvous: {}", taken.error().message);
    }
  }
}

// Gives up if this hub has been cut off from a quorum for too long. The other nodes may go on
// without this hub, so the workers on this side must stop.
void HubServer::watch_quorum(Time now) {
  if (deposed_ || (coordinator_.over() && !end_.holds()) ||
      !quorum_.must_give_up(*ledger_, leads_, now))
    return;
  depose(
      fmt::format("only {} of the job can be reached from the host of the rendezvous, and the "
                  "other nodes may go on without them",
                  ledger_->count()));
}

// Tells the nodes before the owner closes this server. Nodes that have all finished ask the next
// hub whether the job has ended, and do so when their connection is closed.
void HubServer::step_down(const std::string& why) {
  if (end_.drop()) return;
  coordinator_.step_down(why);
  pump_coordinator();
}

void HubServer::depose(const std::string& why) {
  if (std::exchange(deposed_, true)) return;
  step_down(why);
  if (settings_.on_deposed) settings_.on_deposed(why);
}

}  // namespace lockstep::rendezvous::hub
