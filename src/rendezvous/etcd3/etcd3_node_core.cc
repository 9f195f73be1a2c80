// The decisions, as tables of stage and request.
#include "rendezvous/etcd3/etcd3_node_core.h"

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::etcd3 {

// --- what the agent asks for, and how it ends ---

void Etcd3NodeCore::opened() {
  if (asked_ == Asked::open) asked_ = Asked::nothing;
}

void Etcd3NodeCore::joined(bool placed) {
  if (asked_ == Asked::join) asked_ = placed ? Asked::run : Asked::nothing;
}

// The workers have ended well. Interruptions may still come: another node may fail before all nodes
// are done.
void Etcd3NodeCore::finished() {
  if (asked_ == Asked::finish) asked_ = Asked::run;
}

void Etcd3NodeCore::stop() {
  stage_ = std::max(stage_, Stage::leaving);
}

// Decides whether the hub tells the other nodes about the departure. A stopped leader must not stop
// the other nodes, which continue with another leader. A node that gave up before having a place
// must not end the job.
Etcd3NodeCore::Leave Etcd3NodeCore::leave(Departure how, bool hosts, bool in_round, bool job_over) {
  stop();
  asked_ = Asked::nothing;
  const bool had_no_place = how == Departure::failed && !in_round;
  const bool others_go_on = how == Departure::stopped || (had_no_place && !job_over);
  return hosts && others_go_on ? Leave::go : Leave::tell_hub;
}

// Decides what is left to write. A leader must record that the run id is used up, for the next
// leader. A guest only waits for a write in progress.
Etcd3NodeCore::LastWord Etcd3NodeCore::hub_told(bool hosts) {
  if (!hosts && writing_ == Writing::nothing) return LastWord::none;
  stage_ = Stage::last_word;
  return hosts ? LastWord::write : LastWord::await_writing;
}

// --- what happens ---

Etcd3NodeCore::Reach Etcd3NodeCore::hub_found() {
  if (leaving()) return Reach::nowhere;
  // The member connects once, and moves from then on.
  return std::exchange(stage_, Stage::member) == Stage::meeting ? Reach::connect : Reach::move;
}

bool Etcd3NodeCore::interrupted(Interruption::Kind kind) {
  // The agent hears of each round's end once; the end of the job is told in any case.
  const bool told_before = std::exchange(asked_, Asked::nothing) == Asked::nothing;
  return !told_before || kind == Interruption::Kind::end;
}

// The leader recorded the end of the job and vanished before telling this node.
Etcd3NodeCore::Closed Etcd3NodeCore::job_closed(bool good, bool spare) const {
  if (leaving()) return Closed::ignore;
  if (asked_ == Asked::open) return Closed::refuse_open;
  if (asked_ == Asked::finish && good) return Closed::finish;
  if (asked_ == Asked::join) return spare ? Closed::end_spare : Closed::refuse_join;
  return Closed::interrupt;
}

// Decides what a lost lease means. A node that joins or finishes waits for the next leader like the
// other nodes. The workers of a former leader must stop: no node watches their round.
Etcd3NodeCore::Lost Etcd3NodeCore::lease_lost(bool hosted) const {
  if (in_last_word()) return Lost::go;
  if (leaving()) return Lost::ignore;
  return hosted && asked_ == Asked::run ? Lost::campaign_and_rejoin : Lost::campaign;
}

Etcd3NodeCore::GiveUp Etcd3NodeCore::given_up() const {
  if (in_last_word()) return GiveUp::go;
  if (leaving()) return GiveUp::ignore;
  switch (asked_) {
    case Asked::open:
      return GiveUp::refuse_open;
    case Asked::join:
      return GiveUp::refuse_join;
    case Asked::finish:
      return GiveUp::refuse_finish;
    case Asked::nothing:
    case Asked::run:
      break;
  }
  return GiveUp::interrupt;
}

bool Etcd3NodeCore::failure_written(bool hosts) {
  writing_ = Writing::nothing;
  return in_last_word() && !hosts;
}

}  // namespace lockstep::rendezvous::etcd3
