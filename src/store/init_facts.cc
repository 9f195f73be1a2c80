// Finds the rank of each client, and the ranks whose keys are missing.
#include "store/init_facts.h"

#include "base/text.h"
#include "store/watchdog_signal.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>
#include <utility>

namespace lockstep::store {
namespace {

constexpr std::size_t kMostRanksListed = 1U << 16;  // keys may name any rank
constexpr std::size_t kMostNameBytes = 40;

std::string_view host_of(std::string_view peer) {
  return peer.substr(0, std::min(peer.rfind(':'), peer.size()));
}

bool is_loopback(std::string_view host) {
  return host.starts_with("127.") || host == "::1" || host == "[::1]" || host == "localhost";
}

double seconds_between(TimePoint from, TimePoint to) {
  return std::max(0.0, std::chrono::duration<double>(to - from).count());
}

// Knows the rank of each client: from the table, by pid and address, or from the key that the
// client has made in the start of the default group, which names its rank.
class Clients {
 public:
  Clients(const Witness& witness, std::span<const RankProcess> table) {
    for (const RankProcess& process : table) {
      if (process.pid == 0) continue;
      by_pid_.emplace(process.pid, &process);
      in_table_.insert(process.rank);
    }
    for (const auto* list : {&witness.sessions, &witness.departed})
      for (const WitnessSession& session : *list)
        if (const auto rank = by_table(session)) ranks_[session.number] = *rank;
    for (const WitnessKey& key : witness.keys) {
      if (key.creator == 0) continue;
      const auto parsed = parse_init_key(key.name);
      if (parsed && parsed->is_default() && parsed->creator >= 0 &&
          (parsed->kind == InitKey::Kind::address || parsed->kind == InitKey::Kind::host))
        ranks_[key.creator] = parsed->creator;
    }
    for (const WitnessSession& session : witness.sessions)
      note(session, here_);
    for (const WitnessSession& session : witness.departed)
      note(session, departed_);
    // A client without a pid may be any rank, except one that is known by its key.
    for (const WitnessSession& session : witness.sessions)
      if (session.pid == 0 && !ranks_.contains(session.number)) anonymous_ = true;
    if (!witness.all_sessions) anonymous_ = true;
  }

  std::optional<int> rank_of(std::uint64_t number) const {
    const auto found = ranks_.find(number);
    return found == ranks_.end() ? std::nullopt : std::optional(found->second);
  }
  // Claimed only of ranks in the table: any client of unknown pid may be another one.
  bool never_connected(int rank) const {
    return !anonymous_ && in_table_.contains(rank) && !here_.contains(rank) &&
           !departed_.contains(rank);
  }
  bool departed(int rank) const { return !here_.contains(rank) && departed_.contains(rank); }

 private:
  std::optional<int> by_table(const WitnessSession& session) const {
    if (session.pid == 0) return std::nullopt;
    const auto [first, last] = by_pid_.equal_range(session.pid);
    if (first == last) return std::nullopt;
    if (std::next(first) == last) return first->second->rank;
    // Workers of several nodes have this pid. One beside the store may connect over loopback.
    const std::string_view host = host_of(session.peer);
    for (auto at = first; at != last; ++at)
      if (at->second->host.empty() ? is_loopback(host) : at->second->host == host)
        return at->second->rank;
    return std::nullopt;
  }
  void note(const WitnessSession& session, std::set<int>& into) {
    if (const auto rank = rank_of(session.number)) into.insert(*rank);
  }

  std::multimap<std::uint32_t, const RankProcess*> by_pid_;
  std::map<std::uint64_t, int> ranks_;
  std::set<int> in_table_;
  std::set<int> here_;
  std::set<int> departed_;
  bool anonymous_ = false;
};

// The evidence about one group in which clients wait for keys of one kind.
struct Start {
  InitKey::Kind kind = InitKey::Kind::address;
  std::string name;
  std::set<int> waiting;
  std::size_t unnamed = 0;
  std::set<int> waited;      // creators of the keys that are waited for
  std::map<int, int> known;  // rank inside the group -> global rank
  std::set<int> there;       // ranks inside the group whose key exists
  std::optional<int> arrived;
  double seconds = 0;
};

// The kind is part of the name: with 1.13 some ranks may still wait for hosts while others wait
// for addresses already.
using Starts = std::map<std::pair<std::string, InitKey::Kind>, Start>;

std::optional<int> number_in(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number)
                                                                  : std::nullopt;
}

class Reader {
 public:
  Reader(const Witness& witness, std::span<const RankProcess> table, int world_size)
      : witness_(witness), table_(table), clients_(witness, table), world_(world_size) {}

