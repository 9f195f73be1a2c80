#include "rendezvous/hub/job_record.h"

namespace lockstep::rendezvous::hub {

void JobRecord::write_down(const CurrentRound* round, const Roster::Member* host) {
  if (!fenced_) return;
  PermitRequest request;
  request.round = first_round_ - 1;
  request.restarts = restarts_;
  request.end = end_;
  request.why = why_;
  if (round != nullptr) {
    request.round = round->number();
    request.finished = round->finished_and_gone();
  }
  // The host's node vanishes with the host, so nothing but this record can speak for it.
  if (round != nullptr && host != nullptr) {
    request.lead = host->rank();
    if (host->stage() == Roster::Stage::finished) request.finished.push_back(host->rank());
  }
  request_ = std::move(request);
}

void JobRecord::ask(std::int64_t round, int lead) {
  PermitRequest request;
  request.round = round;
  request.restarts = restarts_;
  request.lead = lead;
  request_ = std::move(request);
}

}  // namespace lockstep::rendezvous::hub
