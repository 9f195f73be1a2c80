// The decisions of a node of the etcd3 backend. Pure. The driver (etcd3_backend.h) has etcd, the
// election, the hub and the member, and carries the decisions out.
//
// Three states change independently: the node's progress in the job (Stage), the agent's unanswered
// request (Asked), and the record of a final failure that a guest writes to etcd.
#pragma once

#include "rendezvous/backend.h"

namespace lockstep::rendezvous::etcd3 {

class Etcd3NodeCore {
 public:
  enum class Stage {
    meeting,    // no hub found yet
    member,     // a hub was found; from now on this node moves from hub to hub
    leaving,    // stopped or in leave(): only the end is reported to the agent
    last_word,  // leave() waits until the end of the job is written and the guests are gone
    gone,
  };
  enum class Asked {
    nothing,  // no round to interrupt either
    open,
    join,
    run,  // join() has returned a round, and its workers run
    finish,
  };

  enum class Reach { nowhere, connect, move };
  enum class Lost { ignore, go, campaign, campaign_and_rejoin };
  enum class Closed { ignore, refuse_open, finish, end_spare, refuse_join, interrupt };
  enum class GiveUp { ignore, go, refuse_open, refuse_join, refuse_finish, interrupt };
  enum class Leave { go, tell_hub };  // tell_hub: hub_told() follows
  enum class LastWord { none, write, await_writing };

  Stage stage() const { return stage_; }
  Asked asked() const { return asked_; }
  bool leaving() const { return stage_ >= Stage::leaving; }
  // leave() is pending, and waits for something that needs the leader's lease.
  bool in_last_word() const { return stage_ == Stage::last_word; }

  // --- requests of the agent, and their ends ---
  void open() { asked_ = Asked::open; }
  void opened();
  void join() { asked_ = Asked::join; }
  void joined(bool placed);
  void finish() { asked_ = Asked::finish; }
  void finished();
  void stop();
  // hosts: this node's hub is the nodes' meeting point.
  Leave leave(Departure how, bool hosts, bool in_round, bool job_over);
  // Called when the hub knows that this node leaves, or cannot be told.
  LastWord hub_told(bool hosts);
  void go() { stage_ = Stage::gone; }

  // --- events ---
  Reach hub_found();
  // Returns whether to tell the agent. The end of a job is told even after an earlier interruption.
  bool interrupted(Interruption::Kind kind);
  Closed job_closed(bool good, bool spare) const;
  Lost lease_lost(bool hosted) const;
  GiveUp given_up() const;
  // A guest starts writing a final failure to etcd, and has written it. failure_written() returns
  // whether the writing was the last thing that kept this node.
  void failure_begun() { writing_ = Writing::failure; }
  bool failure_written(bool hosts);

 private:
  enum class Writing { nothing, failure };

  Stage stage_ = Stage::meeting;
  Asked asked_ = Asked::nothing;
  Writing writing_ = Writing::nothing;
};

}  // namespace lockstep::rendezvous::etcd3
