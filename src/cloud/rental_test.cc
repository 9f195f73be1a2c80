#include "cloud/rental.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace lockstep::cloud {
namespace {

Machine a_machine() {
  return {.id = "i-1",
          .name = "ls-x",
          .region = "r1",
          .zone = "r1-a",
          .type = "g1",
          .state = Machine::State::unhealthy,
          .address = "192.0.2.1",
          .port = 2222,
          .user = "ubuntu",
          .private_address = "10.0.0.1",
          .launched_ms = 11,
          .ended_ms = 12,
          .why = "Server.SpotInstanceTermination",
          .taken = true,
          .no_room = true,
          .intent = "intent",
          .owner = "me",
          .cluster = "c",
          .ends_ms = 13,
          .token = "intent-1",
          .per_hour = 14,
          .node = 3};
}

Offer an_offer() {
  return {.provider = "aws",
          .region = "r1",
          .zone = "r1-a",
          .zone_id = "z1",
          .type = "g1",
          .gpu = "L4",
          .gpus = 1,
          .gpu_memory_gb = 24,
          .vcpus = 4,
          .memory_gb = 16,
          .min_disk_gb = 75,
          .disk_gb = 10,
          .arch = "arm64",
          .spot = true,
          .most_nodes = 7,
          .price = {.per_hour = 21, .source = Price::Source::cached, .as_of_ms = 22},
          .disk_per_gb_month = 23,
          .address_per_hour = 24,
          .extra_per_hour = 25,
          .stock = Stock::in_stock,
          .quota = Quota{.limit = 26, .needed = 27, .unit = "vCPUs", .link = "https://x"},
          .ending = Ending::with_guard,
          .not_for_sale = "why",
          .note = "note",
          .floor_price = true};
}

Rental a_rental() {
  Rental rental{.id = "intent", .cluster = "c", .owner = "me"};
  rental.wish = {.gpu = *parse_gpu_wish("A100:8"),
                 .nodes = 2,
                 .spot = SpotWish::prefer,
                 .providers = {"aws"},
                 .regions = {"r1", "r2"},
                 .max_price = 31,
                 .disk_gb = 200,
                 .guarded = true,
                 .archs = {"arm64"},
                 .types = {"g6.xlarge"}};
  rental.wish.gpu.at_least = true;
  rental.terms = {.lifetime_s = 41,
                  .autostop_s = 42,
                  .hold_s = 43,
                  .budget = 44,
                  .allow_from = "192.0.2.7/32",
                  .image = "ami-1",
                  .guard = "host",
                  .guard_from = "203.0.113.9/32",
                  .own_address = true};
  rental.created_ms = 51;
  rental.ends_ms = 52;
  rental.wanted = true;
  rental.closed_ms = 53;
  rental.told_ms = 54;
  rental.user_data = "#cloud-config\n\"\x01\xff";
  rental.start_script = "#!/bin/sh\n";
  rental.public_key = "ssh-ed25519 AAAA";
  Attempt attempt{.number = 5, .node = 1, .count = 2, .offer = an_offer()};
  attempt.per_hour = 61;
  attempt.minimum_s = 62;
  attempt.call = {.region = "r1", .zone = "r1-a", .token = "t", .target = "T", .body = "B=1"};
  attempt.state = Attempt::State::running;
  attempt.asked_ms = 63;
  attempt.answered_ms = 64;
  attempt.ended_ms = 65;
  attempt.code = "code";
  attempt.message = "message";
  attempt.machines = {{.machine = a_machine(),
                       .node = 1,
                       .host_key = "ssh-ed25519 BBBB",
                       .since_ms = 66,
                       .end_ms = 67,
                       .gone_ms = 68}};
  rental.attempts = {attempt};
  return rental;
}

// Names every member. A new member does not compile until it is compared below, and then fails
// until rental_json.cc keeps it.
void expect_same(const Machine& a, const Machine& b) {
  const auto& [id, name, region, zone, type, state, address, port, user, private_address, launched,
               ended, why, taken, no_room, intent, owner, cluster, ends, token, per_hour, node] = a;
  EXPECT_EQ(std::tie(id, name, region, zone, type, state, address, port, user, private_address),
            std::tie(b.id, b.name, b.region, b.zone, b.type, b.state, b.address, b.port, b.user,
                     b.private_address));
  EXPECT_EQ(std::tie(launched, ended, why, taken, no_room, intent, owner, cluster, ends, token,
                     per_hour, node),
            std::tie(b.launched_ms, b.ended_ms, b.why, b.taken, b.no_room, b.intent, b.owner,
                     b.cluster, b.ends_ms, b.token, b.per_hour, b.node));
}

void expect_same(const Offer& a, const Offer& b) {
  const auto& [provider, region, zone, zone_id, type, gpu, gpus, gpu_memory, vcpus, memory,
               min_disk, disk, arch, spot, most_nodes, price, disk_price, address, extra, stock,
               quota, ending, not_for_sale, note, floor_price] = a;
  EXPECT_EQ(std::tie(provider, region, zone, zone_id, type, gpu, gpus, gpu_memory, vcpus, memory),
            std::tie(b.provider, b.region, b.zone, b.zone_id, b.type, b.gpu, b.gpus,
                     b.gpu_memory_gb, b.vcpus, b.memory_gb));
  EXPECT_EQ(std::tie(min_disk, disk, arch, spot, most_nodes, disk_price, address, extra, stock,
                     ending, not_for_sale, note, floor_price),
            std::tie(b.min_disk_gb, b.disk_gb, b.arch, b.spot, b.most_nodes, b.disk_per_gb_month,
                     b.address_per_hour, b.extra_per_hour, b.stock, b.ending, b.not_for_sale,
                     b.note, b.floor_price));
  EXPECT_EQ(std::tie(price.per_hour, price.source, price.as_of_ms),
            std::tie(b.price.per_hour, b.price.source, b.price.as_of_ms));
  ASSERT_TRUE(quota && b.quota);
  const auto& [limit, needed, unit, link] = *quota;
  EXPECT_EQ(std::tie(limit, needed, unit, link),
            std::tie(b.quota->limit, b.quota->needed, b.quota->unit, b.quota->link));
}

void expect_same(const Attempt& a, const Attempt& b) {
  const auto& [number, node, count, offer, per_hour, minimum, call, state, asked, answered, ended,
               code, message, machines] = a;
  EXPECT_EQ(std::tie(number, node, count, per_hour, minimum, state, asked, answered, ended, code,
                     message),
            std::tie(b.number, b.node, b.count, b.per_hour, b.minimum_s, b.state, b.asked_ms,
                     b.answered_ms, b.ended_ms, b.code, b.message));
  expect_same(offer, b.offer);
  const auto& [region, zone, token, target, body] = call;
  EXPECT_EQ(std::tie(region, zone, token, target, body),
            std::tie(b.call.region, b.call.zone, b.call.token, b.call.target, b.call.body));
  ASSERT_EQ(machines.size(), b.machines.size());
  const Held& other = b.machines.front();
  const auto& [machine, at, host_key, since, end, gone] = machines.front();
  expect_same(machine, other.machine);
  EXPECT_EQ(std::tie(at, host_key, since, end, gone),
            std::tie(other.node, other.host_key, other.since_ms, other.end_ms, other.gone_ms));
}

TEST(Rental, EveryMemberComesBack) {
  const Rental a = a_rental();
  const auto b = parse_rental(rental_json(a));
  ASSERT_TRUE(b);
  const auto& [id, cluster, owner, wish, terms, created, ends, wanted, closed, told, user_data,
               script, public_key, attempts] = a;
  EXPECT_EQ(std::tie(id, cluster, owner, created, ends, wanted, closed, told, script, public_key),
            std::tie(b->id, b->cluster, b->owner, b->created_ms, b->ends_ms, b->wanted,
                     b->closed_ms, b->told_ms, b->start_script, b->public_key));
  EXPECT_EQ(b->user_data,
            "#cloud-config\n\"\x01\xef\xbf\xbd");  // bytes that are not UTF-8 are replaced
  const auto& [gpu, nodes, spot, providers, regions, max_price, disk, guarded, archs, types] = wish;
  EXPECT_EQ(
      std::tie(nodes, spot, providers, regions, max_price, disk, guarded, archs, types),
      std::tie(b->wish.nodes, b->wish.spot, b->wish.providers, b->wish.regions, b->wish.max_price,
               b->wish.disk_gb, b->wish.guarded, b->wish.archs, b->wish.types));
  EXPECT_EQ(std::tie(gpu.name, gpu.kinds, gpu.count, gpu.at_least),
            std::tie(b->wish.gpu.name, b->wish.gpu.kinds, b->wish.gpu.count, b->wish.gpu.at_least));
  const auto& [lifetime, autostop, hold, budget, allow_from, image, guard, from, own] = terms;
  EXPECT_EQ(std::tie(lifetime, autostop, hold, budget, allow_from, image, guard, from, own),
            std::tie(b->terms.lifetime_s, b->terms.autostop_s, b->terms.hold_s, b->terms.budget,
                     b->terms.allow_from, b->terms.image, b->terms.guard, b->terms.guard_from,
                     b->terms.own_address));
  ASSERT_EQ(attempts.size(), b->attempts.size());
  expect_same(attempts.front(), b->attempts.front());
}

TEST(Rental, OnlyMachinesThatNeedAGuardLetItIn) {
  Terms terms{.allow_from = "192.0.2.7/32"};
  EXPECT_EQ(terms.allowed(Ending::with_guard), "192.0.2.7/32");
  terms.guard_from = "203.0.113.9/32";
  EXPECT_EQ(terms.allowed(Ending::with_guard), "192.0.2.7/32,203.0.113.9/32");
  EXPECT_EQ(terms.allowed(Ending::by_itself), "192.0.2.7/32");
  terms.guard_from = terms.allow_from;
  EXPECT_EQ(terms.allowed(Ending::with_guard), "192.0.2.7/32,192.0.2.7/32");
}

TEST(Rental, EveryStateComesBack) {
  Rental rental = a_rental();
  for (int state = 0; state <= static_cast<int>(Attempt::State::gone); ++state) {
    rental.attempts.front().state = static_cast<Attempt::State>(state);
    EXPECT_EQ(parse_rental(rental_json(rental))->attempts.front().state,
              static_cast<Attempt::State>(state));
  }
}

TEST(Rental, WhatIsNoRentalIsRefusedAndStrangeValuesAreHeld) {
  for (const char* text : {"", "{}", "[]", "null", "{\"id\":\"\"}", "{\"id\":7}", "{\"id\":\"a\""})
    EXPECT_FALSE(parse_rental(text)) << text;
  const auto odd = parse_rental(
      R"({"id":"a","wish":{"gpu":"X9:4","nodes":0},"attempts":[7,{"count":-1,"state":"?",
          "offer":[],"machines":[null,{"state":99,"port":-4,"node":1e3}]}]})");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->wish.nodes, 1);
  EXPECT_FALSE(odd->wish.gpu.admits("L4", 4));  // never another GPU in place of a later version's
  ASSERT_EQ(odd->attempts.size(), 1U);
  EXPECT_EQ(odd->attempts[0].count, 1);
  EXPECT_EQ(odd->attempts[0].state, Attempt::State::asked);  // its machine may exist
  EXPECT_EQ(odd->attempts[0].machines[0].machine.state, Machine::State::gone);
  // This is a wish for any machine.
  Rental any{.id = "a", .cluster = {}, .owner = {}};
  ASSERT_TRUE(parse_rental(rental_json(any)));
  EXPECT_TRUE(parse_rental(rental_json(any))->wish.gpu.kinds.empty());
}

