// What a job must still know when the node that led it is gone: one small JSON text in etcd. Pure.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::rendezvous::etcd3 {

struct Etcd3Facts {
  std::int64_t round = -1;         // the last one agreed on; -1: none yet
  int restarts = 0;                // of all its rounds, those that a failed worker made necessary
  bool closed = false;             // the run id is spent
  std::string why;                 // closed: one line
  bool good = false;               // closed: the job has ended well
  int lead = -1;                   // rank of the node that leads in that round; -1: not known
  std::vector<int> finished = {};  // ranks of that round that have, and may never say so again
  bool operator==(const Etcd3Facts&) const = default;
};

// Keeps the facts of the later round; but once the job is over it stays so.
void merge_facts(Etcd3Facts& known, const Etcd3Facts& heard);

std::string print_etcd3_facts(const Etcd3Facts& facts);
Result<Etcd3Facts> parse_etcd3_facts(std::string_view text);

}  // namespace lockstep::rendezvous::etcd3
