// A fixture with a rental in a simulated world. Only the failures that a test asks for happen.
#pragma once

#include "cloud/reconcile.h"
#include "cloud/rent_provider_testing.h"
#include "cloud/renting.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cloud::testing {

// Returns rules without random failures.
inline SimRules kind_rules() {
  SimRules rules;
  for (double* part : {&rules.lose_answer, &rules.lose_question, &rules.lose_end, &rules.lose_list,
                       &rules.silent_prepare, &rules.empty_zone, &rules.die_booting, &rules.taken,
                       &rules.kill, &rules.stop, &rules.full, &rules.burst, &rules.others})
    *part = 0;
  return rules;
}

class HookedProvider : public SimProvider {
 public:
  using SimProvider::SimProvider;

  tl::expected<LaunchCall, LaunchOutcome> prepare(Web& web, const LaunchSpec& spec) override {
    ++prepared;
    if (on_prepare) on_prepare();
    return silent ? tl::make_unexpected(LaunchOutcome{.message = "no answer"})
                  : SimProvider::prepare(web, spec);
  }
  LaunchOutcome launch(Web& web, const LaunchSpec& spec, const LaunchCall& call) override {
    specs.push_back(spec);
    if (on_launch)
      if (auto outcome = on_launch(spec)) return *outcome;
    return SimProvider::launch(web, spec, call);
  }
  LaunchOutcome resolve(Web& web, const LaunchSpec& spec, const LaunchCall& call,
                        std::int64_t asked_ms) override {
    if (on_resolve) return on_resolve();
    return SimProvider::resolve(web, spec, call, asked_ms);
  }
  Status end(Web& web, const std::vector<Machine>& machines) override {
    if (deaf) return fail(deaf_with, "503");
    ++ends;
    return SimProvider::end(web, machines);
  }

  int prepared = 0;
  int ends = 0;  // accepted terminations
  bool silent = false;
  bool deaf = false;  // terminates nothing
  Errc deaf_with = Errc::unavailable;
  std::vector<LaunchSpec> specs;
  std::function<void()> on_prepare;
  std::function<std::optional<LaunchOutcome>(const LaunchSpec&)> on_launch;
  std::function<LaunchOutcome()> on_resolve;
};

inline Offer place(const std::string& region, const std::string& zone, double usd) {
  Offer offer{.provider = "sim", .region = region, .zone = zone, .type = "g1", .gpu = "L4"};
  offer.gpus = 1;
  offer.price = {.per_hour = static_cast<Micros>(usd * 1e6), .source = Price::Source::live};
  return offer;
}

inline LaunchOutcome refusal(Refusal what, const std::string& code) {
  return {.kind = LaunchOutcome::Kind::refused, .refusal = what, .code = code, .message = "no"};
}

class RentingCase : public ::testing::Test {
 protected:
  RentingCase() : RentingCase(SimKind::token) {}
  explicit RentingCase(SimKind kind) : provider(world, "sim", kind) {
    rental = {.id = "intent", .cluster = "c", .owner = "me"};
    rental.wish.gpu = *parse_gpu_wish("L4:1");
    rental.terms.lifetime_s = 6LL * 3600;
    rental.created_ms = world.now;
  }

  Renting& renting(const RentRules& rules = {}) {
    if (!with_rules)
      with_rules.emplace(RentParts{journal,
                                   web,
                                   ending,
                                   [this](std::string_view) { return keys ? &provider : nullptr; },
                                   {},
                                   [this](const Rental& one) {
                                     return before_call ? before_call(one) : Status();
                                   }},
                         rules);
    return *with_rules;
  }
  Status rent(const Verdict& verdict = {}) {
    return renting().rent(
        rental,
        [this] {
          ++passes;
          return catalog;
        },
        [verdict](Rental&) { return verdict; });
  }
  Reconciled swept(const std::function<bool(const std::string&)>& try_lock =
                       [](const std::string&) { return true; }) {
    auto done = reconcile({journal, ending, {&provider}, "me", try_lock, [](const auto&) {}});
    EXPECT_TRUE(done);
    return done ? *done : Reconciled{};
  }
  Rental kept() { return journal.since(0)->front(); }
  void fill_disk(bool full) { world.rules.full = full ? 1 : 0, world.pass_time(30'000); }

  SimWorld world{1, kind_rules()};
  HookedProvider provider;
  bool keys = true;
  SimWeb web{world, true};
  SimWeb ending{world, false};
  Journal journal{std::make_unique<SimRecords>(world)};
  std::optional<Renting> with_rules;
  Catalog catalog{.offers = {place("r1", "r1-a", 1.0), place("r1", "r1-b", 1.1)}, .silent = {}};
  Rental rental;
  int passes = 0;
  std::function<Status(const Rental&)> before_call;
};

}  // namespace lockstep::cloud::testing
