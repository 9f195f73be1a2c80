// The end of a node's workers, of a node's part in the job, and of the job.
#include "rendezvous/hub/coordinator.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::rendezvous::hub {

void Coordinator::on_finish(Member& member, const Finish& finish) {
  if (!running() || member.stage() != Stage::placed || finish.round != current_->number()) return;
  roster_.set_stage(member, Stage::finished);
  // A successor must know that the host's node has finished: the node may be lost with its host.
  if (member.agent == settings_.host) write_down();
  check_all_finished();
}

void Coordinator::check_all_finished() {
  if (over() || !current_->all_finished(roster_.count(Stage::finished))) return;
  const auto bytes = Outbox::bytes_of(Finished{current_->number()});
  for (const Member* member : roster_.in(Stage::finished))
    outbox_.send_shared(member->peer, bytes);
  spend_job(Outcome::succeeded, "the job has ended well");
}

// Ends the job and tells the waiting nodes. In a job that has run, a spare hears that it was not
// needed, which counts as success. A waiting node that had a place has failed with the others.
void Coordinator::end_job(Outcome outcome, const std::string& why) {
  if (over()) return;
  outcome_ = outcome;
  why_over_ = why;
  proposal_.reset();
  roster_.expect_nobody();
  for (Member* member : roster_.in(Stage::joined)) {
    if (member->rank() >= 0 || !current_) {
      refuse(*member, {Why::closed, why, {}});
    } else {
      outbox_.send(member->peer, Ended{});
      roster_.set_stage(*member, Stage::idle);
    }
  }
}

// Ends the job and records the end, so that no later coordinator runs the job again. Missing nodes
// alone must not end a job for good: after all nodes were stopped, the same job may be started
// again.
void Coordinator::spend_job(Outcome outcome, const std::string& why) {
  if (over()) return;
  end_job(outcome, why);
  write_down();
}

// Records what another coordinator needs to know if this one is lost.
void Coordinator::write_down() {
  // Without fencing no other coordinator can follow.
  if (!settings_.fenced) return;
  PermitRequest request;
  request.round = current_ ? current_->number() : settings_.first_round - 1;
  request.restarts = restarts_;
  if (current_) request.finished = current_->finished_and_gone();
  // The host's node vanishes with the host, so nothing but this record can speak for it.
  if (const Member* host = roster_.of(settings_.host); host != nullptr && current_) {
    request.lead = host->rank();
    if (host->stage() == Stage::finished) request.finished.push_back(host->rank());
  }
  if (over()) {
    using End = PermitRequest::End;
    request.end = *outcome_ == Outcome::succeeded ? End::succeeded : End::failed;
    request.why = why_over_;
  }
  permit_request_ = std::move(request);
}

void Coordinator::on_leave(Member& member, Leave::How how, Time now) {
  const PeerId peer = member.peer;
  const std::string name = member.called();
  outbox_.send(peer, Left{});
  if (how == Leave::How::returns && !over()) {
    expect_back(member, now);
    return remove(peer, "has lost its connection to the rendezvous", now);
  }
  if (how == Leave::How::stopped) {
    // The hub goes with its node, so the job ends.
    if (member.agent == settings_.host)
      return shut_down(name + ", the host of the rendezvous, was stopped", now);
    return remove(peer, "was stopped", now);
  }
  if (!in_round(member) && !over()) return leave_without_place(member, now);
  const bool good = how == Leave::How::succeeded;
  const std::string why =
      good ? std::string("the job has ended well") : "the job has failed on " + name;
  if (!good && running() && in_round(member)) interrupt(true, why, peer);
  // A node that ends well without waiting must not end the job for the other nodes.
  if (good && running() && in_round(member)) {
    roster_.set_stage(member, Stage::finished);
    return remove(peer, "has left", now);
  }
  spend_job(good ? Outcome::succeeded : Outcome::failed, why);
  remove(peer, "has left", now);
}

// Removes a node without a place. The other nodes keep waiting, unless the node is their host.
void Coordinator::leave_without_place(Member& member, Time now) {
  if (member.agent != settings_.host) return remove(member.peer, "has left", now);
  const std::string& why = member.out_of_patience;
  shut_down(fmt::format("{}, the host of the rendezvous, has given up{}{}", member.called(),
                        why.empty() ? "" : ": ", why),
            now);
  remove(member.peer, "has left", now);
}

void Coordinator::end_before(bool good, const std::string& why) {
  over_before_ = true;
  end_job(good ? Outcome::succeeded : Outcome::failed, why);
}

void Coordinator::shut_down(const std::string& why, Time /*now*/) {
  if (over()) return;
  interrupt(true, why, 0);
  for (Member* member : roster_.in(Stage::joined))
    refuse(*member, {Why::leaving, why, {}});
  end_job(Outcome::failed, why);
}

}  // namespace lockstep::rendezvous::hub
