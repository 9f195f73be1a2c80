#include "stacks/mappings.h"

#include <gtest/gtest.h>

namespace lockstep::stacks {
namespace {

constexpr std::string_view kMaps =
    "55d0c0a00000-55d0c0a1e000 r--p 00000000 fe:00 1234    /usr/bin/python3.11\n"
    "55d0c0a1e000-55d0c0a9e000 r-xp 0001e000 fe:00 1234    /usr/bin/python3.11\n"
    "55d0c2000000-55d0c2100000 rw-p 00000000 00:00 0       [heap]\n"
    "7f0000000000-7f0000010000 r--p 00000000 fe:00 77      /opt/a b/libx.so.1\x1b (deleted)\n"
    "7f0000010000-7f0000020000 r-xp 00010000 fe:00 77      /opt/a b/libx.so.1\x1b (deleted)\n"
    "7f0000020000-7f0000030000 r-xp 00000000 00:00 0 \n"
    "7f0000030000-7f0000040000 --xp 00001000 fe:00 78      /opt/libsecret.so\n"
    "7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0       [vdso]\n";
const io::Devices kLocal = {"fe:00"};

TEST(Mappings, KnowTheImageOfAFile) {
  const auto mappings = parse_mappings(kMaps, kLocal);
  ASSERT_EQ(mappings.size(), 8U);
  const Mapping* code = mapping_at(mappings, 0x55d0c0a1e000);
  ASSERT_NE(code, nullptr);
  EXPECT_EQ(*code, (Mapping{.start = 0x55d0c0a1e000,
                            .end = 0x55d0c0a9e000,
                            .image = 0x55d0c0a00000,
                            .code = true,
                            .name = "python3.11",
                            .file = "fe:00 1234"}));
  EXPECT_FALSE(mappings[0].code);
  EXPECT_EQ(mapping_at(mappings, 0x7f0000010005)->image, 0x7f0000000000U);
  EXPECT_EQ(mapping_at(mappings, 0x7f0000010005)->name, "libx.so.1\\x1b (deleted)");
  EXPECT_TRUE(mapping_at(mappings, 0x7ffd00000010)->code);
  EXPECT_EQ(mapping_at(mappings, 0x7ffd00000010)->image, 0x7ffd00000000U);
}

TEST(Mappings, WithoutAFileHaveNoCode) {
  const auto mappings = parse_mappings(kMaps, kLocal);
  EXPECT_FALSE(mapping_at(mappings, 0x7f0000020000)->code);  // made by a compiler at run time
  EXPECT_FALSE(mapping_at(mappings, 0x7f0000030000)->code);  // not readable
  EXPECT_EQ(mapping_at(mappings, 0x7f0000030000)->image, 0U);
}

TEST(Mappings, AreFarUnlessTheirFileSystemIsLocal) {
  for (const Mapping& mapping : parse_mappings(kMaps, kLocal))
    EXPECT_FALSE(mapping.far) << mapping.name;
  const auto mappings = parse_mappings(kMaps, {"fe:01"});
  EXPECT_TRUE(mapping_at(mappings, 0x55d0c0a1e000)->far);
  EXPECT_FALSE(mapping_at(mappings, 0x55d0c2000000)->far);  // memory without a file
  EXPECT_FALSE(mapping_at(mappings, 0x7ffd00000010)->far);  // [vdso]
}

TEST(Mappings, EndBeforeTheirEnd) {
  const auto mappings = parse_mappings(kMaps, kLocal);
  EXPECT_EQ(mapping_at(mappings, 0), nullptr);
  EXPECT_EQ(mapping_at(mappings, 0x55d0c0a9e000), nullptr);
  EXPECT_EQ(mapping_at(mappings, ~Address{0}), nullptr);
  EXPECT_EQ(mapping_at({}, 7), nullptr);
}

TEST(Mappings, LeaveOutMalformedAndDisorderedLines) {
  for (const char* text : {"", "\n\n", "7-", "7-8", "x-y r-xp 0 0 0 /a", "8-7 r-xp 0 0:0 0 /a"})
    EXPECT_TRUE(parse_mappings(text, kLocal).empty()) << text;
  EXPECT_EQ(parse_mappings("10-20 r-xp 0 0:0 1 /a\n18-30 r-xp 0 0:0 1 /b\n", kLocal).size(), 1U);
  for (std::size_t size = 0; size < kMaps.size(); ++size)
    EXPECT_LE(parse_mappings(kMaps.substr(0, size), kLocal).size(), 8U);
}

}  // namespace
}  // namespace lockstep::stacks
