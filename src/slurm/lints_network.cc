// Lints for ports and network interfaces.
#include "base/text.h"
#include "slurm/lint_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace lockstep::slurm {
namespace {

struct Port {
  int line = 0;
  std::string where;  // "--master_port"
  std::string text;   // as written
};

std::string behind_colon(const std::string& endpoint) {
  const std::size_t colon = endpoint.rfind(':');
  return colon == std::string::npos ? "" : endpoint.substr(colon + 1);
}

// Returns every port that ranks are given, each once.
std::vector<Port> ports_of(const JobScript& script) {
  std::vector<Port> ports;
  for (const LaunchLine& each : script.launches) {
    for (const std::string_view option : {"--master_port", "--main_process_port"})
      if (const auto value = option_of(each.words, {option}))
        ports.push_back({each.line, std::string(option), *value});
    if (const auto endpoint = option_of(each.words, {"--rdzv_endpoint"})) {
      const std::string port = behind_colon(*endpoint);
      if (!port.empty()) ports.push_back({each.line, "--rdzv_endpoint", port});
    }
  }
  const auto variable = script.variables.find("MASTER_PORT");
  if (ports.empty() && variable != script.variables.end() && variable->second.exported)
    ports.push_back({variable->second.line, "MASTER_PORT", variable->second.value});
  return ports;
}

// Returns the smallest port that a text can give: a number, or N in "$(($SLURM_JOB_ID % 1000 +
// N))".
std::optional<int> least_port(const std::string& text) {
  if (const auto number = number_of(text)) return number;
  const std::string plain = without_marks(text);
  std::optional<int> base;
  for (std::size_t plus = plain.find('+'); plus != std::string::npos;
       plus = plain.find('+', plus + 1)) {
    std::size_t to = plus + 1;
    while (to < plain.size() && plain[to] == ' ')
      ++to;
    const std::size_t from = to;
    while (to < plain.size() && plain[to] >= '0' && plain[to] <= '9')
      ++to;
    if (const auto number = number_of(std::string_view(plain).substr(from, to - from)))
      base = number;
  }
  if (base) return base;
  // The base may come first, as in "$((10000 + ...))".
  const std::size_t opens = plain.find("((");
  if (opens == std::string::npos || plain.find('+') == std::string::npos) return std::nullopt;
  std::size_t to = opens + 2;
  while (to < plain.size() && plain[to] == ' ')
    ++to;
  const std::size_t from = to;
  while (to < plain.size() && plain[to] >= '0' && plain[to] <= '9')
    ++to;
  return number_of(std::string_view(plain).substr(from, to - from));
}

}  // namespace

// Measured: of two jobs with the same port on the same nodes, one died with a misleading
// "connection refused".
void look_fixed_port(const JobScript& script, const CheckFacts& /*facts*/, Findings& found) {
  // No other job can share the node then.
  if (setting(script, "exclusive") != nullptr) return;
  std::set<std::string> told;
  for (const Port& each : ports_of(script)) {
    const auto port = number_of(each.text);
    if (port && *port != 0 && told.insert(each.text).second)
      found.add(each.line, fmt::format("{} is always {}", each.where, *port),
                "two jobs on one node meet there: 'address already in use', or ranks of both in "
                "one world",
                "write $((10000 + SLURM_JOB_ID % 20000)), or --exclusive");
  }
}

// The kernel may have given such a port to any outgoing connection.
void look_ephemeral_port(const JobScript& script, const CheckFacts& facts, Findings& found) {
  std::set<std::string> told;
  for (const Port& each : ports_of(script)) {
    const auto port = least_port(each.text);
    if (port && *port >= facts.ephemeral_port_low && *port < 65536 && told.insert(each.text).second)
      found.add(
          each.line, fmt::format("{} is {} or more", each.where, *port),
          fmt::format("from {} on the kernel gives ports to any connection, so it may be taken",
                      facts.ephemeral_port_low),
          fmt::format("take one below {}", facts.ephemeral_port_low));
  }
}

// Loopback and bridges of virtual machines and containers reach no other node.
void look_interface_name(const JobScript& script, const CheckFacts& /*facts*/, Findings& found) {
  if (nodes_of(script).value_or(1) < 2) return;
  for (const std::string_view name : {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"}) {
    const auto variable = script.variables.find(name);
    if (variable == script.variables.end()) continue;
    for (const std::string& each : split(variable->second.value, ',')) {
      const std::string nic = each.starts_with("=") ? each.substr(1) : each;
      if (nic == "lo" || nic.starts_with("docker") || nic.starts_with("virbr"))
        found.add(Severity::error, variable->second.line,
                  fmt::format("{}={} leads to no other node", name, printable(nic, 40)),
                  "this interface is a node's own",
                  "name the interface that connects the nodes, see 'ip -br address'");
    }
  }
}

}  // namespace lockstep::slurm
