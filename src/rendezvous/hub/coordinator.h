// The coordinator of the `lockstep` rendezvous: decides which nodes take part in which round, and
// notifies them. Pure: connections, frames and time go in, bytes for connections come out. One
// agent runs the coordinator (hub_server.h). The coordinator trusts no clock but the steady one
// passed in.
//
//  forming -> offering (rank 0 opens the workers' store) -> running -> forming | over
#pragma once

#include "base/error.h"
#include "rendezvous/hub/admission.h"
#include "rendezvous/hub/coordinator_settings.h"
#include "rendezvous/hub/coordinator_words.h"
#include "rendezvous/hub/current_round.h"
#include "rendezvous/hub/inheritance.h"
#include "rendezvous/hub/job_record.h"
#include "rendezvous/hub/next_round.h"
#include "rendezvous/hub/outbox.h"
#include "rendezvous/hub/report_exchange.h"
#include "rendezvous/hub/roster.h"
#include "rendezvous/hub/seats.h"
#include "rendezvous/hub/silence_clock.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::rendezvous::hub {

class Coordinator {
 public:
  Coordinator(CoordinatorSettings settings, Time now);

  // Adds an agent whose greeting has succeeded. The caller must call lose() once for each arrival,
  // unless the coordinator closed the connection.
  void arrive(PeerId peer, const Nonce& agent, const std::string& name, Time now);
  // The agent has a vote and no ranks: rounds do not wait for the agent.
  void count_vote_only(PeerId peer, Time now);
  void hear(PeerId peer, Time now);  // counts any bytes as a sign of life
  // Handles a frame. An error means that agents never send this frame: close the connection and
  // call lose().
  Status take(PeerId peer, Frame frame, Time now);
  void lose(PeerId peer, const std::string& why, Time now);
  // Call tick() at next_time() or earlier.
  void tick(Time now);
  Time next_time() const;
  // Returns the state to record if rounds are fenced. Each request is returned once.
  std::optional<PermitRequest> take_permit_request() { return job_.take_request(); }
  void permit(std::int64_t round, Time now);
  // Ends the job well if all nodes have finished, and tells the nodes. Call it after each of the
  // calls above, except on a host of fenced rounds without a quorum. The job may go on elsewhere,
  // where silent nodes that had finished may have run another round.
  void conclude();
  // Ends the job because the host leaves before the other nodes are done.
  void shut_down(const std::string& why, Time now);
  // Interrupts the round because this host has lost the right to decide. The nodes look for another
  // hub.
  void step_down(const std::string& why) { interrupt(false, why, 0); }
  // Records that the previous coordinator had already ended the job. Some nodes may not know yet.
  void end_before(bool good, const std::string& why);

  std::vector<Outbox::Output> take_output() { return outbox_.take(); }

  bool over() const { return job_.over(); }
  std::size_t peers() const { return roster_.size() - roster_.count(Roster::Stage::vote_only); }
  std::size_t viable() const { return roster_.viable(); }
  std::string status() const;   // the nodes that block progress, in words
  std::string present() const;  // the names of all connected nodes

 private:
  using Stage = Roster::Stage;
  using Member = Roster::Member;
  using End = JobRecord::End;

  // coordinator.cc: nodes come, join, come over, tell and leave; time passes
  bool keep_offered_place(PeerId gone, PeerId peer, Time now);
  void remove(PeerId peer, const std::string& why, Time now);
  void expect_back(const Member& member, Time now);
  void on_join(Member& member, Join join, Time now);
  bool fits(const Member& member, const Join& join);
  void decide_held_joins(Time now);
  void refuse(Member& member, const Refusal& refusal);
  void on_resume(Member& member, Join join, Time now);
  void adopt(const Join& offer, Time now);
  bool of_adopted_round(const Join& join) const;
  bool take_seat(Member& member, const Join& join);
  bool take_back(Member& member);
  void on_leave(Member& member, Leave::How how, Time now);
  void leave_without_place(Member& member, Time now);
  void on_news(const Member& member, News news);
  void on_report(Member& member, TellReport tell, Time now);
  void push_reports();
  void watch_silence(Time now);
  void expire(Time now);
  void beat();
  Standing standing() const;

  // coordinator_round.cc: a round is made, fails or is interrupted; the job ends
  void consider(Time now);
  void propose(Time now);
  void inherit(const Seats::Nodes& joined);
  void on_store(Member& member, const StoreOffer& offer, Time now);
  void place(const NextRound::Offer& offer);
  std::vector<int> not_come_over() const;
  std::optional<Time> adoption_ends() const;
  bool adoption_settled(Time now);
  void on_failed(Member& member, const Failed& failed, Time now);
  void count_restart();
  void interrupt(bool end, const std::string& why, PeerId except);
  void missing_from_round(const std::string& why);
  bool awaits_replacement(const std::string& why);
  Ms replacement_time() const;
  void on_finish(Member& member, const Finish& finish);
  void give_up_round(const std::string& text);
  void end_job(End end, const std::string& why);
  void spend_job(End end, const std::string& why);
  void write_down();

  bool in_round(const Member& member) const {
    return current_ && (member.stage() == Stage::placed || member.stage() == Stage::finished);
  }
  const CurrentRound* current() const { return current_ ? &*current_ : nullptr; }
  bool running() const { return current_ && current_->running(); }

  CoordinatorSettings settings_;
  Roster roster_;
  SilenceClock clock_;
  Admission admission_;
  Inheritance inheritance_;
  Seats seats_;  // of the last round
  std::optional<CurrentRound> current_;
  NextRound next_;
  ReportExchange reports_;  // of the current round
  Outbox outbox_;
  JobRecord job_;
  bool over_before_ = false;  // another coordinator ended the job
  Time forming_since_;
  Time next_beat_;
};

}  // namespace lockstep::rendezvous::hub
