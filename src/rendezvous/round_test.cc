#include "rendezvous/round.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous {
namespace {

Round second_of_two() {
  Round round;
  round.group_rank = 1;
  round.group_world_size = 2;
  round.base_rank = round.role_base_rank = 2;
  round.world_size = round.role_world_size = 4;
  return round;
}

TEST(Round, RanksThatFit) {
  EXPECT_TRUE(check_ranks(second_of_two(), 2));
  EXPECT_TRUE(check_ranks(Round{}, 0));
}

TEST(Round, RanksThatDoNot) {
  EXPECT_FALSE(check_ranks(second_of_two(), 3));
  for (const auto change : std::initializer_list<void (*)(Round&)>{
           [](Round& round) { round.base_rank = INT32_MAX; },
           [](Round& round) { round.role_base_rank = INT32_MAX; },
           [](Round& round) { round.base_rank = -1; }, [](Round& round) { round.world_size = 3; },
           [](Round& round) { round.role_world_size = 0; },
           [](Round& round) { round.group_rank = 2; }}) {
    Round round = second_of_two();
    round.master_addr = "n0";
    change(round);
    const Status checked = check_ranks(round, 2);
    ASSERT_FALSE(checked);
    EXPECT_NE(checked.error().message.find("node rank 0 at n0"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep::rendezvous
