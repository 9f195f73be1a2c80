// lockstep doctor: names problems of this node, for training and for building extensions. Tells
// all of them at once, with a cure for each.
#include "setup/doctor.h"

#include "cli/doctor_options.h"
#include "cli/subcommand.h"
#include "codec/json.h"
#include "hosts/check_findings.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

namespace lockstep::cli {
namespace {

// Returns the findings of `cluster check` for this node and the doctor's own. Findings that stop a
// job or a build come first, so the first one decides the exit code.
std::vector<setup::Finding> all_findings(const setup::DoctorFacts& facts) {
  std::vector<setup::Finding> findings;
  hosts::HostCheck here{.name = facts.host.host, .where = "local", .facts = facts.host};
  // A stand-in that keeps the check silent about Python: the doctor's own findings say more.
  here.facts.python = {.path = "python3"};
  for (hosts::Finding& each : hosts::findings_of({here}))
    findings.push_back({each.weight == hosts::Finding::Weight::trouble, each.what,
                        std::move(each.text), std::move(each.cure)});
  for (setup::Finding& each : setup::findings_of(facts))
    findings.push_back(std::move(each));
  std::stable_partition(findings.begin(), findings.end(),
                        [](const setup::Finding& each) { return each.trouble; });
  return findings;
}

const char* weight_name(const setup::Finding& finding) {
  return finding.trouble ? "trouble" : "warning";
}

void print_text(const setup::DoctorFacts& facts, const std::vector<setup::Finding>& findings) {
  std::string text = setup::facts_text(facts);
  for (const setup::Finding& each : findings)
    text += fmt::format("{}: {}; {}\n", weight_name(each), each.text, each.cure);
  if (findings.empty()) text += "nothing stands in the way of a job or a build\n";
  std::fputs(text.c_str(), stdout);
}

void print_json(const setup::DoctorFacts& facts, const std::vector<setup::Finding>& findings) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const setup::Finding& each : findings)
    rows.push_back({{"weight", weight_name(each)},
                    {"what", each.what},
                    {"text", each.text},
                    {"cure", each.cure}});
  const nlohmann::ordered_json json{{"facts", setup::facts_json(facts)},
                                    {"findings", std::move(rows)}};
  std::puts(codec::print_json(json).c_str());
}

Result<ExitCode> doctor_command(const Call& call) {
  DoctorOptions options;
  fill(doctor_table(), call.parsed, options);
  const setup::DoctorFacts facts = setup::examine(options.python);
  const auto findings = all_findings(facts);
  if (options.json)
    print_json(facts, findings);
  else
    print_text(facts, findings);
  return !findings.empty() && findings.front().trouble ? ExitCode::failed : ExitCode::ok;
}

}  // namespace

extern constinit const Subcommand kDoctor{.name = "doctor",
                                          .summary = "find problems of this node, and their cures",
                                          .table = doctor_table,
                                          .run = doctor_command,
                                          .signals = Signals::children};

}  // namespace lockstep::cli
