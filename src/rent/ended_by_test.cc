#include "rent/ended_by.h"

#include "rent/fake_world_testing.h"

namespace lockstep::rent {
namespace {

class EndedByTest : public testing::FakeWorld {
 protected:
  // A rental whose machine does not terminate itself.
  cloud::Rental bare(const std::string& guard) {
    cloud::Rental rental = rented("a");
    rental.attempts[0].offer.ending = cloud::Ending::with_guard;
    rental.terms.guard = guard;
    return rental;
  }
};

TEST_F(EndedByTest, AMachineThatTerminatesItselfNeedsNoGuard) {
  cloud::Rental rental = rented("a");
  rental.attempts[0].offer.ending = cloud::Ending::by_itself;
  EXPECT_EQ(ended_by(*world, rental), EndedBy::itself);
}

TEST_F(EndedByTest, WithoutAGuardThatLivesNobodyTerminatesIt) {
  EXPECT_EQ(ended_by(*world, bare("")), EndedBy::nobody);
  EXPECT_EQ(ended_by(*world, bare("here")), EndedBy::nobody);
  EXPECT_EQ(ended_by(*world, bare("me@h")), EndedBy::guard) << "it has not said otherwise";
}

TEST_F(EndedByTest, TheEarlierOfLeaseAndProviderIsCertain) {
  cloud::Rental rental = rented("a");
  rental.ends_ms = 5000;
  EXPECT_EQ(fixed_end_ms(*world, rental), 0) << "this provider has no end of its own";
  EXPECT_EQ(certain_end_ms(*world, rental), 5000);
}

}  // namespace
}  // namespace lockstep::rent
