#include "cluster/place.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::cluster {
namespace {

Status override_with(const HostOptions& options, const std::string& where, ssh::Target& target) {
  if (options.user && target.user && *options.user != *target.user)
    return fail(Errc::invalid_input,
                fmt::format("both {} and --user {} name a user", where, *options.user),
                "give one of them");
  if (options.user) target.user = options.user;
  if (options.key_path) target.key_path = *options.key_path;
  if (options.jump) target.jump = *options.jump;
  return {};
}

struct Span {
  std::int64_t first;
  std::int64_t last;
};

std::optional<Span> parse_span(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = parse_int(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_int(text.substr(dash + 1));
  if (!first || !last || *first < 0 || *last < *first) return std::nullopt;
  return Span{*first, *last};
}

}  // namespace

Result<std::vector<std::size_t>> parse_node_numbers(std::string_view text, std::size_t count) {
  std::vector<std::size_t> numbers;
  if (text == "all") text = {};
  if (text.empty())
    for (std::size_t i = 0; i < count; ++i)
      numbers.push_back(i);
  for (const std::string& part : split(text, ',')) {
    if (text.empty()) break;
    const auto span = parse_span(part);
    if (!span)
      return fail(Errc::invalid_input,
                  fmt::format("--nodes {}: '{}' is no number and no range", printable(text),
                              printable(part)),
                  "write all, 0, 1-3 or 0,2-3");
    if (span->last >= static_cast<std::int64_t>(count))
      return fail(Errc::invalid_input, fmt::format("--nodes {}: there are {} nodes, 0 to {}",
                                                   printable(text), count, count - 1));
    for (std::int64_t i = span->first; i <= span->last; ++i)
      numbers.push_back(static_cast<std::size_t>(i));
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

Result<HostPlace> place_of_host(const std::string& where, const HostOptions& options) {
  LOCKSTEP_TRY_ASSIGN(ssh::Target target, ssh::parse_target(where));
  LOCKSTEP_TRY(override_with(options, where, target));
  return HostPlace{ssh::target_text(target), std::move(target)};
}

Result<std::vector<HostPlace>> find_places(const Registry& registry, const std::string& where,
                                           const std::optional<std::string>& nodes,
                                           const HostOptions& options) {
  std::vector<HostPlace> places;
  if (where == kHere) {
    places.push_back({.name = where, .target = {}, .here = true});
    return places;
  }
  const auto cluster = registry.find(where);
  if (cluster) {
    LOCKSTEP_TRY_ASSIGN(const auto numbers,
                        parse_node_numbers(nodes.value_or("all"), cluster->nodes.size()));
    if (cluster->is_slurm() && cluster->nodes.empty())
      places.push_back({.name = where, .target = {}, .here = true, .login = true});
    for (const std::size_t number : numbers) {
      const Node& node = cluster->nodes[number];
      HostPlace place{.name = fmt::format("{}-{}", where, number),
                      .target = node.target,
                      .pins = registry.pins_file(where),
                      .slots = node.slots,
                      .login = cluster->is_slurm()};
      if (cluster->is_rented()) place.target.host_keys = ssh::HostKeys::pinned;
      LOCKSTEP_TRY(override_with(options, ssh::target_text(place.target), place.target));
      places.push_back(std::move(place));
    }
    return places;
  }
  if (cluster.error().code != Errc::not_found) return Failure(cluster.error());
  LOCKSTEP_TRY_ASSIGN(HostPlace host, place_of_host(where, options));
  if (nodes && *nodes != "all" && *nodes != "0")
    return fail(Errc::invalid_input, fmt::format("--nodes {}: {} is one host, and no cluster has "
                                                 "that name",
                                                 printable(*nodes), where));
  places.push_back(std::move(host));
  return places;
}

}  // namespace lockstep::cluster
