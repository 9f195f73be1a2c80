// A world for tests of renting: a provider with machines, a provider without credentials, and a
// network that answers with this machine's address. The journal lies in a temporary folder.
#pragma once

#include "cloud/scripted_web_testing.h"
#include "rent/on_demand.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::rent::testing {

// A provider that terminates machines at once.
class FakeProvider : public cloud::Provider {
 public:
  explicit FakeProvider(std::string_view name) {
    traits_ = {.name = name, .title = name, .has_spot = false, .keys_hint = "FAKE_KEY"};
    traits_.port_rule = cloud::PortRule::of_region;
  }

  const cloud::Traits& traits() const override { return traits_; }
  Status keys() override {
    if (has_keys) return {};
    return fail(no_keys, "no key is found");
  }
  Result<std::string> account(cloud::Web& /*web*/) override { return "fake"; }
  cloud::Catalog offers(cloud::Web& /*web*/, const cloud::OfferQuery& query) override {
    queries.push_back(query);
    return catalog;
  }
  tl::expected<cloud::LaunchCall, cloud::LaunchOutcome> prepare(
      cloud::Web& /*web*/, const cloud::LaunchSpec& /*spec*/) override {
    return tl::make_unexpected(no_room);
  }
  cloud::LaunchOutcome launch(cloud::Web& /*web*/, const cloud::LaunchSpec& /*spec*/,
                              const cloud::LaunchCall& /*call*/) override {
    return no_room;
  }
  cloud::LaunchOutcome resolve(cloud::Web& /*web*/, const cloud::LaunchSpec& /*spec*/,
                               const cloud::LaunchCall& /*call*/,
                               std::int64_t /*asked_ms*/) override {
    return no_room;
  }
  Result<cloud::Listing> list(cloud::Web& /*web*/, const cloud::ListQuery& /*query*/) override {
    ++lists;
    return cloud::Listing{.machines = machines, .unheard = {}};
  }
  Status end(cloud::Web& /*web*/, const std::vector<cloud::Machine>& ended) override {
    ++ends;
    if (deaf) return fail(Errc::unavailable, "503");
    for (const cloud::Machine& one : ended)
      std::erase_if(machines, [&](const cloud::Machine& other) { return other.id == one.id; });
    return {};
  }
  Status allow(cloud::Web& /*web*/, const std::string& region, const std::string& cidrs) override {
    if (!allows) return fail(Errc::denied, "no right to change rules");
    allowed.push_back(region + " " + cidrs);
    return {};
  }
  Status clean(cloud::Web& /*web*/) override {
    if (!cleans) return fail(Errc::denied, "no right to remove keys");
    return {};
  }
  std::vector<cloud::Finding> check(cloud::Web& /*web*/) override { return {}; }

  void set_rule(cloud::PortRule rule) { traits_.port_rule = rule; }
  void set_spot(bool spot) { traits_.has_spot = spot; }

  Result<std::string> host_key(cloud::Web& /*web*/, const cloud::Machine& /*machine*/) override {
    return told_key;
  }
  void know_host_keys(std::string key) {
    traits_.knows_host_keys = true;
    told_key = std::move(key);
  }

  bool has_keys = true;
  Errc no_keys = Errc::not_found;  // the error without keys
  bool allows = true;
  bool cleans = true;
  bool deaf = false;  // terminates nothing
  int ends = 0;       // calls of end()
  std::string told_key;
  cloud::Catalog catalog;
  std::vector<cloud::Machine> machines;
  std::vector<cloud::OfferQuery> queries;
  std::vector<std::string> allowed;  // "REGION CIDRS" of each allow()
  int lists = 0;
  cloud::LaunchOutcome no_room{.kind = cloud::LaunchOutcome::Kind::refused,
                               .refusal = cloud::Refusal::next_zone,
                               .code = "Full",
                               .message = "no room"};

 private:
  cloud::Traits traits_;
};

class FakeWorld : public ::testing::Test {
 protected:
  FakeWorld() {
    std::string name = ::testing::TempDir() + "worldXXXXXX";
    folder = mkdtemp(name.data());
    setenv("XDG_STATE_HOME", folder.c_str(), 1);
    world = make_world();
  }
  ~FakeWorld() override {
    world.reset();
    unsetenv("XDG_STATE_HOME");
    std::filesystem::remove_all(folder);
  }

  // Makes a world of new fakes in this test's folder: `one`, `two` and `web` are of the newest
  // world.
  std::unique_ptr<OnDemand> make_world() {
    auto journal = cloud::Journal::open(folder + "/lockstep");
    auto signals = StopSignals::open();
    std::vector<std::unique_ptr<cloud::Provider>> all;
    for (const char* each : {"one", "two"})
      all.push_back(std::make_unique<FakeProvider>(each));
    one = static_cast<FakeProvider*>(all[0].get());
    two = static_cast<FakeProvider*>(all[1].get());
    two->has_keys = false;
    const auto script = [this](const cloud::Question&) {
      return cloud::testing::answered(200, address);
    };
    auto main_web = std::make_unique<cloud::testing::ScriptedWeb>(script);
    web = main_web.get();
    cloud::Ground ground{.env = [this](std::string_view name) { return variable(name); },
                         .home = folder,
                         .cache = folder + "/cache",
                         .state = folder + "/lockstep",
                         .owner = journal->owner().value()};
    return std::make_unique<OnDemand>(
        OnDemand::Parts{.ground = std::move(ground),
                        .journal = std::move(*journal),
                        .providers = ProviderSet(std::move(all)),
                        .signals = std::move(*signals),
                        .web = std::move(main_web),
                        .side = SideWeb(std::make_unique<cloud::testing::ScriptedWeb>(script))});
  }

  // Returns a rental with a running machine at provider `one`, and keeps the rental in the journal.
  cloud::Rental rented(const std::string& cluster) {
    cloud::Rental rental{.id = "intent-" + cluster, .cluster = cluster, .owner = world->owner()};
    rental.terms.allow_from = "198.51.100.7/32";
    rental.terms.own_address = true;
    rental.created_ms = web->now;
    const cloud::Machine machine{.id = "i-" + cluster,
                                 .region = "r1",
                                 .state = cloud::Machine::State::running,
                                 .address = "192.0.2.1",
                                 .intent = rental.id,
                                 .owner = rental.owner};
    one->machines.push_back(machine);
    cloud::Attempt attempt{
        .offer = {}, .state = cloud::Attempt::State::running, .machines = {{.machine = machine}}};
    attempt.offer.provider = "one";
    attempt.offer.region = "r1";
    rental.attempts.push_back(attempt);
    EXPECT_TRUE(world->journal().keep(rental));
    return rental;
  }
  cloud::Rental kept(const std::string& cluster) {
    // The test may have given its world away.
    auto journal = cloud::Journal::open(folder + "/lockstep");
    auto rental = journal->of_cluster(cluster);
    EXPECT_TRUE(rental);
    return rental ? *rental : cloud::Rental{};
  }

  std::optional<std::string> variable(std::string_view name) const {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  }

  std::string folder;
  std::map<std::string, std::string, std::less<>> variables;  // the providers' environment
  std::string address = "198.51.100.7\n";  // the answer to the question for this machine's address
  FakeProvider* one = nullptr;
  FakeProvider* two = nullptr;  // without credentials
  cloud::testing::ScriptedWeb* web = nullptr;
  std::unique_ptr<OnDemand> world;
};

}  // namespace lockstep::rent::testing
