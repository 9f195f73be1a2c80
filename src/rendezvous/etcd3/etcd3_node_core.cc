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

// Interruptions still come: another node may fail before all know that the job is done.
void Etcd3NodeCore::finished() {
  if (asked_ == Asked::finish) asked_ = Asked::run;
}

void Etcd3NodeCore::stop() {
  stage_ = std::max(stage_, Stage::leaving);
}

// Where this node is stopped, the others go on with another leader, so its hub must not tell them
// to stop. Nor does a node end the job that ran out of patience before it had a place in it.
Etcd3NodeCore::Leave Etcd3NodeCore::leave(Departure how, bool hosts, bool in_round, bool job_over) {
  stop();
  asked_ = Asked::nothing;
  const bool had_no_place = how == Departure::failed && !in_round;
  const bool others_go_on = how == Departure::stopped || (had_no_place && !job_over);
  return hosts && others_go_on ? Leave::go : Leave::tell_hub;
}

// Whoever leads next must find in etcd that the run id is spent, so the leader writes it down
// before it goes. A guest only waits for what it is writing anyway.
Etcd3NodeCore::LastWord Etcd3NodeCore::hub_told(bool hosts) {
  if (!hosts && writing_ == Writing::nothing) return LastWord::none;
  stage_ = Stage::last_word;
  return hosts ? LastWord::write : LastWord::await_writing;
}

// --- what happens ---

Etcd3NodeCore::Reach Etcd3NodeCore::hub_found() {
  if (leaving()) return Reach::nowhere;
  return std::exchange(stage_, Stage::member) == Stage::meeting ? Reach::connect : Reach::move;
}

bool Etcd3NodeCore::interrupted(Interruption::Kind kind) {
  const bool told_before = std::exchange(asked_, Asked::nothing) == Asked::nothing;
  return !told_before || kind == Interruption::Kind::end;
}

// The leader wrote to etcd that the job is over, and was gone before it could tell this node.
Etcd3NodeCore::Closed Etcd3NodeCore::job_closed(bool good, bool spare) const {
  if (leaving()) return Closed::ignore;
  if (asked_ == Asked::open) return Closed::refuse_open;
  if (asked_ == Asked::finish && good) return Closed::finish;
  if (asked_ == Asked::join) return spare ? Closed::end_spare : Closed::refuse_join;
  return Closed::interrupt;
}

// A node that joins or finishes waits for the next leader as the others do; the workers of one that
// led must stop, because nobody watches over their round any more.
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
