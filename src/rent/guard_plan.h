// Decides when the guard terminates machines that cannot terminate themselves. Pure.
#pragma once

#include "cloud/rental.h"
#include "machine/lease_terms.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lockstep::rent {

// The last answer of a machine about its lease.
struct MachineWord {
  std::int64_t said_ms = 0;    // Unix time of the answer; 0: none yet
  std::int64_t silent_ms = 0;  // Unix time since when it has not answered; 0: it answers
  std::int64_t ask_ms = 0;     // Unix time of the next question
  machine::LeaseState state = {};
};
using MachineWords = std::map<std::string, MachineWord>;  // by machine id

// The guard's intervals, in milliseconds.
struct GuardPace {
  std::int64_t poll_ms = 10'000;           // between two reads of the journal
  std::int64_t asked_ms = 60'000;          // longest time between two questions to a machine
  std::int64_t silent_ms = 60'000;         // a machine that should be off counts as off after this
  std::int64_t nobody_ms = 20LL * 60'000;  // for a client to make first contact
  std::int64_t held_lock_ms = 30'000;      // past the lease no client's lock is waited for longer
  std::int64_t most_pause_ms = 5LL * 60'000;  // longest pause between failed tries
};

struct GuardPlan {
  enum class What {
    wait,
    end_some,  // `machines`
    give_back,
  };
  What what = What::wait;
  std::string why = {};
  std::vector<std::size_t> machines = {};  // indexes into met_machines()
  bool forced = false;                     // terminate even if a client holds the rental's lock
};

// Returns the existing machines with a completed first contact, by node.
std::vector<const cloud::Held*> met_machines(const cloud::Rental& rental);

// Returns whether a machine with this last answer is off by now, or is about to be. A busy machine
// that falls silent does not count as off: this machine's own network may be the reason. elsewhere:
// the guard runs on another host, so the user may have given the machine work since. Then a last
// answer counts only if the machine was about to reach its idle limit, or was already ending.
bool is_off(const MachineWord& word, std::int64_t now_ms, const GuardPace& pace,
            bool elsewhere = false);

// Returns whether every machine of the rental that may be alive terminates itself.
bool ends_itself(const cloud::Rental& rental);

// Returns what to do now. followed: the rental's job has not ended, and a command or follower is in
// charge of the job. Machines about to go, or gone, are then left to that process: they may have
// been preempted, and the job starts again elsewhere.
GuardPlan guard_plan(const cloud::Rental& rental, const MachineWords& words, std::int64_t now_ms,
                     const GuardPace& pace, bool followed = false);

// Updates `word` after a question. said: the answer; nullptr: the machine did not answer.
void note_word(MachineWord& word, const machine::LeaseState* said, std::int64_t now_ms,
               const GuardPace& pace);

// Returns the pause in milliseconds after this many failed tries in a row.
std::int64_t retry_pause(int failures, const GuardPace& pace);

}  // namespace lockstep::rent
