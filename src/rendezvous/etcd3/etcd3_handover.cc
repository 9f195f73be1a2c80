// Conversions between the coordinator's state and the facts.
#include "rendezvous/etcd3/etcd3_handover.h"

namespace lockstep::rendezvous::etcd3 {

std::string end_text(bool good, const std::string& why) {
  if (good) return "the job is done";
  return why.empty() ? "the job has failed" : "the job has failed: " + why;
}

Etcd3Facts facts_of(const hub::PermitRequest& request) {
  using End = hub::PermitRequest::End;
  Etcd3Facts facts;
  facts.round = request.round;
  facts.restarts = request.restarts;
  facts.lead = request.lead;
  facts.finished = request.finished;
  facts.closed = request.end != End::none;
  facts.good = request.end == End::succeeded;
  if (facts.closed) facts.why = end_text(facts.good, request.why);
  return facts;
}

void begin_after(const Etcd3Facts& facts, hub::CoordinatorSettings& settings) {
  settings.first_round = facts.round + 1;
  settings.restarts = facts.restarts;
  // Without a round nothing was ever placed, so there is nothing to take over.
  settings.takeover = facts.round >= 0;
  settings.last_lead = facts.lead;
  settings.last_finished = facts.finished;
}

}  // namespace lockstep::rendezvous::etcd3
