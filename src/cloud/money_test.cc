#include "cloud/money.h"

#include "cloud/offer.h"

#include <gtest/gtest.h>

namespace lockstep::cloud {
namespace {

TEST(Money, IsReadAndPrintedExactly) {
  EXPECT_EQ(parse_dollars("30").value(), 30 * kDollar);
  EXPECT_EQ(parse_dollars("$2.50").value(), 2'500'000);
  EXPECT_EQ(parse_dollars(".000001").value(), 1);
  for (const char* wrong : {"", "-1", "1e3", "1.0000001", "x", ".", "99999999999999", "1,5"})
    EXPECT_FALSE(parse_dollars(wrong)) << wrong;
  EXPECT_EQ(dollars_text(2'500'000), "2.50");
  EXPECT_EQ(dollars_text(999'999), "1.00");
  EXPECT_EQ(dollars_text(526'000, 3), "0.526");
  EXPECT_EQ(dollars_text(4'300), "0.0043");
  EXPECT_EQ(dollars_text(0), "0.00");
}

TEST(Money, CostIsRoundedUpAndDoesNotOverflow) {
  EXPECT_EQ(cost_of(kDollar, kMsPerHour), kDollar);
  EXPECT_EQ(cost_of(kDollar, 1), 1);
  EXPECT_EQ(cost_of(3'600'000, 1'000), 1'000);
  EXPECT_EQ(cost_of(kDollar, 0), 0);
  EXPECT_EQ(cost_of(1'000 * kDollar, kMsPerHour * 24 * 365), 1'000LL * 24 * 365 * kDollar);
}

TEST(Money, AMachineCostsItsDiskAndAddressToo) {
  Offer offer;
  offer.price.per_hour = kDollar;
  offer.disk_per_gb_month = 80'000;
  offer.address_per_hour = 5'000;
  offer.min_disk_gb = 75;
  EXPECT_EQ(offer.per_machine_hour(730), kDollar + 80'000 + 5'000);
  EXPECT_EQ(offer.per_machine_hour(0), kDollar + (80'000 * 75 + 729) / 730 + 5'000);
  offer.disk_gb = 512;  // included in the price
  EXPECT_EQ(offer.per_machine_hour(200), kDollar + 5'000);
}

}  // namespace
}  // namespace lockstep::cloud
