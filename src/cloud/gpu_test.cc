#include "cloud/gpu.h"

#include "cloud/machine_table.h"

#include <gtest/gtest.h>

namespace lockstep::cloud {
namespace {

TEST(Gpu, EveryNameAndAliasMeansItsKindAgain) {
  ASSERT_GT(gpu_table().size(), 15U);
  for (const Gpu& gpu : gpu_table()) {
    EXPECT_EQ(find_gpu(gpu.name), &gpu) << gpu.name;
    for (const std::string& alias : gpu.aliases) {
      EXPECT_EQ(find_gpu(alias), &gpu) << alias;
      EXPECT_EQ(gpu_described(alias), &gpu) << alias;
    }
    const auto wish = parse_gpu_wish(gpu.name + ":3");
    ASSERT_TRUE(wish) << gpu.name;
    EXPECT_TRUE(wish->admits(gpu.name, 3)) << gpu.name;
    EXPECT_EQ(parse_gpu_wish(wish->text())->kinds, wish->kinds) << gpu.name;
  }
}

TEST(Gpu, EveryTypeOfMachineHasAKnownGpu) {
  for (const char* provider : {"aws", "gcp", "lambda"}) {
    const MachineTable* table = machine_table(provider);
    ASSERT_NE(table, nullptr);
    EXPECT_GT(table->date_ms, 1'700'000'000'000);
    for (const MachineType& type : table->types) {
      if (&type == plain_machine(provider)) continue;
      ASSERT_NE(find_gpu(type.gpu), nullptr) << type.type;
      EXPECT_EQ(find_gpu(type.gpu)->name, type.gpu);
      EXPECT_GT(type.gpus, 0);
      EXPECT_TRUE(type.on_demand || !type.why.empty()) << type.type;
    }
  }
  EXPECT_EQ(machine_table("nobody"), nullptr);
}

TEST(Gpu, MachinesWithoutAreTakenOnlyByName) {
  const MachineType* plain = plain_machine("aws");
  ASSERT_NE(plain, nullptr);
  EXPECT_EQ(plain->type, "t3.micro");
  EXPECT_EQ(plain_machine("lambda"), nullptr);
  EXPECT_EQ(plain_machine("nobody"), nullptr);
  EXPECT_FALSE(GpuWish().admits(plain->gpu, plain->gpus));
  const GpuWish none{.name = {}, .kinds = {}, .none = true};
  EXPECT_TRUE(none.admits(plain->gpu, plain->gpus));
  EXPECT_FALSE(none.admits("L4", 1));
  EXPECT_EQ(none.text(), "no GPUs");
}

TEST(Gpu, AFamilyMeansAllOfItsKinds) {
  const auto any = parse_gpu_wish("a100:8");
  ASSERT_TRUE(any);
  EXPECT_EQ(any->text(), "A100:8");
  EXPECT_TRUE(any->admits("A100-40GB", 8));
  EXPECT_TRUE(any->admits("A100-80GB", 8));
  EXPECT_FALSE(any->admits("A100-80GB", 4));
  EXPECT_FALSE(any->admits("A10", 8));
  const auto one = parse_gpu_wish("A100-SXM4-80GB");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->text(), "A100-80GB:1");
  EXPECT_FALSE(one->admits("A100-40GB", 1));
}

TEST(Gpu, MoreAreAdmittedOnRequest) {
  auto wish = parse_gpu_wish("L4:2");
  ASSERT_TRUE(wish);
  EXPECT_FALSE(wish->admits("L4", 4));
  wish->at_least = true;
  EXPECT_TRUE(wish->admits("L4", 4));
  EXPECT_FALSE(wish->admits("L4", 1));
}

TEST(Gpu, ADescriptionIsReadWithItsMemory) {
  ASSERT_NE(gpu_described("A100", 40), nullptr);
  EXPECT_EQ(gpu_described("A100", 40)->name, "A100-40GB");
  EXPECT_EQ(gpu_described("NVIDIA V100", 32)->name, "V100-32GB");
  EXPECT_EQ(gpu_described("L4", 22)->name, "L4");
  EXPECT_EQ(gpu_described("A100"), nullptr);
  EXPECT_EQ(gpu_described("H100 (80 GB SXM5)")->name, "H100-SXM");
  EXPECT_EQ(gpu_described("Trainium", 32), nullptr);
}

TEST(Gpu, WrongWishesAreOneLine) {
  const auto unknown = parse_gpu_wish("A1000:1");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().hint.find("A100"), std::string::npos) << unknown.error().hint;
  for (const char* wrong : {"A100:0", "A100:x", "A100:", "A100:65", ":8", "", "A100:-1"})
    EXPECT_FALSE(parse_gpu_wish(wrong)) << wrong;
}

}  // namespace
}  // namespace lockstep::cloud
