// The texts and the steps of the exchange.
#include "rendezvous/rank_exchange.h"

#include "base/log.h"
#include "base/text.h"
#include "codec/json.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

namespace lockstep::rendezvous {
namespace {

using nlohmann::json;
constexpr std::size_t kMostName = 256;
constexpr std::size_t kMostWords = 2000;
constexpr std::int64_t kMostRounds = 10'000;  // most rounds to search backwards
constexpr std::size_t kMostBytes = 64U << 10;
constexpr std::int64_t kMostWorkers = 1 << 20;  // per node
constexpr std::int64_t kMostRanks = INT32_MAX;  // per job

// Everything here was written by other nodes, so nothing is trusted.
Failure nonsense(std::string_view what, std::string_view text) {
  return fail(Errc::corrupt, fmt::format("{} makes no sense: {}", what, printable(text)));
}

json parse(std::string_view text) {
  return codec::parse_json(text, {.bytes = kMostBytes});
}

// Bounds keep sums and vector sizes harmless, whatever a stranger writes.
bool is_count(const json& value, std::int64_t most) {
  return value.is_number_integer() && value >= 0 && value <= most;
}

// The first two keys are PyTorch's. The others hold "lockstep" in their names, which torchrun's
// agents never look up.
std::string role_key(const RoundResult& round, std::size_t rank) {
  return fmt::format("{}torchelastic/role_info/{}", round.prefix, rank);
}
std::string ranks_key(const RoundResult& round, std::size_t rank) {
  return fmt::format("{}torchelastic/assigned_ranks/{}", round.prefix, rank);
}
std::string lockstep_key(const RoundResult& round) {
  return round.prefix + "lockstep/round";
}

std::string told_key(const std::string& prefix) {
  return prefix + "lockstep/launches";
}
std::string turned_away_key(const std::string& prefix) {
  return prefix + "lockstep/turned_away";
}

// Reads a Lockstep attribute. A malformed one counts as not told.
void read_launched(const json& value, RoleInfo& info) {
  if (!value.is_array() || value.size() != 4 || !value[0].is_string() ||
      !is_count(value[1], INT32_MAX) || !value[2].is_boolean() || !value[3].is_string())
    return;
  info.launched = {value[0].get<std::string>().substr(0, kMostName), value[1].get<int>(),
                   value[2].get<bool>(), value[3].get<std::string>().substr(0, kMostName)};
}

// Names a node without a host name by its rank, as torchrun's agents send none.
NodeFacts facts_of(const RoleInfo& info) {
  return {.called = info.host.empty() ? fmt::format("node rank {}", info.rank) : info.host,
          .role = info.role,
          .launched = info.launched,
          .local_world_size = static_cast<int>(info.local_world_size),
          .max_restarts = info.max_restarts};
}

}  // namespace

// Prints PyTorch's fields like Python's json.dumps() does, and Lockstep's after them.
std::string encode_role_info(const RoleInfo& info) {
  std::string ours;
  if (info.restarts) ours += fmt::format(R"(, "lockstep_restarts": {})", *info.restarts);
  if (!info.nodes_asked.empty())
    ours += fmt::format(R"(, "lockstep_nodes": {})", codec::print_json(json(info.nodes_asked)));
  if (info.max_restarts)
    ours += fmt::format(R"(, "lockstep_max_restarts": {})", *info.max_restarts);
  const auto quoted = [](const std::string& text) {
    return codec::print_json(json(text), codec::JsonText::ascii);
  };
  if (!info.launched.name.empty() || info.launched.any)
    ours += fmt::format(R"(, "lockstep_launches": [{}, {}, {}, {}])", quoted(info.launched.name),
                        info.launched.arguments, info.launched.any, quoted(info.launched.version));
  if (!info.host.empty()) ours += fmt::format(R"(, "lockstep_host": {})", quoted(info.host));
  return fmt::format(R"({{"role": {}, "rank": {}, "local_world_size": {}{}}})",
                     codec::print_json(json(info.role), codec::JsonText::ascii), info.rank,
                     info.local_world_size, ours);
}

Result<RoleInfo> decode_role_info(std::string_view text) {
  const json value = parse(text);
  const auto good = [&] {
    return value.is_object() && value.contains("role") && value["role"].is_string() &&
           value.contains("rank") && is_count(value["rank"], kMostWorkers) &&
           value.contains("local_world_size") && is_count(value["local_world_size"], kMostWorkers);
  };
  if (!good()) return nonsense("a node's role info", text);
  RoleInfo info{value["role"].get<std::string>(), value["rank"].get<std::int64_t>(),
                value["local_world_size"].get<std::int64_t>()};
  if (const auto at = value.find("lockstep_restarts");
      at != value.end() && is_count(*at, kMostWorkers))
    info.restarts = at->get<int>();
  if (const auto at = value.find("lockstep_max_restarts");
      at != value.end() && is_count(*at, INT32_MAX))
    info.max_restarts = at->get<int>();
  // Cut the text: a stranger may write anything here.
  if (const auto at = value.find("lockstep_nodes"); at != value.end() && at->is_string())
    info.nodes_asked = printable(at->get<std::string>().substr(0, 64));
  if (const auto at = value.find("lockstep_launches"); at != value.end()) read_launched(*at, info);
  if (const auto at = value.find("lockstep_host"); at != value.end() && at->is_string())
    info.host = printable(at->get<std::string>().substr(0, kMostName));
  return info;
}

std::string encode_assigned_ranks(const AssignedRanks& ranks) {
  return fmt::format("[{}, {}, {}, {}]", ranks.base_rank, ranks.world_size, ranks.role_base_rank,
                     ranks.role_world_size);
}

Result<AssignedRanks> decode_assigned_ranks(std::string_view text) {
  const json value = parse(text);
  if (!value.is_array() || value.size() != 4) return nonsense("the assigned ranks", text);
  for (const json& number : value) {
    if (!is_count(number, kMostRanks)) return nonsense("the assigned ranks", text);
  }
  const auto at = [&](std::size_t i) { return value[i].get<std::int64_t>(); };
  return AssignedRanks{at(0), at(1), at(2), at(3)};
}

Result<std::vector<AssignedRanks>> assign_ranks(std::span<const RoleInfo> infos) {
  std::vector<AssignedRanks> assigned;
  assigned.reserve(infos.size());
  std::int64_t world = 0;
  std::map<std::string_view, std::int64_t> roles;
  for (const RoleInfo& info : infos) {
    assigned.push_back({world, 0, roles[info.role], 0});
    if (info.local_world_size < 0 || info.local_world_size > kMostRanks - world)
      return fail(Errc::corrupt,
                  fmt::format("node rank {} claims {} workers: the job "
                              "would have more than {}",
                              assigned.size() - 1, info.local_world_size, kMostRanks));
    world += info.local_world_size;
    roles[info.role] += info.local_world_size;
  }
  for (std::size_t i = 0; i < assigned.size(); ++i) {
    assigned[i].world_size = world;
    assigned[i].role_world_size = roles[infos[i].role];
  }
  return assigned;
}

namespace {

// Encodes what a Lockstep rank 0 tells other Lockstep agents: {"max_restarts": 3, "restarts": 1,
// "strangers": [2]}.
std::string encode_lockstep(const Assignment& made) {
  json strangers = json::array();
  for (std::size_t rank = 0; rank < made.ours.size(); ++rank)
    if (!made.ours[rank]) strangers.push_back(rank);
  return codec::print_json(json{{"max_restarts", made.max_restarts},
                                {"notes", made.notes},
                                {"restarts", made.restarts},
                                {"strangers", std::move(strangers)}});
}

// Decodes the text. A malformed one counts as not told.
void decode_lockstep(std::string_view text, Assignment& made) {
  const json value = parse(text);
  if (!value.is_object() || !value.contains("restarts") ||
      !is_count(value["restarts"], kMostWorkers) || !value.contains("strangers") ||
      !value["strangers"].is_array())
    return;
  made.restarts = std::max(made.restarts, value["restarts"].get<int>());
  if (const auto at = value.find("max_restarts"); at != value.end() && is_count(*at, INT32_MAX))
    made.max_restarts = at->get<int>();
  if (const auto at = value.find("notes"); at != value.end() && at->is_array())
    for (const json& note : *at)
      if (note.is_string() && made.notes.size() < kMostNotes)
        made.notes.push_back(printable(note.get<std::string>(), kMostWords));
  made.ours.assign(made.ours.size(), true);
  for (const json& rank : value["strangers"])
    if (is_count(rank, kMostWorkers) && rank.get<std::size_t>() < made.ours.size())
      made.ours[rank.get<std::size_t>()] = false;
}

}  // namespace

// --- what the nodes launch ---

namespace {

// Returns an error if a node launches another program than the first node of its role.
std::optional<Error> first_other_of(const std::vector<RoleInfo>& infos, const std::string& run_id) {
  std::map<std::string_view, const RoleInfo*> firsts;
  for (const RoleInfo& info : infos) {
    if (info.launched.name.empty() || info.launched.any) continue;
    const auto [first, fresh] = firsts.try_emplace(info.role, &info);
    if (fresh || first->second->launched.name == info.launched.name) continue;
    return other_program(facts_of(info), facts_of(*first->second), run_id);
  }
  return std::nullopt;
}

// Returns the launches that later nodes are compared with: the first node of each role stands for
// the role.
std::string first_of_each_role(const std::vector<RoleInfo>& infos) {
  std::map<std::string_view, const RoleInfo*> firsts;
  for (const RoleInfo& info : infos)
    if (!info.launched.name.empty() && !info.launched.any) firsts.try_emplace(info.role, &info);
  json told = json::array();
  for (const auto& [role, info] : firsts)
    told.push_back(encode_role_info(*info));
  return codec::print_json(told);
}

std::vector<std::string> notes_of(const std::vector<RoleInfo>& infos) {
  std::vector<NodeFacts> nodes;
  nodes.reserve(infos.size());
  for (const RoleInfo& info : infos)
    nodes.push_back(facts_of(info));
  return differences(nodes);
}

// Decodes a refusal, which rank 0 writes in place of ranks.
std::optional<Error> decode_refusal(std::string_view text) {
  const json value = parse(text);
  if (!value.is_object() || !value.contains("message") || !value["message"].is_string())
    return std::nullopt;
  Error error{
      Errc::invalid_input, printable(value["message"].get<std::string>(), kMostWords), {}, 0};
  if (value.contains("hint") && value["hint"].is_string())
    error.hint = printable(value["hint"].get<std::string>(), kMostWords);
  return error;
}

// Returns the error if `told` holds another program for the role of `own`.
std::optional<Error> compare(std::string_view told, const RoleInfo& own,
                             const std::string& run_id) {
  const json value = parse(told);
  if (!value.is_array()) return std::nullopt;
  for (const json& text : value) {
    if (!text.is_string()) continue;
    const auto info = decode_role_info(text.get<std::string>());
    if (!info) continue;
    if (auto differs = other_program(facts_of(own), facts_of(*info), run_id)) return differs;
  }
  return std::nullopt;
}

}  // namespace

void compare_with_round(KeyValue& keys, const std::string& prefix, const RoleInfo& own,
                        const std::string& run_id, std::function<void(Status)> done) {
  keys.probe(told_key(prefix), [&keys, prefix, own, run_id, done = std::move(done)](
                                   const Result<std::optional<std::string>>& told) {
    if (!told || !*told) return done({});
    // Tell rank 0 before giving up, so that its log explains the missing node.
    const auto differs = compare(**told, own, run_id);
    if (!differs) return done({});
    keys.set(turned_away_key(prefix), differs->message,
             [differs, done](const Result<void>&) { done(tl::make_unexpected(*differs)); });
  });
}

std::unique_ptr<KeyValue::Watch> watch_turned_away(KeyValue& keys, const std::string& prefix) {
  return keys.watch(turned_away_key(prefix), [](const std::string& text) {
    log::warning("{}: it was turned away", printable(text, kMostWords));
  });
}

// --- the driver ---

namespace {

// A running exchange. Pending requests keep the exchange alive; a destroyed store drops the
// requests.
struct Exchange : std::enable_shared_from_this<Exchange> {
  Exchange(KeyValue& at, RankExchange what, std::function<void(Result<Assignment>)> fn)
      : keys(at), in(std::move(what)), done(std::move(fn)) {}

