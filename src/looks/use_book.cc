#include "looks/use_book.h"

#include "looks/doing.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockstep::looks {

void UseBook::feed(const RankLook& look, io::TimePoint now) {
  if (!look.process) {
    ranks_.erase(look.rank);
    return;
  }
  const auto [at, first] = ranks_.try_emplace(look.rank);
  Rank& rank = at->second;
  const double seconds = std::chrono::duration<double>(now - rank.seen).count();
  Use use;
  std::int64_t ticks = 0;
  std::map<pid_t, Known> processes;
  const auto take = [&](pid_t pid, const ProcessLook& process, bool is_loader) {
    Known known{process.start_ticks, process.cpu_ticks, is_loader};
    const auto before = rank.processes.find(pid);
    if (before != rank.processes.end() && before->second.start_ticks == process.start_ticks) {
      ticks += std::max<std::int64_t>(process.cpu_ticks - before->second.cpu_ticks, 0);
      // The stacks of children are read only while their rank stands still.
      known.is_loader = known.is_loader || before->second.is_loader;
    }
    use.memory_bytes += process.rss;
    use.loaders += known.is_loader ? 1 : 0;
    processes.emplace(pid, known);
  };
  take(look.pid, *look.process, false);
  for (const ChildLook& child : look.children)
    take(child.pid, child.process, is_loader(child));
  // The first look says nothing about the present.
  if (!first && seconds > 0) use.cpu = static_cast<double>(ticks) / ticks_per_second_ / seconds;
  rank = {use, std::move(processes), now};
}

Use UseBook::of(int rank) const {
  const auto at = ranks_.find(rank);
  return at == ranks_.end() ? Use{} : at->second.use;
}

}  // namespace lockstep::looks
