// Applies the options about which all nodes agree: the order of ranks, the shared secret, and the
// time to wait for each other at the end.
#include "base/text.h"
#include "launch/backend_row.h"
#include "launch/rules.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::launch {
namespace {

constexpr std::size_t kMaxTokenBytes = 4096;

using rendezvous::RankOrder;

Result<RankOrder> rank_order(const std::string& text) {
  for (const RankOrder order : {RankOrder::host, RankOrder::node_rank, RankOrder::address})
    if (order_name(order) == text) return order;
  return fail(
      Errc::invalid_input,
      fmt::format("--rank-order must be one of host, node-rank, address, got {}", printable(text)));
}

// Checks that the backend supports the order. Some backends support only torchrun's order, which is
// the default of c10d and etcd-v2. If an agent of torchrun takes part there, its order holds in
// spite of the option.
Status check_order(const LaunchConfig& config) {
  const auto& orders = config.backend->orders;
  if (std::find(orders.begin(), orders.end(), config.rank_order) == orders.end())
    return fail(Errc::invalid_input,
                fmt::format("--rank-order: with the {} backend ranks are given by {}, as "
                            "torchrun's agents do",
                            config.backend->name,
                            orders.front() == RankOrder::node_rank ? "--node-rank"
                                                                   : order_name(orders.front())),
                fmt::format("leave it out, or use --rdzv-backend {}", lockstep_backend().name));
  if (config.rank_order == RankOrder::node_rank && !config.node_rank_given)
    return fail(Errc::invalid_input, "--rank-order node-rank: there is no --node-rank");
  return {};
}

Status apply_rank_order(const RawOptions& raw, LaunchConfig& config) {
  config.rank_order = config.backend->orders.front();
  if (raw.rank_order) {
    LOCKSTEP_TRY_ASSIGN(config.rank_order, rank_order(*raw.rank_order));
    return config.alone() ? Status{} : check_order(config);
  }
  // torchrun ignores node ranks with its own dynamic backends. With Lockstep's backends a given
  // node rank, from the user or the scheduler, decides the order.
  if (!config.alone() && config.node_rank_given && !config.backend->fixed()) {
    config.rank_order = RankOrder::node_rank;
    config.origins["rank-order"] = {Origin::Kind::rule, "", Rule::node_rank};
  }
  return {};
}

// Reads the job's secret. Argv is visible to all users, so the secret comes from a file or a
// variable.
Status apply_token(const RawOptions& raw, const Facts& facts, LaunchConfig& config) {
  std::string token;
  std::string source = "LOCKSTEP_RDZV_TOKEN";
  if (raw.rdzv_token_file) {
    LOCKSTEP_TRY_ASSIGN(
        token, read_secret(*raw.rdzv_token_file, kMaxTokenBytes, "--rdzv-token-file", facts));
    source = "--rdzv-token-file " + printable(*raw.rdzv_token_file);
  } else if (raw.rdzv_token) {
    token = *raw.rdzv_token;
    config.origins["rdzv-token-file"] = {Origin::Kind::variable, source};
  } else {
    return {};
  }
  if (token.size() > kMaxTokenBytes)
    return fail(Errc::invalid_input,
                fmt::format("{} is longer than {} bytes", source, kMaxTokenBytes));
  config.rdzv_token = std::string(strip(token));
  if (config.rdzv_token->empty())
    return fail(Errc::invalid_input, fmt::format("{}: the token is empty", source));
  // A token in the environment may be meant for other jobs, so warn only about the option.
  if (raw.rdzv_token_file && !config.alone() && !config.backend->takes_token)
    config.warnings.push_back(fmt::format(
        "the rendezvous token is not used: the {} backend has none", config.backend->name));
  return {};
}

Status apply_exit_barrier(const RawOptions& raw, const Facts& facts, LaunchConfig& config) {
  constexpr const char* kVariable = "TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT";
  std::int64_t seconds = raw.exit_barrier_timeout.value_or(300);
  const auto env = facts.env(kVariable);
  if (!raw.exit_barrier_timeout && env) {
    const auto number = parse_int(*env);
    if (!number)
      return fail(Errc::invalid_input,
                  fmt::format("{}: invalid literal for int() with base 10: '{}'", kVariable,
                              printable(*env)));
    seconds = *number;
    config.origins["exit-barrier-timeout"] = {Origin::Kind::variable, kVariable};
  }
  if (seconds < 0)
    return fail(Errc::invalid_input,
                fmt::format("exit_barrier_timeout must be non-negative, got {}", seconds));
  config.exit_barrier_timeout = std::chrono::seconds(std::min(seconds, kYearInSeconds));
  return {};
}

}  // namespace

Result<std::string> read_secret(const std::string& path, std::size_t limit, std::string_view option,
                                const Facts& facts) {
  auto file = facts.secret_file(path, limit + 1);
  if (!file) return tl::make_unexpected(std::move(file).error().within(std::string(option)));
  if ((file->mode & 077U) != 0)
    return fail(Errc::denied,
                fmt::format("{}: other users may use {} (mode {:04o})", option, printable(path),
                            file->mode),
                fmt::format("chmod 600 {}", shell_quote(printable(path))));
  return std::move(file->bytes);
}

Status apply_agreement(const RawOptions& raw, const Facts& facts, LaunchConfig& config) {
  LOCKSTEP_TRY(apply_rank_order(raw, config));
  LOCKSTEP_TRY(apply_token(raw, facts, config));
  return apply_exit_barrier(raw, facts, config);
}

}  // namespace lockstep::launch
