#include "hosts/check_report.h"

#include "base/columns.h"
#include "base/exit_codes.h"
#include "base/text.h"
#include "host/facts_json.h"
#include "hosts/words.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace lockstep::hosts {
namespace {

using host::Facts;

constexpr int kTrouble = 1;

std::string milliseconds_text(double value) {
  const double size = std::abs(value);
  if (size >= 10'000) return fmt::format("{:.0f} s", value / 1000);
  return size >= 10 ? fmt::format("{:.0f} ms", value) : fmt::format("{:.1f} ms", value);
}

std::string clock_text(const HostCheck& check) {
  // An offset within the error of the measurement says nothing. Printing such a number would
  // suggest a difference.
  if (std::abs(check.clock_ahead_ms) <= check.clock_error_ms) return "as ours";
  return fmt::format("{}{}", check.clock_ahead_ms > 0 ? "+" : "",
                     milliseconds_text(check.clock_ahead_ms));
}

// A cgroup quota below the number of CPUs is the true limit of a container.
std::string cpus_text(const Facts& facts) {
  if (facts.cpu_quota > 0 && facts.cpu_quota < static_cast<double>(facts.cpus))
    return fmt::format("{:.3g} of {}", facts.cpu_quota, facts.cpus);
  return std::to_string(facts.cpus);
}

// The cgroup limit may exceed the memory of the machine, so take the smaller number.
std::int64_t usable_memory(const Facts& facts) {
  return facts.memory_limit > 0 ? std::min(facts.memory_limit, facts.memory) : facts.memory;
}

// Returns "8 x NVIDIA H100 80GB HBM3", with equal neighbors counted together.
std::string gpus_text(const Facts& facts, bool with_memory) {
  std::vector<std::pair<std::string, int>> kinds;
  for (const host::GpuFacts& gpu : facts.gpus) {
    std::string kind = printable(gpu.name.empty() ? gpu.vendor : gpu.name);
    if (with_memory && gpu.memory > 0) kind += fmt::format(" ({})", memory_text(gpu.memory));
    if (!kinds.empty() && kinds.back().first == kind)
      ++kinds.back().second;
    else
      kinds.emplace_back(std::move(kind), 1);
  }
  std::vector<std::string> parts;
  parts.reserve(kinds.size());
  for (const auto& [kind, count] : kinds)
    parts.push_back(fmt::format("{} x {}", count, kind));
  return parts.empty() ? "none" : join(parts, ", ");
}

// Paths and versions come from the host. printable() keeps control characters of a hostile host
// away from the terminal.
std::string space_text(const host::Space& space) {
  if (!space.there) return printable(space.path) + " is not there";
  return fmt::format("{} {} free of {}", printable(space.path), memory_text(space.free),
                     memory_text(space.total));
}

std::string program_text(const char* name, const host::ProgramFacts& program) {
  if (program.path.empty()) return fmt::format("no {}", name);
  return fmt::format("{} {}", name, printable(program.version));
}

std::string python_text(const host::ProgramFacts& python) {
  if (python.path.empty()) return "none in PATH";
  return fmt::format("{} ({})", printable(python.version), printable(python.path));
}

std::string files_text(std::int64_t limit) {
  return limit == INT64_MAX ? "unlimited" : std::to_string(limit);
}

// Returns the facts of one host, one fact per line.
std::string card(const HostCheck& check) {
  const Facts& facts = check.facts;
  std::string text =
      fmt::format("{}: reached in {}\n", check.name, milliseconds_text(check.latency_ms));
  const auto line = [&text](const char* name, const std::string& words) {
    text += fmt::format("  {:<9} {}\n", name, words);
  };
  line("user",
       fmt::format("{} ({}) on {}", printable(facts.user), facts.uid, printable(facts.host)));
  line("system", fmt::format("{}, Linux {}, {}", printable(facts.os), printable(facts.kernel),
                             printable(facts.arch)));
  line("CPUs", cpus_text(facts));
  line("memory", fmt::format("{}, {} available{}", memory_text(facts.memory),
                             memory_text(facts.memory_available),
                             facts.memory_limit > 0
                                 ? fmt::format(", {} for us", memory_text(usable_memory(facts)))
                                 : ""));
  line("disk", fmt::format("{}; {}; {}", space_text(facts.home), space_text(facts.tmp),
                           space_text(facts.shm)));
  line("GPUs", gpus_text(facts, true) +
                   (facts.driver.empty() ? "" : ", driver " + printable(facts.driver)));
  line("Python", python_text(facts.python));
  if (!facts.project_python.path.empty())
    line("project", "Python " + python_text(facts.project_python));
  line("programs", fmt::format("{}, {}, {}", program_text("rsync", facts.rsync),
                               program_text("git", facts.git), program_text("uv", facts.uv)));
  line("clock", fmt::format("{} (to within {})", clock_text(check),
                            milliseconds_text(check.clock_error_ms)));
  line("files", fmt::format("{} open at once, at most {}", files_text(facts.open_files),
                            files_text(facts.open_files_hard)));
  return text;
}

constexpr std::size_t kColumns = 11;
using Row = std::array<std::string, kColumns>;

Row row_of(const HostCheck& check) {
  if (!check.error.empty()) return {check.name, "-"};
  const Facts& facts = check.facts;
  return {check.name,
          milliseconds_text(check.latency_ms),
          printable(facts.user),
          printable(facts.host, 20),
          printable(facts.arch),
          cpus_text(facts),
          memory_text(usable_memory(facts)),
          memory_text(facts.home.free),
          facts.python.path.empty() ? "-" : printable(facts.python.version),
          clock_text(check),
          facts.gpus.empty() ? "-" : gpus_text(facts, false)};
}

// Returns the facts of several hosts, one host per line.
std::string table(const std::vector<HostCheck>& hosts) {
  std::vector<Row> rows = {{"NODE", "REACHED", "USER", "HOST", "ARCH", "CPUS", "MEMORY", "FREE",
                            "PYTHON", "CLOCK", "GPUS"}};
  for (const HostCheck& check : hosts)
    rows.push_back(row_of(check));
  return columns_text(rows);
}

const char* weight_name(Finding::Weight weight) {
  return weight == Finding::Weight::trouble ? "trouble" : "warning";
}

std::string repairs_text(const CheckReport& report) {
  std::string text;
  const auto add = [&text](const std::string& where, const std::string& what) {
    text += fmt::format("removed {}: {}\n", where, printable(what));
  };
  for (const std::string& what : report.repaired_here)
    add("here", what);
  for (const HostCheck& check : report.hosts)
    for (const std::string& what : check.repaired)
      add(check.name, what);
  return text.empty() && report.repairs ? "there was nothing to repair\n" : text;
}

}  // namespace

std::string report_text(const CheckReport& report) {
  const bool one = report.hosts.size() == 1;
  std::string text;
  if (!one) text = table(report.hosts);
  if (one && report.hosts[0].error.empty()) text = card(report.hosts[0]);
  text += repairs_text(report);
  for (const HostCheck& check : report.hosts)
    if (!check.error.empty()) text += fmt::format("not reached: {}\n", check.error);
  for (const Finding& finding : report.findings) {
    text += fmt::format("{}: ", weight_name(finding.weight));
    if (!one) text += names_text(finding.nodes) + ": ";
    text += fmt::format("{}; {}\n", finding.text, finding.cure);
  }
  if (report_code(report) == 0) text += "nothing stands in the way of a job\n";
  return text;
}

nlohmann::ordered_json report_json(const CheckReport& report) {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (const HostCheck& check : report.hosts) {
    nlohmann::ordered_json node{
        {"node", check.name}, {"target", check.where}, {"reached", check.error.empty()}};
    if (!check.error.empty()) {
      node["error"] = check.error;
    } else {
      node["latency_ms"] = check.latency_ms;
      node["clock"] = {{"ahead_ms", check.clock_ahead_ms}, {"error_ms", check.clock_error_ms}};
      node["facts"] = host::facts_json(check.facts);
    }
    // Without --repair the key is absent: an empty list would claim that a repair had run.
    if (report.repairs) node["repaired"] = check.repaired;
    nodes.push_back(std::move(node));
  }
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  for (const Finding& finding : report.findings)
    findings.push_back({{"weight", weight_name(finding.weight)},
                        {"what", finding.what},
                        {"nodes", finding.nodes},
                        {"text", finding.text},
                        {"cure", finding.cure}});
  nlohmann::ordered_json json{{"nodes", std::move(nodes)}, {"findings", std::move(findings)}};
  if (report.repairs) json["repaired_here"] = report.repaired_here;
  return json;
}

int report_code(const CheckReport& report) {
  // An unreachable host outweighs findings: nothing is known about that host.
  for (const HostCheck& check : report.hosts)
    if (!check.error.empty()) return kExitNotReached;
  for (const Finding& finding : report.findings)
    if (finding.weight == Finding::Weight::trouble) return kTrouble;
  return 0;
}

}  // namespace lockstep::hosts
