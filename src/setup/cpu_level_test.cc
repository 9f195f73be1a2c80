#include "setup/cpu_level.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::setup {
namespace {

using Words = std::vector<std::string>;

const std::string kTwo = "fpu lm cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3";
const std::string kThree = kTwo + " avx avx2 bmi1 bmi2 f16c fma abm movbe xsave";
const std::string kFour = kThree + " avx512f avx512bw avx512cd avx512dq avx512vl";

TEST(CpuLevels, ALevelNeedsAllOfItsFlags) {
  EXPECT_EQ(cpu_level("fpu lm"), 1);
  EXPECT_EQ(cpu_level(kTwo), 2);
  EXPECT_EQ(cpu_level(kThree), 3);
  EXPECT_EQ(cpu_level(kFour), 4);
  EXPECT_EQ(cpu_level(kThree + " avx512f"), 3);
  EXPECT_EQ(cpu_level("lm avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"), 1);
}

TEST(CpuLevels, TheWeakestCpuOfAMachineCounts) {
  EXPECT_EQ(cpu_level_in("processor\t: 0\nflags\t\t: " + kFour + "\n\nflags\t\t: " + kThree + "\n"),
            3);
  EXPECT_EQ(cpu_level_in("processor\t: 0\nFeatures\t: fp asimd\n"), kNative);
  EXPECT_EQ(cpu_level_in("flags : fpu vme\n"), kNative);
  EXPECT_EQ(cpu_level_in(""), kNative);
}

TEST(CpuLevels, NamesAreRead) {
  EXPECT_EQ(*read_isa("native"), kNative);
  EXPECT_EQ(*read_isa("x86-64"), 1);
  EXPECT_EQ(*read_isa("x86-64-v1"), 1);
  EXPECT_EQ(*read_isa("x86-64-v3"), 3);
  EXPECT_EQ(*read_isa("x86-64-v4,x86-64-v2,native"), 2);
  for (const char* bad : {"", "x86-64-v5", "haswell", "x86-64-v3,", "X86-64"})
    EXPECT_FALSE(read_isa(bad)) << bad;
  EXPECT_EQ(march_of(3, 12), "x86-64-v3");
  EXPECT_EQ(march_of(3, 10), "haswell");
  EXPECT_EQ(march_of(1, 12), "x86-64");
}

// The arguments that DeepSpeed's op_builder passes to a compiler on a machine with AVX-512.
TEST(CompilerWords, NativeBecomesTheLevel) {
  const Words given = {"g++", "-O3", "-march=native", "-D__AVX512__", "-c", "cpu_adam.cpp"};
  bool changed = false;
  EXPECT_EQ(for_level(given, 3, "x86-64-v3", changed),
            (Words{"g++", "-O3", "-march=x86-64-v3", "-D__AVX256__", "-c", "cpu_adam.cpp"}));
  EXPECT_TRUE(changed);
  EXPECT_EQ(for_level(given, 4, "x86-64-v4", changed)[3], "-D__AVX512__");
  EXPECT_EQ(for_level(given, 2, "x86-64-v2", changed)[3], "-D__SCALAR__");
  EXPECT_EQ(for_level(given, kNative, "", changed), given);
  EXPECT_FALSE(changed);
  const Words plain = {"g++", "-O3", "-march=haswell"};
  EXPECT_EQ(for_level(plain, 2, "x86-64-v2", changed), plain);
  EXPECT_FALSE(changed);
}

}  // namespace
}  // namespace lockstep::setup
