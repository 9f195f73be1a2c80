// lockstep cloud check: tests keys, rights, quotas and images of each provider. `cloud selftest` is
// in cloud_selftest.cc.
#include "cli/cloud_selftest.h"
#include "cli/on_demand.h"
#include "cli/rent_tables.h"
#include "cli/subcommand.h"
#include "cli/swept.h"
#include "codec/json.h"

#include <fmt/core.h>

#include <cstdio>
#include <utility>

namespace lockstep::cli {
namespace {

using cloud::Finding;

struct Checked {
  cloud::Provider* provider = nullptr;
  std::vector<Finding> findings = {};
};

const char* kind_word(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::good:
      return "good";
    case Finding::Kind::note:
      return "note";
    case Finding::Kind::bad:
      break;
  }
  return "bad";
}

// Checks the named providers, or all if there are no names. Fails only if the user stops the
// command: a provider that fails is a finding.
Result<std::vector<Checked>> check_all(rent::OnDemand& world,
                                       const std::vector<std::string>& names) {
  std::vector<Checked> checked;
  for (const auto& provider : world.providers().all()) {
    const std::string name(provider->traits().name);
    if (!names.empty() && std::find(names.begin(), names.end(), name) == names.end()) continue;
    checked.push_back({.provider = provider.get()});
  }
  // Build the jobs only now: they keep references into `checked`, which must not grow any more.
  std::vector<rent::Asking::Job> jobs;
  for (Checked& one : checked) {
    // Missing credentials are only a note: few users have accounts at all providers.
    if (const Status keys = one.provider->keys(); !keys) {
      one.findings.push_back(
          {.kind = keys.error().code == Errc::not_found ? Finding::Kind::note : Finding::Kind::bad,
           .what = keys.error().message,
           .hint = keys.error().hint});
      continue;
    }
    jobs.push_back({one.provider->traits().name,
                    [&one](cloud::Web& web) { one.findings = one.provider->check(web); }});
  }
  rent::Asking(world.web(), std::move(jobs))
      .wait(waits_for(cloud_check_table().program, "what our keys may do there"));
  LOCKSTEP_TRY(world.signals().check());
  return checked;
}

void print_checked(const std::vector<Checked>& checked) {
  for (const Checked& one : checked) {
    std::puts(std::string(one.provider->traits().title).c_str());
    for (const Finding& finding : one.findings) {
      std::puts(fmt::format("  {:<4}  {}", kind_word(finding.kind), finding.what).c_str());
      if (!finding.hint.empty()) std::puts(fmt::format("        {}", finding.hint).c_str());
    }
  }
}

nlohmann::ordered_json checked_json(const std::vector<Checked>& checked) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Checked& one : checked) {
    nlohmann::ordered_json findings = nlohmann::ordered_json::array();
    for (const Finding& finding : one.findings)
      findings.push_back(
          {{"kind", kind_word(finding.kind)}, {"what", finding.what}, {"hint", finding.hint}});
    rows.push_back({{"provider", one.provider->traits().name},
                    {"keys", one.provider->keys().has_value()},
                    {"findings", std::move(findings)}});
  }
  return rows;
}

// Returns ok if at least one provider has credentials and no finding is bad.
Result<ExitCode> check_clouds(const Call& call, Swept& swept) {
  CloudCheckOptions options;
  fill(cloud_check_table(), call.parsed, options);
  LOCKSTEP_TRY_ASSIGN(rent::OnDemand* const world, swept.open());
  // Refuse unknown names before anything is asked. with_keys() words that error.
  for (const std::string& name : call.parsed.names)
    if (world->providers().find(name) == nullptr)
      return Failure(world->providers().with_keys({name}).error());
  swept.begin();
  LOCKSTEP_TRY_ASSIGN(const auto checked, check_all(*world, call.parsed.names));
  if (options.json)
    std::puts(codec::print_json(checked_json(checked)).c_str());
  else
    print_checked(checked);
  bool usable = false;
  bool broken = false;
  for (const Checked& one : checked) {
    if (one.provider->keys()) usable = true;
    for (const Finding& finding : one.findings)
      broken = broken || finding.kind == Finding::Kind::bad;
  }
  return usable && !broken ? ExitCode::ok : ExitCode::failed;
}

Result<ExitCode> cloud_check_command(const Call& call) {
  return run_swept(call, cloud_check_table(), check_clouds);
}

constexpr Subcommand kCloudCheck{
    .name = "check",
    .summary = "check keys, rights, quotas and images of each provider",
    .table = cloud_check_table,
    .run = cloud_check_command,
    .signals = Signals::blocked};
constexpr Subcommand kCloudSelftest{.name = "selftest",
                                    .summary = "rent one machine as a test, and report each step",
                                    .table = cloud_selftest_table,
                                    .run = cloud_selftest_command,
                                    .signals = Signals::blocked};
constexpr const Subcommand* kCloudRows[] = {&kCloudCheck, &kCloudSelftest};

}  // namespace

extern constinit const Subcommand kCloud{
    .name = "cloud", .summary = "check the providers of machines on demand", .rows = kCloudRows};

}  // namespace lockstep::cli
