#include "base/callback_scope.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>

namespace lockstep {
namespace {

TEST(CallbackScope, CallsWhileItLives) {
  int sum = 0;
  std::optional<CallbackScope> scope(std::in_place);
  const std::function<void(int)> add = (*scope)([&](int value) { sum += value; });
  add(1);
  EXPECT_EQ(sum, 1);
  scope.reset();
  add(2);
  EXPECT_EQ(sum, 1);
}

TEST(CallbackScope, DropsOnlyWhatItGaveOutBefore) {
  int before = 0;
  int after = 0;
  CallbackScope scope;
  const auto early = scope([&] { ++before; });
  scope.drop();
  const auto late = scope([&] { ++after; });
  early();
  late();
  EXPECT_EQ(before, 0);
  EXPECT_EQ(after, 1);
}

TEST(CallbackScope, PassesWhatCanOnlyBeMoved) {
  std::unique_ptr<int> got;
  const CallbackScope scope;
  const auto take = scope([&](std::unique_ptr<int> value) { got = std::move(value); });
  take(std::make_unique<int>(7));
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(*got, 7);
}

TEST(CallbackScope, AWitnessSeesTheEnd) {
  struct Owner {
    CallbackScope calls;
  };
  auto owner = std::make_unique<Owner>();
  const auto here = owner->calls.witness();
  EXPECT_FALSE(here.gone());
  const auto destroy = owner->calls([&] { owner.reset(); });
  destroy();
  EXPECT_TRUE(here.gone());
}

}  // namespace
}  // namespace lockstep
