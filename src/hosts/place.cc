#include "hosts/place.h"

#include "base/text.h"
#include "io/own_folders.h"

#include <fmt/core.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace lockstep::hosts {
namespace {

Status override_with(const HostOptions& options, const std::string& where, ssh::Target& target) {
  if (options.user && target.user && *options.user != *target.user)
    return fail(Errc::invalid_input,
                fmt::format("both {} and --user {} name a user", where, *options.user),
                "give one of them");
  if (options.user) target.user = options.user;
  if (options.key_path) {
    LOCKSTEP_TRY_ASSIGN(target.key_path, check_key_path(*options.key_path));
  }
  if (options.jump) target.jump = *options.jump;
  return {};
}

// Returns the cluster with a similar name, or "". A word with '@', ':' or '.' is an address and not
// a misspelled cluster. An unreadable registry only costs the hint.
std::string cluster_like(const Registry& registry, const std::string& where) {
  if (where.find_first_of("@:.") != std::string::npos) return "";
  const auto clusters = registry.list();
  std::vector<std::string> names;
  if (clusters)
    for (const Cluster& each : *clusters)
      names.push_back(each.name);
  return did_you_mean(where, names).value_or("");
}

struct Span {
  std::int64_t first;
  std::int64_t last;
};

// Returns the span of "3" or "1-3". nullopt: any other text, or a span that runs backwards.
std::optional<Span> parse_span(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = parse_int(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_int(text.substr(dash + 1));
  if (!first || !last || *first < 0 || *last < *first) return std::nullopt;
  return Span{*first, *last};
}

}  // namespace

Result<std::string> check_key_path(const std::string& path) {
  const std::string file = path.starts_with("~/") ? io::home_folder() + path.substr(1) : path;
  struct stat info {};
  const bool there = stat(file.c_str(), &info) == 0;
  if (there && S_ISREG(info.st_mode) && access(file.c_str(), R_OK) == 0)
    // Later commands run in other folders, and what is kept must still mean this file.
    return std::filesystem::absolute(file).string();
  return fail(Errc::invalid_input,
              fmt::format("--key-path {}: {}", printable(path),
                          !there                   ? "there is no such file"
                          : !S_ISREG(info.st_mode) ? "the key must be a regular file"
                                                   : "it can't be read"));
}

Result<std::vector<std::size_t>> parse_node_numbers(std::string_view text, std::size_t count) {
  std::vector<std::size_t> numbers;
  // split() of an empty text returns one empty part, so the loops below treat an empty text apart.
  if (text == "all") text = {};
  if (text.empty())
    for (std::size_t i = 0; i < count; ++i)
      numbers.push_back(i);
  for (const std::string& part : split(text, ',')) {
    if (text.empty()) break;
    const auto span = parse_span(part);
    if (!span)
      return fail(Errc::invalid_input,
                  fmt::format("--nodes {}: '{}' must be a number or a range", printable(text),
                              printable(part)),
                  "write all, 0, 1-3 or 0,2-3");
    // Check before the loop: "0-999999999999" must not fill the memory.
    if (span->last >= static_cast<std::int64_t>(count))
      return fail(Errc::invalid_input, fmt::format("--nodes {}: there are {} nodes, 0 to {}",
                                                   printable(text), count, count - 1));
    for (std::int64_t i = span->first; i <= span->last; ++i)
      numbers.push_back(static_cast<std::size_t>(i));
  }
  // "2,0" and "0,0-2" name the same nodes as "0,2" and "0-2". Ranks must follow the order of the
  // cluster.
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

Result<Cluster> without_hosts(const Cluster& cluster, const std::vector<std::string>& hosts) {
  if (hosts.empty()) return fail(Errc::invalid_input, "no host is named");
  std::vector<bool> goes(cluster.nodes.size());
  for (const std::string& text : hosts) {
    std::size_t found = 0;
    for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
      const ssh::Target& target = cluster.nodes[i].target;
      const std::string number = std::to_string(i);
      if (text != number && text != cluster.name + "-" + number && text != target.host &&
          text != ssh::target_text(target))
        continue;
      ++found;
      goes[i] = true;
    }
    // Two nodes may have the same host, with different ports or users. Such nodes need their
    // number.
    if (found == 1) continue;
    return fail(Errc::invalid_input,
                fmt::format("{} has {} {}", cluster.name, found == 0 ? "no host" : "several hosts",
                            printable(text)),
                "lockstep cluster show " + cluster.name + " lists them with their numbers");
  }
  Cluster left = cluster;
  left.nodes.clear();
  for (std::size_t i = 0; i < goes.size(); ++i)
    if (!goes[i]) left.nodes.push_back(cluster.nodes[i]);
  if (left.nodes.empty())
    return fail(Errc::invalid_input, fmt::format("{} would have no host left", cluster.name),
                "lockstep cluster remove " + cluster.name + " forgets it");
  return left;
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
  // "local" comes before the registry: check_cluster_name() refuses the name for clusters.
  if (where == kHere) {
    places.push_back({.name = where, .target = {}, .here = true});
    return places;
  }
  const auto cluster = registry.find(where);
  if (cluster) {
    LOCKSTEP_TRY_ASSIGN(const auto numbers,
                        parse_node_numbers(nodes.value_or("all"), cluster->nodes.size()));
    // Without a login host in the registry, this machine is the login host.
    if (cluster->is_slurm() && cluster->nodes.empty())
      places.push_back({.name = where, .target = {}, .here = true, .login = true});
    for (const std::size_t number : numbers) {
      const Node& node = cluster->nodes[number];
      HostPlace place{.name = fmt::format("{}-{}", where, number),
                      .target = node.target,
                      .pins = registry.pins_file(where),
                      .slots = node.slots,
                      .login = cluster->is_slurm()};
      // Lockstep made the host keys of rented machines. Any other key belongs to a stranger, such
      // as the next machine at the same address.
      if (cluster->is_rented()) place.target.host_keys = ssh::HostKeys::pinned;
      LOCKSTEP_TRY(override_with(options, ssh::target_text(place.target), place.target));
      places.push_back(std::move(place));
    }
    return places;
  }
  // A damaged registry must not turn a cluster's name into a host name.
  if (cluster.error().code != Errc::not_found) return Failure(cluster.error());
  LOCKSTEP_TRY_ASSIGN(HostPlace host, place_of_host(where, options));
  host.like = cluster_like(registry, where);
  // A single host has node 0 only.
  if (nodes && *nodes != "all" && *nodes != "0")
    return fail(Errc::invalid_input, fmt::format("--nodes {}: {} is one host, and no cluster has "
                                                 "that name",
                                                 printable(*nodes), where));
  places.push_back(std::move(host));
  return places;
}

}  // namespace lockstep::hosts
