// The facts of a job which must survive the leader, as a small JSON text in etcd. Pure.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::rendezvous::etcd3 {

struct Etcd3Facts {
  std::int64_t round = -1;         // the last agreed round; -1: none yet
  int restarts = 0;                // restarts caused by failed workers, over all rounds
  bool closed = false;             // the run id is used up
  std::string why;                 // closed: one line
  bool good = false;               // closed: the job has ended well
  int lead = -1;                   // rank of the leading node in that round; -1: unknown
  std::vector<int> finished = {};  // ranks of that round that have finished and may be gone
  bool operator==(const Etcd3Facts&) const = default;
};

// Keeps the facts of the later round. Once closed, a job stays closed.
void merge_facts(Etcd3Facts& known, const Etcd3Facts& heard);

std::string print_etcd3_facts(const Etcd3Facts& facts);
Result<Etcd3Facts> parse_etcd3_facts(std::string_view text);

}  // namespace lockstep::rendezvous::etcd3
