// How far a node of the etcd3 backend is, and what follows from what happens: decisions only. Its
// driver (etcd3_backend.h) has etcd, the election, the hub and the member, and does what is
// decided.
//
// Three things change on their own: the node's way through the job (Stage), what the agent has
// asked for and not been answered (Asked), and the word on a final failure that a guest writes to
// etcd.
#pragma once

#include "rendezvous/backend.h"

namespace lockstep::rendezvous::etcd3 {

class Etcd3NodeCore {
 public:
  enum class Stage {
    meeting,    // no hub has been found yet
    member,     // one has: from now on this node moves from one hub to the next
    leaving,    // told to stop, or leave() was called: nothing but its end is told any more
    last_word,  // leave() waits for the end of the job to be written, and for the guests
    gone,
  };
  enum class Asked {
    nothing,  // and there is no round that could be interrupted
    open,
    join,
    run,  // join() brought a round, and its workers run
    finish,
  };

  enum class Reach { nowhere, connect, move };
  enum class Lost { ignore, go, campaign, campaign_and_rejoin };
  enum class Closed { ignore, refuse_open, finish, end_spare, refuse_join, interrupt };
  enum class GiveUp { ignore, go, refuse_open, refuse_join, refuse_finish, interrupt };
  enum class Leave { go, tell_hub };  // tell_hub: then hub_told()
  enum class LastWord { none, write, await_writing };

  Stage stage() const { return stage_; }
  Asked asked() const { return asked_; }
  bool leaving() const { return stage_ >= Stage::leaving; }
  // leave() is under way, and waits for what only the leader's lease made possible.
  bool in_last_word() const { return stage_ == Stage::last_word; }

  // --- what the agent asks for, and how it ends ---
  void open() { asked_ = Asked::open; }
  void opened();
  void join() { asked_ = Asked::join; }
  void joined(bool placed);
  void finish() { asked_ = Asked::finish; }
  void finished();
  void stop();
  // hosts: this node's hub is the one where the others meet.
  Leave leave(Departure how, bool hosts, bool in_round, bool job_over);
  // The hub knows, or can't be told, that this node leaves.
  LastWord hub_told(bool hosts);
  void go() { stage_ = Stage::gone; }

  // --- what happens ---
  Reach hub_found();
  // Whether the agent is told. What ends the job is told even when a round was interrupted before.
  bool interrupted(Interruption::Kind kind);
  Closed job_closed(bool good, bool spare) const;
  Lost lease_lost(bool hosted) const;
  GiveUp given_up() const;
  // A guest begins to write a final failure to etcd, and has written it. True: that was the last
  // that kept this node.
  void failure_begun() { writing_ = Writing::failure; }
  bool failure_written(bool hosts);

 private:
  enum class Writing { nothing, failure };

  Stage stage_ = Stage::meeting;
  Asked asked_ = Asked::nothing;
  Writing writing_ = Writing::nothing;
};

}  // namespace lockstep::rendezvous::etcd3
