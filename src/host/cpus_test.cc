#include "host/cpus.h"

#include <gtest/gtest.h>

#include <sched.h>

namespace lockstep::host {
namespace {

TEST(Cpus, ListForms) {
  EXPECT_EQ(*parse_cpu_list("0-3,8"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(*parse_cpu_list("8,1-2,2\n"), (std::vector<int>{1, 2, 8}));
  EXPECT_TRUE(parse_cpu_list("")->empty());
  EXPECT_TRUE(parse_cpu_list("\n")->empty());
  for (const char* bad : {"a", "3-1", "1-", "-1", "1-2-3", "0-99999999"})
    EXPECT_FALSE(parse_cpu_list(bad)) << bad;
}

TEST(Cpus, RepetitionIsBounded) {
  std::string list = "0-65535";
  for (int i = 0; i < 200; ++i)
    list += ",0-65535";
  EXPECT_FALSE(parse_cpu_list(list));
}

TEST(Cpus, Prints) {
  EXPECT_EQ(print_cpu_list(std::vector<int>{8, 0, 1, 2, 2, 3}), "0-3,8");
  EXPECT_EQ(print_cpu_list(std::vector<int>{5, 7}), "5,7");
  EXPECT_EQ(print_cpu_list({}), "");
}

TEST(Cpus, AllowedFollowsTheAffinity) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const auto all = allowed_cpus();
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), static_cast<std::size_t>(CPU_COUNT(&before)));
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(all->back()), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(*allowed_cpus(), std::vector<int>{all->back()});
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace lockstep::host