TEST(Rental, AnUnknownGpuIsKeptAsWrittenAndNeverBecomesAKnownOne) {
  for (const char* text : {"X9:4", "X9", "A100::", "A100:0", "A100:x", "a100-80gb:99999"}) {
    const std::string record = fmt::format(R"({{"id":"a","wish":{{"gpu":"{}"}}}})", text);
    Rental rental = *parse_rental(record);
    for (int times = 0; times < 3; ++times)
      rental = *parse_rental(rental_json(rental));
    EXPECT_EQ(rental.wish.gpu.text(), text);
    for (const Gpu& gpu : gpu_table())
      for (int gpus = 0; gpus <= 8; ++gpus)
        EXPECT_FALSE(rental.wish.gpu.admits(gpu.name, gpus));
  }
}

TEST(Rental, AGangIsWholeOnceEveryNodeRunsAndLostOnceOneNeverWill) {
  Rental rental{.id = "intent", .cluster = "c", .owner = "me"};
  rental.wish.nodes = 2;
  const auto up = [](const char* id, int node) {
    return Held{.machine = {.id = id, .state = Machine::State::running, .address = "192.0.2.1"},
                .node = node};
  };
  rental.attempts.push_back(
      {.offer = {}, .state = Attempt::State::running, .machines = {up("i-1", 0)}});
  EXPECT_FALSE(is_whole(rental));
  EXPECT_TRUE(is_lost(rental)) << "nothing boots that could be its second node";
  rental.attempts.front().machines.push_back(up("i-2", kSurplus));
  EXPECT_FALSE(is_whole(rental)) << "no attempt has asked for that machine";
  Held& second = rental.attempts.front().machines.back();
  second.node = 1;
  EXPECT_TRUE(is_whole(rental));
  EXPECT_TRUE(holds(rental, "i-2"));
  EXPECT_FALSE(holds(rental, "i-3"));
  second.machine.address.clear();  // it boots
  EXPECT_FALSE(is_whole(rental));
  EXPECT_FALSE(is_lost(rental));
  for (const auto state : {Machine::State::gone, Machine::State::ending, Machine::State::stopped,
                           Machine::State::unhealthy}) {
    second.machine.state = state;
    EXPECT_TRUE(is_lost(rental));
  }
  second = up("i-2", 1);
  rental.attempts.front().state = Attempt::State::ending;
  EXPECT_FALSE(is_whole(rental));
}

