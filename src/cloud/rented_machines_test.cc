// Tests termination when a provider refuses to terminate machines.
#include "base/error_testing.h"
#include "cloud/renting_case_testing.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::cloud {
namespace {

using testing::RentingCase;

// A refusal must not be reported only after ten minutes of retries: each minute costs money.
TEST_F(RentingCase, ARefusalToEndIsToldAtOnceAndOnce) {
  std::vector<std::string> told;
  std::vector<std::int64_t> when;
  with_rules.emplace(RentParts{.journal = journal,
                               .web = web,
                               .ending = ending,
                               .provider = [this](auto) { return &provider; },
                               .tell =
                                   [&](const RentEvent& event) {
                                     if (event.kind != RentEvent::Kind::not_ended) return;
                                     told.push_back(event.text);
                                     when.push_back(world.now);
                                   }});
  ASSERT_TRUE(rent());
  provider.deaf = true;
  const std::int64_t began = world.now;
  EXPECT_FALSE(renting().machines().give_back(rental));
  EXPECT_TRUE(told.empty()) << "no answer is no refusal";
  provider.deaf_with = Errc::denied;
  const std::int64_t again = world.now;
  EXPECT_GT(again, began);
  EXPECT_FALSE(renting().machines().give_back(rental));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_LT(when[0] - again, 5'000);
  EXPECT_NE(told[0].find(rental.live().front()->machine.id + " still costs 1.00 USD an hour"),
            std::string::npos)
      << told[0];
  provider.deaf = false;
  EXPECT_TRUE(renting().machines().give_back(rental));
}

TEST_F(RentingCase, ASweepTellsOfMachinesThatAreRefusedTheirEnd) {
  ASSERT_TRUE(rent());
  const std::string id = rental.live().front()->machine.id;
  world.pass_time(120'000);
  provider.deaf = true;
  rental.wanted = false;
  ASSERT_TRUE(journal.keep(rental));
  Reconciled done = swept();
  EXPECT_TRUE(done.not_ended.empty()) << "a provider that does not answer has refused nothing";
  EXPECT_EQ(done.ending.size(), 1U);
  provider.deaf_with = Errc::denied;
  done = swept();
  ASSERT_EQ(done.not_ended.size(), 1U);
  EXPECT_EQ(done.not_ended[0].find("c: " + id + " still costs 1.00 USD an hour"), 0U)
      << done.not_ended[0];
  EXPECT_TRUE(done.unheard.empty());
  ASSERT_TRUE(journal.keep([&] {
    Rental over = rental;
    over.closed_ms = world.now;  // the journal lost the rental
    return over;
  }()));
  done = swept();
  ASSERT_EQ(done.ended.size(), 1U);
  EXPECT_NE(done.ended[0].error.hint.find("in the console: "), std::string::npos);
  provider.deaf = false;
  EXPECT_TRUE(swept().ended.at(0).error.message.empty());
}

TEST_F(RentingCase, AnEndThatIsAcceptedIsNotAskedForAgainAtOnce) {
  ASSERT_TRUE(rent());
  ASSERT_TRUE(renting().machines().give_back(rental));
  EXPECT_EQ(provider.ends, 1);
}

TEST_F(RentingCase, ARefusalIsAnErrorOfItsOwnKind) {
  ASSERT_TRUE(rent());
  provider.deaf = true;
  EXPECT_EQ(code_of(renting().machines().give_back(rental)), Errc::timeout);
  provider.deaf_with = Errc::denied;
  EXPECT_EQ(code_of(renting().machines().give_back(rental)), Errc::denied)
      << "who has other keys: now";
}

}  // namespace
}  // namespace lockstep::cloud
