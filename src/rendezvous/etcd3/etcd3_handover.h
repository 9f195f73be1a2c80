// What a leader writes to etcd for whoever leads after it, and what that one begins with. Pure.
#pragma once

#include "rendezvous/etcd3/etcd3_facts.h"
#include "rendezvous/hub/coordinator.h"

#include <string>

namespace lockstep::rendezvous::etcd3 {

// The end of a job, for the nodes that read it in etcd. why: of its failure; may be empty.
std::string end_text(bool good, const std::string& why);

// What the hub's coordinator has come to, as facts.
Etcd3Facts facts_of(const hub::PermitRequest& request);

// The coordinator of a new leader goes on after the last round that the facts tell of.
void begin_after(const Etcd3Facts& facts, hub::CoordinatorSettings& settings);

}  // namespace lockstep::rendezvous::etcd3