  void start();
  void collect();
  void hand_out(const std::vector<std::string>& texts);
  void refuse(const std::vector<RoleInfo>& infos, Error error);
  void fetch();
  void fetch_from_stranger();
  void find_store(const std::string& ranks, std::int64_t round);
  void understand(const std::vector<std::string>& texts);
  void learn_restarts(Assignment made);
  void finish(Result<Assignment> outcome) {
    if (const auto call = std::exchange(done, nullptr)) call(std::move(outcome));
  }
  void failed(Error error) {
    const std::string what = fmt::format("agree on ranks in round {}", in.round.round);
    finish(tl::make_unexpected(std::move(error).within(what)));
  }

  KeyValue& keys;
  RankExchange in;
  std::function<void(Result<Assignment>)> done;
};

void Exchange::start() {
  KeyValue::Entries entries;
  if (in.offered) {
    entries.emplace_back(in.round.prefix + "MASTER_ADDR", in.offered->addr);
    entries.emplace_back(in.round.prefix + "MASTER_PORT", std::to_string(in.offered->port));
  }
  in.own.rank = static_cast<std::int64_t>(in.round.rank);
  entries.emplace_back(role_key(in.round, in.round.rank), encode_role_info(in.own));
  // Write everything before waiting. PyTorch 1.13 reads in the opposite order, and two agents that
  // wait first would wait for each other.
  keys.multi_set(entries, nullptr);
  in.round.rank == 0 ? collect() : fetch();
}

// Rank 0 waits for every node, torchrun's included.
void Exchange::collect() {
  KeyValue::Keys wanted;
  wanted.reserve(in.round.world);
  for (std::size_t rank = 0; rank < in.round.world; ++rank)
    wanted.push_back(role_key(in.round, rank));
  keys.multi_get(wanted, in.timeout,
                 [self = shared_from_this()](Result<std::vector<std::string>> texts) {
                   if (!texts) return self->failed(std::move(texts).error());
                   self->hand_out(*texts);
                 });
}

void Exchange::hand_out(const std::vector<std::string>& texts) {
  std::vector<RoleInfo> infos;
  for (const auto& text : texts) {
    auto info = decode_role_info(text);
    if (!info)
      return failed(std::move(info).error().within(fmt::format("node rank {}", infos.size())));
    infos.push_back(std::move(*info));
  }
  if (auto differs = first_other_of(infos, in.run_id)) return refuse(infos, std::move(*differs));
  auto made_ranks = assign_ranks(infos);
  if (!made_ranks) return failed(std::move(made_ranks).error());
  const std::vector<AssignedRanks> assigned = std::move(*made_ranks);
  // The other nodes read their ranks only after this call, so now is the time to clean the store.
  if (in.all_are_there) in.all_are_there();
  Assignment made;
  made.workers = in.known_store ? *in.known_store : in.offered.value_or(StorePlace{});
  made.ranks = assigned[0];
  // A torchrun agent does not tell its --max-restarts.
  const bool all_say = std::all_of(infos.begin(), infos.end(), [](const RoleInfo& info) {
    return info.max_restarts.has_value();
  });
  for (const RoleInfo& info : infos) {
    if (all_say) made.max_restarts = std::min(made.max_restarts, *info.max_restarts);
    made.restarts = std::max(made.restarts, info.restarts.value_or(0));
    // Only Lockstep's agents tell their restarts.
    made.ours.push_back(info.restarts.has_value());
    made.nodes_asked.push_back(info.nodes_asked);
    made.hosts.push_back(info.host);
  }
  made.notes = notes_of(infos);
  // Write these keys before the ranks. A node with ranks can then read the keys without waiting.
  KeyValue::Entries entries{{lockstep_key(in.round), encode_lockstep(made)},
                            {told_key(in.round.prefix), first_of_each_role(infos)}};
  for (std::size_t rank = 0; rank < assigned.size(); ++rank)
    entries.emplace_back(ranks_key(in.round, rank), encode_assigned_ranks(assigned[rank]));
  keys.multi_set(entries,
                 [self = shared_from_this(), made = std::move(made)](Result<void> written) mutable {
                   if (!written) return self->failed(std::move(written).error());
                   self->finish(std::move(made));
                 });
}

// Refuses the round because of a foreign program. Every Lockstep agent reads the reason in place of
// ranks.
void Exchange::refuse(const std::vector<RoleInfo>& infos, Error error) {
  KeyValue::Entries entries;
  const std::string text =
      codec::print_json(json{{"message", error.message}, {"hint", error.hint}});
  // torchrun's agents could not parse a refusal.
  for (std::size_t rank = 1; rank < infos.size(); ++rank)
    if (infos[rank].restarts) entries.emplace_back(ranks_key(in.round, rank), text);
  keys.multi_set(entries, [self = shared_from_this(), error = std::move(error)](
                              const Result<void>&) { self->finish(tl::make_unexpected(error)); });
}

void Exchange::fetch() {
  // A torchrun rank 0 needs another way to find its store.
  const bool stranger = !in.round.nodes.empty() && !badge_of(in.round.nodes.front());
  if (stranger && !in.known_store && in.prefix_of) return fetch_from_stranger();
  KeyValue::Keys wanted{ranks_key(in.round, in.round.rank)};
  if (!in.known_store) {
    wanted.push_back(in.round.prefix + "MASTER_ADDR");
    wanted.push_back(in.round.prefix + "MASTER_PORT");
  }
  keys.multi_get(wanted, in.timeout,
                 [self = shared_from_this()](Result<std::vector<std::string>> texts) {
                   if (!texts) return self->failed(std::move(texts).error());
                   self->understand(*texts);
                 });
}

// Reads the ranks first. A torchrun agent keeps its store from round to round and publishes the
// store only once, in any case before it hands out ranks.
void Exchange::fetch_from_stranger() {
  keys.multi_get({ranks_key(in.round, in.round.rank)}, in.timeout,
                 [self = shared_from_this()](Result<std::vector<std::string>> texts) {
                   if (!texts) return self->failed(std::move(texts).error());
                   self->find_store(texts->at(0), self->in.round.round);
                 });
}

void Exchange::find_store(const std::string& ranks, std::int64_t round) {
  const std::string& host = in.round.nodes.front().addr;
  // Bound the search: the address may be missing in every round.
  if (round < 0 || round + kMostRounds < in.round.round)
    return failed({Errc::corrupt, "no node has published the workers' store of " + host, {}, 0});
  const std::string prefix = round == in.round.round ? in.round.prefix : in.prefix_of(round);
  keys.probe(prefix + "MASTER_ADDR", [self = shared_from_this(), ranks, round,
                                      prefix](Result<std::optional<std::string>> addr) {
    if (!addr) return self->failed(std::move(addr).error());
    const bool now = round == self->in.round.round;
    // In an earlier round another node may have been rank 0.
    if (!*addr || (!now && **addr != self->in.round.nodes.front().addr))
      return self->find_store(ranks, round - 1);
    self->keys.probe(prefix + "MASTER_PORT",
                     [self, ranks, addr = **addr](Result<std::optional<std::string>> port) {
                       if (!port) return self->failed(std::move(port).error());
                       self->understand({ranks, addr, port->value_or("")});
                     });
  });
}

void Exchange::understand(const std::vector<std::string>& texts) {
  if (auto refused = decode_refusal(texts.at(0)))
    return finish(tl::make_unexpected(std::move(*refused)));
  auto ranks = decode_assigned_ranks(texts.at(0));
  if (!ranks) return failed(std::move(ranks).error());
  Assignment made;
  made.ranks = *ranks;
  if (in.known_store) {
    made.workers = *in.known_store;
  } else {
    // MASTER_PORT is decimal text.
    const auto port = parse_int(texts.at(2));
    if (!port || *port <= 0 || *port > UINT16_MAX)
      return failed(nonsense("MASTER_PORT", texts.at(2)).value());
    made.workers = {texts.at(1), static_cast<int>(*port)};
  }
  learn_restarts(std::move(made));
}

// Reads the restarts from a Lockstep rank 0. A torchrun agent writes none.
void Exchange::learn_restarts(Assignment made) {
  made.restarts = in.own.restarts.value_or(0);
  made.ours.assign(in.round.world, false);
  made.ours.at(in.round.rank) = true;
  keys.probe(lockstep_key(in.round), [self = shared_from_this(), made](
                                         const Result<std::optional<std::string>>& text) mutable {
    if (text && *text) decode_lockstep(**text, made);
    self->finish(std::move(made));
  });
}

}  // namespace

void exchange_ranks(KeyValue& keys, RankExchange exchange,
                    std::function<void(Result<Assignment>)> done) {
  std::make_shared<Exchange>(keys, std::move(exchange), std::move(done))->start();
}

}  // namespace lockstep::rendezvous