  StoreFacts read() {
    for (const WitnessSession& session : witness_.sessions)
      for (const WitnessWait& wait : session.waits)
        take_wait(session, wait);
    for (const WitnessKey& key : witness_.keys)
      take_key(key);
    for (auto& [id, start] : starts_)
      waiting_in_[id.first].insert(start.waiting.begin(), start.waiting.end());
    const std::string* before = nullptr;
    for (auto& [id, start] : starts_) {
      GroupFacts facts = conclude(id.first, start);
      if (before != nullptr && *before == id.first) {
        merge(std::move(facts), facts_.groups.back());
      } else {
        facts_.groups.push_back(std::move(facts));
      }
      before = &id.first;
    }
    std::stable_sort(facts_.groups.begin(), facts_.groups.end(),
                     [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
    for (auto& [key, other] : others_)
      facts_.others.push_back(std::move(other));
    for (const RankProcess& process : table_)
      if (process.pid != 0 && clients_.never_connected(process.rank))
        facts_.never_connected.push_back(process.rank);
    std::sort(facts_.never_connected.begin(), facts_.never_connected.end());
    return std::move(facts_);
  }

 private:
  void take_wait(const WitnessSession& session, const WitnessWait& wait) {
    const auto rank = clients_.rank_of(session.number);
    const double seconds = seconds_between(wait.since, witness_.taken);
    for (const std::string& key : wait.keys) {
      const auto parsed = parse_init_key(key);
      if (!parsed) {
        // Other waits are told of ranks only: the agents themselves wait here, too.
        if (rank) add_other(key, *rank, seconds);
        continue;
      }
      Start& start = starts_[{parsed->group, parsed->kind}];
      start.kind = parsed->kind;
      start.name = parsed->name;
      start.seconds = std::max(start.seconds, seconds);
      if (parsed->creator >= 0) start.waited.insert(parsed->creator);
      if (!rank) {
        ++start.unnamed;
        continue;
      }
      start.waiting.insert(*rank);
      // Only the latest group that a rank has come to counts: see candidates().
      if (const auto number = number_in(parsed->name)) waits_in_[*rank] = *number;
    }
  }

  void add_other(const std::string& key, int rank, double seconds) {
    OtherWait& other = others_[key];
    other.key = printable(key, kMostNameBytes * 2);
    if (other.waiting.empty() || other.waiting.back() != rank) other.waiting.push_back(rank);
    other.seconds = std::max(other.seconds, seconds);
  }

  void take_key(const WitnessKey& key) {
    if (const auto parsed = parse_init_key(key.name)) {
      if (parsed->kind == InitKey::Kind::arrived) {
        const auto start = starts_.find({parsed->group, InitKey::Kind::barrier});
        if (start != starts_.end()) start->second.arrived = number_in(key.value);
        return;
      }
      const auto start = starts_.find({parsed->group, parsed->kind});
      if (start == starts_.end() || parsed->creator < 0) return;
      start->second.there.insert(parsed->creator);
      if (const auto rank = clients_.rank_of(key.creator))
        start->second.known.emplace(parsed->creator, *rank);
      return;
    }
    if (key.name.ends_with(kExceptionDump)) {
      facts_.exception_dump = signal_rank(key.value);
    } else if (key.name.find(kRemoteError) != std::string::npos) {
      facts_.remote_error = signal_rank(key.value);
    } else if (const auto at = key.name.find(kDebugUrl); at != std::string::npos) {
      if (const auto rank = number_in(std::string_view(key.name).substr(at + kDebugUrl.size())))
        facts_.debug_urls[*rank] = printable(key.value, 200);
    }
  }

  GroupFacts conclude(const std::string& group, Start& start) {
    GroupFacts facts;
    const bool whole_job = start.name == "0" && start.kind != InitKey::Kind::barrier;
    facts.name = whole_job ? "default_pg" : "group " + printable(start.name, kMostNameBytes);
    facts.kind = start.kind;
    facts.waiting.assign(start.waiting.begin(), start.waiting.end());
    facts.unnamed = start.unnamed;
    facts.arrived = start.arrived;
    facts.seconds = start.seconds;
    borrow_hosts(group, start);
    for (const int inside : missing_inside(start, whole_job)) {
      if (whole_job) {
        facts.missing.push_back(inside);
      } else if (const auto at = start.known.find(inside); at != start.known.end()) {
        facts.missing.push_back(at->second);  // 1.13: the host key exists, the address key does not
      } else {
        facts.missing_inside.push_back(inside);
      }
    }
    name_the_missing(start, facts);
    // A rank that waits for the host of another (1.13) has no address yet, but is not to blame.
    std::erase_if(facts.missing, [&](int rank) { return waiting_in_.at(group).contains(rank); });
    std::sort(facts.missing.begin(), facts.missing.end());
    for (const int rank : facts.missing) {
      if (clients_.never_connected(rank)) facts.never_connected.push_back(rank);
      if (clients_.departed(rank)) facts.departed.push_back(rank);
    }
    return facts;
  }

  // 1.13: some ranks wait for the hosts still, others for the addresses of the same group.
  static void merge(GroupFacts&& from, GroupFacts& into) {
    const auto add = [](const std::vector<int>& more, std::vector<int>& ranks) {
      ranks.insert(ranks.end(), more.begin(), more.end());
      std::sort(ranks.begin(), ranks.end());
      ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    };
    add(from.waiting, into.waiting);
    add(from.missing, into.missing);
    add(from.missing_inside, into.missing_inside);
    add(from.candidates, into.candidates);
    add(from.never_connected, into.never_connected);
    add(from.departed, into.departed);
    into.unnamed += from.unnamed;
    into.seconds = std::max(into.seconds, from.seconds);
  }

  // All ranks whose key is missing. A wait names the lowest only: gloo asks for one rank after the
  // other.
  std::set<int> missing_inside(const Start& start, bool whole_job) const {
    std::set<int> missing = start.waited;
    const bool each_has_one =
        start.kind == InitKey::Kind::address || start.kind == InitKey::Kind::host;
    // A key that the list lacks is not proof: the list may be cut.
    if (!each_has_one || !witness_.all_keys) return missing;
    int size = whole_job ? world_ : 0;
    if (!start.there.empty()) size = std::max(size, *start.there.rbegin() + 1);
    size = std::min(size, static_cast<int>(kMostRanksListed));
    for (int inside = 0; inside < size; ++inside)
      if (!start.there.contains(inside)) missing.insert(inside);
    return missing;
  }

  // Finds the global ranks of missing_inside. new_group() sorts the ranks of a group, so a missing
  // rank lies between its neighbours. As many candidates as missing ranks: they are these.
  void name_the_missing(const Start& start, GroupFacts& facts) {
    if (facts.missing_inside.empty() || world_ <= 0) return;
    if (start.kind == InitKey::Kind::id) return name_the_first(start, facts);
    std::vector<int> left;
    for (std::size_t i = 0; i < facts.missing_inside.size();) {
      const auto above = start.known.upper_bound(facts.missing_inside[i]);
      const int high = above == start.known.end() ? world_ : above->second;
      const int low = above == start.known.begin() ? -1 : std::prev(above)->second;
      // All missing ranks between the same two neighbours.
      std::size_t end = i;
      while (end < facts.missing_inside.size() &&
             (above == start.known.end() || facts.missing_inside[end] < above->first))
        ++end;
      const std::vector<int> between = candidates(start, low + 1, high);
      const bool last = above == start.known.end();
      // Behind the last known rank the group may have more members than are waited for.
      if (!between.empty() && (between.size() == end - i || (last && between.size() < end - i))) {
        facts.missing.insert(facts.missing.end(), between.begin(), between.end());
      } else {
        left.insert(left.end(), facts.missing_inside.begin() + static_cast<std::ptrdiff_t>(i),
                    facts.missing_inside.begin() + static_cast<std::ptrdiff_t>(end));
        facts.candidates.insert(facts.candidates.end(), between.begin(), between.end());
      }
      i = end;
    }
    facts.missing_inside = std::move(left);
  }

  // The id of a communicator comes from the group's first rank, so its global rank is below all
  // that wait for the id.
  void name_the_first(const Start& start, GroupFacts& facts) {
    if (facts.missing_inside != std::vector<int>{0} || start.waiting.empty()) return;
    const std::vector<int> below = candidates(start, 0, *start.waiting.begin());
    (below.size() == 1 ? facts.missing : facts.candidates) = below;
    if (below.size() == 1) facts.missing_inside.clear();
  }

  // 1.13: the hosts that the ranks have made before tell which rank is which.
  void borrow_hosts(const std::string& group, Start& start) {
    if (start.kind != InitKey::Kind::address) return;
    for (const WitnessKey& key : witness_.keys) {
      const auto parsed = parse_init_key(key.name);
      if (!parsed || parsed->group != group || parsed->kind != InitKey::Kind::host) continue;
      if (const auto rank = clients_.rank_of(key.creator))
        start.known.emplace(parsed->creator, *rank);
    }
    for (auto at = start.known.begin(); at != start.known.end(); ++at)
      if (at != start.known.begin() && std::prev(at)->second >= at->second) {
        start.known.clear();  // not sorted: this group was not made by new_group()
        return;
      }
  }

  // Ranks from `low` up to `high` that may be missing here. A rank that waits in a later group has
  // been here, or is no member: all processes make their groups in the same order.
  std::vector<int> candidates(const Start& start, int low, int high) const {
    const auto own = number_in(start.name);
    std::set<int> members;
    for (const auto& [inside, rank] : start.known)
      members.insert(rank);
    std::vector<int> found;
    for (int rank = std::max(low, 0); rank < high && found.size() < kMostRanksListed; ++rank) {
      if (start.waiting.contains(rank) || members.contains(rank)) continue;
      const auto elsewhere = waits_in_.find(rank);
      if (own && elsewhere != waits_in_.end() && elsewhere->second > *own) continue;
      found.push_back(rank);
    }
    return found;
  }

  const Witness& witness_;
  std::span<const RankProcess> table_;
  Clients clients_;
  int world_;
  Starts starts_;
  std::map<int, std::int64_t> waits_in_;  // rank -> number of the group in which it waits
  std::map<std::string, std::set<int>> waiting_in_;  // by InitKey::group
  std::map<std::string, OtherWait> others_;
  StoreFacts facts_;
};

}  // namespace

StoreFacts read_witness(const Witness& witness, std::span<const RankProcess> table,
                        int world_size) {
  return Reader(witness, table, world_size).read();
}

}  // namespace lockstep::store
