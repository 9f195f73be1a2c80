// What ranks and their descendants use of the machine: CPU by two looks, memory, loaders. Pure.
#pragma once

#include "io/loop.h"
#include "looks/rank_look.h"

#include <sys/types.h>

#include <cstdint>
#include <map>

namespace lockstep::looks {

struct Use {
  double cpu = 0;  // cores in use between the last two looks
  std::int64_t memory_bytes = 0;
  int loaders = 0;
};

class UseBook {
 public:
  // ticks_per_second: of the kernel's CPU times.
  explicit UseBook(double ticks_per_second) : ticks_per_second_(ticks_per_second) {}

  void feed(const RankLook& look, io::TimePoint now);
  Use of(int rank) const;

 private:
  struct Known {
    std::uint64_t start_ticks = 0;
    std::int64_t cpu_ticks = 0;
    bool is_loader = false;
  };
  struct Rank {
    Use use = {};
    std::map<pid_t, Known> processes = {};
    io::TimePoint seen = {};
  };

  double ticks_per_second_;
  std::map<int, Rank> ranks_;
};

}  // namespace lockstep::looks
