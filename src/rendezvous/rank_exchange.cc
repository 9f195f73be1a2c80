// Texts and the steps of the exchange; see the header.
#include "rendezvous/rank_exchange.h"

#include "base/text.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <map>
#include <memory>
#include <utility>

namespace lockstep::rendezvous {
namespace {

using nlohmann::json;
constexpr std::size_t kMostBytes = 64U << 10;
constexpr std::int64_t kMostWorkers = 1 << 20;  // of a node; sums stay far from overflow

Failure nonsense(std::string_view what, std::string_view text) {
  return fail(Errc::corrupt, fmt::format("{} makes no sense: {}", what, printable(text)));
}

json parse(std::string_view text) {
  if (text.size() > kMostBytes) return json(json::value_t::discarded);
  return json::parse(text, nullptr, false);
}

bool is_count(const json& value, std::int64_t most) {
  return value.is_number_integer() && value >= 0 && value <= most;
}

std::string role_key(const RoundResult& round, std::size_t rank) {
  return fmt::format("{}torchelastic/role_info/{}", round.prefix, rank);
}
std::string ranks_key(const RoundResult& round, std::size_t rank) {
  return fmt::format("{}torchelastic/assigned_ranks/{}", round.prefix, rank);
}

}  // namespace

std::string encode_role_info(const RoleInfo& info) {
  return fmt::format(R"({{"role": {}, "rank": {}, "local_world_size": {}}})",
                     json(info.role).dump(-1, ' ', true, json::error_handler_t::replace), info.rank,
                     info.local_world_size);
}

Result<RoleInfo> decode_role_info(std::string_view text) {
  const json value = parse(text);
  const auto good = [&] {
    return value.is_object() && value.contains("role") && value["role"].is_string() &&
           value.contains("rank") && is_count(value["rank"], kMostWorkers) &&
           value.contains("local_world_size") && is_count(value["local_world_size"], kMostWorkers);
  };
  if (!good()) return nonsense("a node's role info", text);
  return RoleInfo{value["role"].get<std::string>(), value["rank"].get<std::int64_t>(),
                  value["local_world_size"].get<std::int64_t>()};
}

std::string encode_assigned_ranks(const AssignedRanks& ranks) {
  return fmt::format("[{}, {}, {}, {}]", ranks.base_rank, ranks.world_size, ranks.role_base_rank,
                     ranks.role_world_size);
}

Result<AssignedRanks> decode_assigned_ranks(std::string_view text) {
  constexpr std::int64_t kMost = INT32_MAX;
  const json value = parse(text);
  if (!value.is_array() || value.size() != 4) return nonsense("the assigned ranks", text);
  for (const json& number : value) {
    if (!is_count(number, kMost)) return nonsense("the assigned ranks", text);
  }
  const auto at = [&](std::size_t i) { return value[i].get<std::int64_t>(); };
  return AssignedRanks{at(0), at(1), at(2), at(3)};
}

std::vector<AssignedRanks> assign_ranks(std::span<const RoleInfo> infos) {
  std::vector<AssignedRanks> assigned;
  std::int64_t world = 0;
  std::map<std::string_view, std::int64_t> roles;
  for (const RoleInfo& info : infos) {
    assigned.push_back({world, 0, roles[info.role], 0});
    world += info.local_world_size;
    roles[info.role] += info.local_world_size;
  }
  for (std::size_t i = 0; i < assigned.size(); ++i) {
    assigned[i].world_size = world;
    assigned[i].role_world_size = roles[infos[i].role];
  }
  return assigned;
}

// --- the driver ---

namespace {

struct Exchange : std::enable_shared_from_this<Exchange> {
  Exchange(store::AsyncClient& at, RankExchange what, std::function<void(Result<Assignment>)> fn)
      : client(at), in(std::move(what)), done(std::move(fn)) {}

  void start();
  void collect();
  void hand_out(const std::vector<std::string>& texts);
  void fetch();
  void finish(Result<Assignment> outcome) {
    if (const auto call = std::exchange(done, nullptr)) call(std::move(outcome));
  }
  void failed(Error error) {
    const std::string what = fmt::format("agree on ranks in round {}", in.round.round);
    finish(tl::make_unexpected(std::move(error).within(what)));
  }

  store::AsyncClient& client;
  RankExchange in;
  std::function<void(Result<Assignment>)> done;
};

void Exchange::start() {
  store::AsyncClient::Entries entries;
  if (in.offered) {
    entries.emplace_back(in.round.prefix + "MASTER_ADDR", in.offered->addr);
    entries.emplace_back(in.round.prefix + "MASTER_PORT", std::to_string(in.offered->port));
  }
  in.own.rank = static_cast<std::int64_t>(in.round.rank);
  entries.emplace_back(role_key(in.round, in.round.rank), encode_role_info(in.own));
  for (const auto& [key, value] : entries)
    client.set(key, value, nullptr, in.timeout);
  in.round.rank == 0 ? collect() : fetch();
}

void Exchange::collect() {
  std::vector<std::string> keys;
  for (std::size_t rank = 0; rank < in.round.world; ++rank)
    keys.push_back(role_key(in.round, rank));
  client.multi_get(
      keys,
      [self = shared_from_this()](Result<std::vector<std::string>> texts) {
        if (!texts) return self->failed(std::move(texts).error());
        self->hand_out(*texts);
      },
      in.timeout);
}

void Exchange::hand_out(const std::vector<std::string>& texts) {
  std::vector<RoleInfo> infos;
  for (const auto& text : texts) {
    auto info = decode_role_info(text);
    if (!info) return failed(std::move(info).error());
    infos.push_back(std::move(*info));
  }
  const auto assigned = assign_ranks(infos);
  store::AsyncClient::Entries entries;
  for (std::size_t rank = 0; rank < assigned.size(); ++rank)
    entries.emplace_back(ranks_key(in.round, rank), encode_assigned_ranks(assigned[rank]));
  client.multi_set(
      entries,
      [self = shared_from_this(), own = assigned[0]](Result<void> written) {
        if (!written) return self->failed(std::move(written).error());
        self->finish(Assignment{self->in.offered.value_or(WorkerStore{}), own});
      },
      in.timeout);
}

void Exchange::fetch() {
  client.multi_get(
      {in.round.prefix + "MASTER_ADDR", in.round.prefix + "MASTER_PORT",
       ranks_key(in.round, in.round.rank)},
      [self = shared_from_this()](Result<std::vector<std::string>> texts) {
        if (!texts) return self->failed(std::move(texts).error());
        const auto port = parse_int((*texts)[1]);
        if (!port || *port <= 0 || *port > UINT16_MAX)
          return self->failed(nonsense("MASTER_PORT", (*texts)[1]).value());
        auto ranks = decode_assigned_ranks((*texts)[2]);
        if (!ranks) return self->failed(std::move(ranks).error());
        self->finish(Assignment{{(*texts)[0], static_cast<int>(*port)}, *ranks});
      },
      in.timeout);
}

}  // namespace

void exchange_ranks(store::AsyncClient& client, RankExchange exchange,
                    std::function<void(Result<Assignment>)> done) {
  std::make_shared<Exchange>(client, std::move(exchange), std::move(done))->start();
}

}  // namespace lockstep::rendezvous
