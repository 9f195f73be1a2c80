// lockstep check: finds mistakes in a job before it is queued.
#include "cli/check_options.h"
#include "cli/subcommand.h"
#include "codec/json.h"
#include "slurm/check_run.h"

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::cli {
namespace {

// Returns the output of --json. Programs read the member names: never rename one.
nlohmann::ordered_json json_of(const slurm::CheckReport& report) {
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  for (const slurm::Finding& each : report.findings)
    findings.push_back({{"severity", each.severity == slurm::Severity::error ? "error" : "warning"},
                        {"lint", each.lint},
                        {"file", each.file},
                        {"line", each.line},
                        {"what", each.what},
                        {"why", each.why},
                        {"fix", each.fix}});
  const slurm::TestOnly& test = report.test_only;
  return {{"findings", std::move(findings)},
          {"slurm",
           {{"asked", test.asked},
            {"accepted", test.accepted},
            {"why_not", test.why_not},
            {"start", test.start},
            {"nodes", test.nodes}}}};
}

void print(const slurm::CheckReport& report, bool asks_slurm) {
  std::size_t errors = 0;
  for (const slurm::Finding& each : report.findings) {
    std::puts(slurm::text_of(each).c_str());
    if (each.severity == slurm::Severity::error) ++errors;
  }
  const std::size_t warnings = report.findings.size() - errors;
  const slurm::TestOnly& test = report.test_only;
  if (report.findings.empty()) {
    std::puts("nothing is wrong, as far as can be seen here");
  } else {
    std::puts(fmt::format("{} error{}, {} warning{}", errors, errors == 1 ? "" : "s", warnings,
                          warnings == 1 ? "" : "s")
                  .c_str());
  }
  if (test.accepted && !test.start.empty())
    std::puts(fmt::format("Slurm takes it: expected start {}{}{}", test.start,
                          test.nodes.empty() ? "" : " on ", test.nodes)
                  .c_str());
  // Mention a missing answer of sbatch: silence would look like Slurm's consent.
  if (asks_slurm && !test.asked && !test.why_not.empty())
    std::puts(fmt::format("Slurm was not asked: {}", test.why_not).c_str());
}

// Runs the checks and fills `options`. Errors: invalid_input, or a named file cannot be read.
Result<slurm::CheckReport> check(const Call& call, CheckOptions& options) {
  fill(check_table(), call.parsed, options);
  slurm::CheckRequest request;
  request.hostfiles = options.hostfiles;
  request.ds_configs = options.ds_configs;
  request.ask_slurm = !options.no_slurm;
  // The parser takes the first word for a script. It may also be `sbatch`, `submit` or a launcher,
  // so hand on all words together.
  std::vector<std::string> words;
  if (call.parsed.script) words.push_back(*call.parsed.script);
  words.insert(words.end(), call.parsed.script_args.begin(), call.parsed.script_args.end());
  if (words.empty() && request.hostfiles.empty() && request.ds_configs.empty())
    return fail(Errc::invalid_input, "no script or file is given",
                "write lockstep check SCRIPT, or lockstep check --hostfile FILE");
  LOCKSTEP_TRY(slurm::read_check_words(words, request));
  return slurm::run_check(request);
}

Result<ExitCode> check_command(const Call& call) {
  CheckOptions options;
  LOCKSTEP_TRY_ASSIGN(const slurm::CheckReport report, check(call, options));
  if (options.json) {
    std::puts(codec::print_json(json_of(report)).c_str());
  } else {
    print(report, !options.no_slurm);
  }
  return report.has_errors() ? ExitCode::failed : ExitCode::ok;
}

}  // namespace

extern constinit const Subcommand kCheck{.name = "check",
                                         .summary = "find mistakes in a job before Slurm queues it",
                                         .table = check_table,
                                         .run = check_command,
                                         .signals = Signals::children,
                                         .fails_with = always(ExitCode::usage)};

}  // namespace lockstep::cli
