#include "agent/profile_desk.h"

#include "base/number_ranges.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::agent {
namespace {

// A process polls every 5 s. After two missed polls the process has ended, or hangs in its fork.
constexpr std::chrono::seconds kSilent{12};
constexpr std::size_t kMostClients = 64;  // of a rank
constexpr std::size_t kMostRanks = 4096;
// A command that has not looked for so long was killed. While a command fetches it looks every 20
// s. It cannot look while it waits for the first byte of a login host (90 s), or for hosts that
// hang.
constexpr std::chrono::seconds kGone{180};
// All ranks of a profile by time begin at one moment. Every rank must have polled before, and
// warmed up.
constexpr std::int64_t kLeadMs = std::int64_t{5 + codec::kKinetoWarmUp + 2} * 1000;

}  // namespace

ProfileDesk::Client& ProfileDesk::meet(const Sender& sender, io::TimePoint now) {
  std::vector<Client>& clients = clients_[sender.rank];
  auto found = std::find_if(clients.begin(), clients.end(),
                            [&](const Client& each) { return each.name == sender.name; });
  if (found == clients.end()) {
    std::erase_if(clients, [now](const Client& each) { return now - each.last > kSilent; });
    if (clients.size() == kMostClients) clients.pop_back();
    found = clients.insert(clients.end(), {.name = sender.name, .last = now});
  }
  found->last = now;
  return *found;
}

const ProfileDesk::Client* ProfileDesk::chosen(int rank, io::TimePoint now) const {
  const auto clients = clients_.find(rank);
  if (clients == clients_.end()) return nullptr;
  for (const Client& each : clients->second)
    if (now - each.last <= kSilent) return &each;
  return nullptr;
}

int ProfileDesk::on_hello(const Sender& sender, io::TimePoint now) {
  meet(sender, now);
  return static_cast<int>(clients_[sender.rank].size());
}

std::string ProfileDesk::on_poll(const Sender& sender, bool idle, const std::string& folder,
                                 io::TimePoint now, std::int64_t unix_ms) {
  meet(sender, now).idle = idle;
  const auto order = ordered_.find(sender.rank);
  if (!taken_ || lost_ || now > until_ || order == ordered_.end() || order->second || !idle)
    return {};
  if (chosen(sender.rank, now)->name != sender.name) return {};
  order->second = true;
  codec::KinetoOrder made{
      .file = fmt::format("{}/{}.json", folder, status::profile_file_stem(id_, sender.rank)),
      .steps = wish_.steps,
      .multiple = wish_.every,
      .millis = wish_.millis};
  // A rank that is late takes its own time: Kineto refuses a begin that is over.
  if (unix_ms + std::int64_t{codec::kKinetoWarmUp} * 1000 <= start_ms_) made.start_ms = start_ms_;
  return codec::kineto_config(made);
}

Result<bool> ProfileDesk::begin(std::int64_t id, const status::ProfileWish& wish,
                                const std::vector<int>& here, io::TimePoint now,
                                std::int64_t unix_ms) {
  // Two hosts of a job that share their sockets both pass on the order.
  if (taken_ && id == id_) return false;
  if (id == 0 || (wish.steps == 0 && wish.millis == 0))
    return fail(Errc::invalid_input, "a profile needs an id, and a number of steps or seconds");
  const auto wanted = wish.ranks.empty() ? here : parse_ranges(wish.ranks, kMostRanks);
  if (!wanted) return fail(Errc::invalid_input, "--ranks must be a list such as 0-3,7");
  std::map<int, bool> ordered;
  for (const int rank : *wanted)
    if (std::find(here.begin(), here.end(), rank) != here.end()) ordered[rank] = false;
  if (ordered.empty()) return false;
  if (taken_ && now - looked_ < kGone)
    return fail(Errc::already_exists, "another lockstep profile of this job is not over",
                "wait for its end");
  wish_ = wish;
  ordered_ = std::move(ordered);
  taken_ = true;
  lost_ = false;
  until_ = now + std::chrono::seconds(wish.limit);
  looked_ = now;
  start_ms_ = unix_ms + kLeadMs;
  id_ = id;
  return true;
}

void ProfileDesk::end(std::int64_t id) {
  if (id == id_) taken_ = false;
}

void ProfileDesk::forget() {
  clients_.clear();
  lost_ = true;
}

std::vector<status::RankProfile> ProfileDesk::ranks(std::int64_t id, const std::vector<int>& alive,
                                                    io::TimePoint now) {
  using status::ProfileState;
  std::vector<status::RankProfile> ranks;
  if (id != id_ || !taken_) return ranks;
  looked_ = now;
  for (const auto& [rank, ordered] : ordered_) {
    const Client* client = chosen(rank, now);
    ProfileState state = ProfileState::absent;
    if (lost_ || std::find(alive.begin(), alive.end(), rank) == alive.end())
      state = ProfileState::gone;
    else if (ordered)
      state = ProfileState::ordered;
    else if (client != nullptr)
      state = client->idle ? ProfileState::waiting : ProfileState::busy;
    ranks.push_back({.rank = rank, .state = state});
  }
  return ranks;
}

}  // namespace lockstep::agent
