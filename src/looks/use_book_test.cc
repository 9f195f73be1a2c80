#include "looks/use_book.h"

#include "looks/looks_testing.h"

#include <gtest/gtest.h>

namespace lockstep::looks {
namespace {

ProcessLook used(std::int64_t ticks, Bytes rss, std::uint64_t start = 77) {
  return {.state = 'R', .start_ticks = start, .cpu_ticks = ticks, .rss = rss};
}

TEST(UseBook, CountsTheCoresAndTheMemoryOfARankAndItsChildren) {
  UseBook book(100);
  io::TimePoint now{std::chrono::hours(1)};
  RankLook look{.rank = 1, .pid = 10, .process = used(500, 1000)};
  look.children = {{.pid = 11, .process = used(5000, 300)}};
  book.feed(look, now);
  EXPECT_EQ(book.of(1).cpu, 0) << "one look says nothing";
  EXPECT_EQ(book.of(1).memory_bytes, 1300);
  look.process->cpu_ticks += 100;
  look.children[0].process.cpu_ticks += 50;
  // A child that has started since: its CPU time says nothing about this second.
  look.children.push_back({.pid = 12, .process = used(9000, 1)});
  book.feed(look, now += std::chrono::seconds(1));
  EXPECT_DOUBLE_EQ(book.of(1).cpu, 1.5);
  // Another process got the number of a child.
  look.children[0].process = used(90'000, 1, 78);
  book.feed(look, now += std::chrono::seconds(2));
  EXPECT_DOUBLE_EQ(book.of(1).cpu, 0);
  EXPECT_EQ(book.of(2).cpu, 0);
  look.process.reset();
  book.feed(look, now);
  EXPECT_EQ(book.of(1).memory_bytes, 0);
}

TEST(UseBook, ALoaderStaysALoaderWhileItsStackIsNotRead) {
  UseBook book(100);
  io::TimePoint now{std::chrono::hours(1)};
  RankLook look{.rank = 1, .pid = 10, .process = used(500, 1000)};
  look.children = {{.pid = 11, .process = used(1, 1)}, {.pid = 12, .process = used(1, 1)}};
  look.children[0].stack = stack_of(in_idle_loader_child());
  book.feed(look, now);
  EXPECT_EQ(book.of(1).loaders, 1);
  look.children[0].stack.reset();
  book.feed(look, now += std::chrono::seconds(1));
  EXPECT_EQ(book.of(1).loaders, 1);
  look.children[0].process.start_ticks = 99;
  book.feed(look, now += std::chrono::seconds(1));
  EXPECT_EQ(book.of(1).loaders, 0) << "another process";
}

}  // namespace
}  // namespace lockstep::looks