TEST(Rental, ALeaseEndsWithItsLifetimeOrItsBudget) {
  Terms terms{.lifetime_s = 0};
  EXPECT_EQ(lease_end(terms, kDollar, 0, 0, 0), std::nullopt);
  terms.lifetime_s = 3600;
  EXPECT_EQ(lease_end(terms, kDollar, 0, 1'000, 5'000), 1'000 + kMsPerHour);
  terms.budget = kDollar / 2;
  EXPECT_EQ(lease_end(terms, kDollar, 0, 1'000, 5'000), 5'000 + kMsPerHour / 2);
  EXPECT_EQ(lease_end(terms, kDollar, kDollar / 4, 1'000, 5'000), 5'000 + kMsPerHour / 4);
  EXPECT_EQ(lease_end(terms, kDollar, kDollar, 1'000, 5'000), 5'000);
  terms.lifetime_s = 0;
  terms.budget = 1'000'000 * kDollar;
  EXPECT_EQ(lease_end(terms, kDollar, 0, 0, 0), 1'000'000 * kMsPerHour);
}

TEST(Rental, CostIsOfTheTimeBilledAndAtLeastTheMinimum) {
  Rental rental = a_rental();
  Attempt& attempt = rental.attempts.front();
  attempt.per_hour = kDollar;
  attempt.minimum_s = 60;
  Held& held = attempt.machines.front();
  held.since_ms = 1'000;
  held.gone_ms = 0;
  EXPECT_EQ(cost_so_far(rental, 1'000 + kMsPerHour), kDollar);
  EXPECT_EQ(cost_so_far(rental, 2'000), cost_of(kDollar, 60'000));
  EXPECT_EQ(cost_so_far(rental, 0), cost_of(kDollar, 60'000));  // the clocks disagree
  held.gone_ms = 1'000 + kMsPerHour / 2;
  EXPECT_EQ(cost_so_far(rental, 99 * kMsPerHour), kDollar / 2);
  EXPECT_EQ(began_ms(rental, 99 * kMsPerHour), 1'000);
  EXPECT_EQ(rate_now(rental), 0);
}

TEST(Rental, ALaunchWithoutAnAnswerCountsAtTheOffersPrice) {
  Rental rental;
  Attempt attempt;
  attempt.count = 2;
  attempt.per_hour = kDollar;
  attempt.asked_ms = 1'000;
  for (const auto state : {Attempt::State::asked, Attempt::State::unknown}) {
    attempt.state = state;
    rental.attempts = {attempt};
    EXPECT_EQ(rate_now(rental), 2 * kDollar);
    EXPECT_EQ(cost_so_far(rental, 1'000 + kMsPerHour), 2 * kDollar);
    EXPECT_TRUE(has_unanswered(rental));
  }
  attempt.state = Attempt::State::refused;
  rental.attempts = {attempt};
  EXPECT_EQ(rate_now(rental) + cost_so_far(rental, 9 * kMsPerHour), 0);
  EXPECT_FALSE(has_unanswered(rental));
}

TEST(Rental, AProvidersOwnEndIsThatOfTheFirstMachineThatIsAlive) {
  Rental rental;
  const std::pair<const char*, std::int64_t> ends_of[] = {
      {"fixed", 500}, {"fixed", 300}, {"fixed", 0}, {"other", 100}};
  for (const auto& [provider, ends] : ends_of) {
    Attempt attempt;
    attempt.offer.provider = provider;
    attempt.state = Attempt::State::running;
    attempt.machines = {{.machine = {.id = "i", .ends_ms = ends}}};
    rental.attempts.push_back(attempt);
  }
  const auto fixed = [](std::string_view name) { return name == "fixed"; };
  EXPECT_EQ(fixed_end_ms(rental, fixed), 300);
  rental.attempts[1].machines[0].gone_ms = 1;
  EXPECT_EQ(fixed_end_ms(rental, fixed), 500);
  rental.attempts[0].state = Attempt::State::gone;
  EXPECT_EQ(fixed_end_ms(rental, fixed), 0);
}

TEST(Rental, OneRuleLetsInWhatAllOpenRentalsOfItNeed) {
  const auto rented = [](const char* from, const char* provider, const char* region,
                         Attempt::State state = Attempt::State::running) {
    Rental rental;
    rental.terms.allow_from = from;
    Attempt attempt;
    attempt.state = state;
    attempt.offer.provider = provider;
    attempt.offer.region = region;
    rental.attempts.push_back(attempt);
    return rental;
  };
  std::vector<Rental> all = {rented("198.51.100.7/32", "aws", "us-east-1"),
                             rented("203.0.113.0/24", "aws", "us-east-1"),
                             rented("198.51.100.7/32", "aws", "us-east-1"),
                             rented("192.0.2.1/32", "aws", "us-west-2"),
                             rented("192.0.2.2/32", "gcp", "us-east-1"),
                             rented("192.0.2.3/32", "aws", "us-east-1", Attempt::State::gone)};
  all.back().wanted = false;
  const auto of = [&](const char* region, Ending ending = Ending::by_itself) {
    return allowed_by(all, "aws", region, ending);
  };
  EXPECT_EQ(of("us-east-1"), "198.51.100.7/32,203.0.113.0/24");
  EXPECT_EQ(of(""), "198.51.100.7/32,203.0.113.0/24,192.0.2.1/32");
  all.back().wanted = true;
  EXPECT_EQ(of("us-east-1"), "198.51.100.7/32,203.0.113.0/24,192.0.2.3/32") << "it is renting";
  all.back().terms.guard_from = "192.0.2.9/32";
  EXPECT_EQ(of("eu-west-1"), "192.0.2.3/32");
  EXPECT_EQ(of("eu-west-1", Ending::with_guard), "192.0.2.3/32,192.0.2.9/32");
}

}  // namespace
}  // namespace lockstep::cloud
