// The handover from a leader to its successor, through the facts in etcd. Pure.
#pragma once

#include "rendezvous/etcd3/etcd3_facts.h"
#include "rendezvous/hub/coordinator_settings.h"

#include <string>

namespace lockstep::rendezvous::etcd3 {

// Returns the text of a job's end for nodes that read it in etcd. why: the failure; may be empty.
std::string end_text(bool good, const std::string& why);

// Returns the coordinator's state as facts.
Etcd3Facts facts_of(const hub::PermitRequest& request);

// Sets up a new leader's coordinator to continue after the last round in the facts.
void begin_after(const Etcd3Facts& facts, hub::CoordinatorSettings& settings);

}  // namespace lockstep::rendezvous::etcd3
