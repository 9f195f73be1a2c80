// Folds ranks into ranges and groups them by host.
#include "agent/rank_list.h"

#include "base/number_ranges.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <vector>

namespace lockstep::agent {

std::string rank_list(std::span<const RankOnHost> workers, std::size_t most_hosts) {
  std::map<std::string, std::vector<int>> by_host;
  for (const RankOnHost& worker : workers)
    by_host[worker.host].push_back(worker.rank);
  std::vector<std::pair<std::string, std::vector<int>>> hosts(by_host.begin(), by_host.end());
  for (auto& [host, ranks] : hosts)
    std::sort(ranks.begin(), ranks.end());
  // A host's place in the line is that of its lowest rank.
  std::stable_sort(hosts.begin(), hosts.end(), [](const auto& a, const auto& b) {
    return a.second.front() < b.second.front();
  });
  std::string text;
  std::size_t told = 0;
  for (std::size_t i = 0; i < std::min(most_hosts, hosts.size()); ++i) {
    const auto& [host, ranks] = hosts[i];
    text += fmt::format("{}rank{} {} on {}", i == 0 ? "" : "; ", ranks.size() == 1 ? "" : "s",
                        ranges_text(ranks), host);
    told += ranks.size();
  }
  if (hosts.size() <= most_hosts) return text;
  const std::size_t workers_left = workers.size() - told;
  const std::size_t hosts_left = hosts.size() - most_hosts;
  return text + fmt::format(" and {} more worker{} on {} more host{}", workers_left,
                            workers_left == 1 ? "" : "s", hosts_left, hosts_left == 1 ? "" : "s");
}

}  // namespace lockstep::agent
