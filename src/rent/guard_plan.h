// When the guard on the user's machine ends machines that can't end their own bill. Pure.
#pragma once

#include "cloud/rental.h"
#include "machine/lease_terms.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lockstep::rent {

// The last that a machine said of its lease.
struct MachineWord {
  std::int64_t said_ms = 0;    // Unix time; 0: nothing yet
  std::int64_t silent_ms = 0;  // it has not answered since then; 0: it answers
  std::int64_t ask_ms = 0;     // when it is asked next
  machine::LeaseState state = {};
};
using MachineWords = std::map<std::string, MachineWord>;  // by the machine's id

struct GuardPace {
  std::int64_t poll_ms = 10'000;           // the journal is read so often
  std::int64_t asked_ms = 60'000;          // machines are asked so often at least
  std::int64_t silent_ms = 60'000;         // a machine that should be off is off after this
  std::int64_t nobody_ms = 20LL * 60'000;  // until a client must have met the machines
  std::int64_t held_lock_ms = 30'000;      // past the lease no client's lock is waited for longer
  std::int64_t most_pause_ms = 5LL * 60'000;  // between tries that fail
};

struct GuardPlan {
  enum class What {
    wait,
    end_some,  // `machines`
    give_back,
  };
  What what = What::wait;
  std::string why = {};
  std::vector<std::size_t> machines = {};  // of met_machines()
  bool forced = false;                     // also where a client has it and does not do it
};

// The machines that a client has met, by node.
std::vector<const cloud::Held*> met_machines(const cloud::Rental& rental);

// Whether a machine with that last word is off by now, or is about to be. A busy one that falls
// silent is not: this machine's own network may be the reason. elsewhere: the guard is not where
// the user is, who may give it work meanwhile; so only what it said at last counts.
bool is_off(const MachineWord& word, std::int64_t now_ms, const GuardPace& pace,
            bool elsewhere = false);

// Whether all that may be alive of it ends its own bill.
bool ends_itself(const cloud::Rental& rental);

// followed: its job has not ended, and somebody goes on with it. Then machines that are about to
// go, or are gone, are that one's affair: they may have been taken away, and the job begins again.
GuardPlan guard_plan(const cloud::Rental& rental, const MachineWords& words, std::int64_t now_ms,
                     const GuardPace& pace, bool followed = false);

// What the machine has said now, or that it does not answer.
void note_word(MachineWord& word, const machine::LeaseState* said, std::int64_t now_ms,
               const GuardPace& pace);

// The pause after so many tries that failed.
std::int64_t retry_pause(int failures, const GuardPace& pace);

}  // namespace lockstep::rent
