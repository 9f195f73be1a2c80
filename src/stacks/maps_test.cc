#include "stacks/maps.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::stacks {
namespace {

std::vector<std::string> paths(std::string_view maps, std::string_view exe = "") {
  std::vector<std::string> made;
  for (const MappedFile& file : python_files(maps, exe))
    made.push_back(file.path);
  return made;
}

using Paths = std::vector<std::string>;

TEST(PythonFiles, TheProgramComesBeforeTheLibrary) {
  const std::string maps =
      "559ce7000000-559ce7001000 r--p 00000000 fe:00 11    /opt/py/bin/python3.12\n"
      "559ce7001000-559ce7002000 r-xp 00001000 fe:00 11    /opt/py/bin/python3.12\n"
      "559ce8000000-559ce8100000 rw-p 00000000 00:00 0     [heap]\n"
      "7f0000000000-7f0000100000 r--p 00000000 fe:00 12    /opt/py/lib/libpython3.12.so.1.0\n"
      "7f0000100000-7f0000200000 r-xp 00100000 fe:00 12    /opt/py/lib/libpython3.12.so.1.0\n"
      "7f0000300000-7f0000400000 r--p 00000000 fe:00 13    /opt/py/lib/libpython3.so\n"
      "7f0000500000-7f0000600000 r--p 00000000 fe:00 14    /lib/libc.so.6\n";
  const auto files = python_files(maps, "/opt/py/bin/python3.12");
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0],
            (MappedFile{0x559ce7000000, 0x559ce7001000, "/opt/py/bin/python3.12", false}));
  EXPECT_EQ(files[1].path, "/opt/py/lib/libpython3.12.so.1.0");
}

TEST(PythonFiles, AProgramOfAnyNameComesLast) {
  const std::string maps =
      "00400000-00500000 r--p 00000000 fe:00 11    /opt/my trainer\n"
      "7f0000000000-7f0000100000 r--p 00000000 fe:00 12    /usr/bin/python3.9\n";
  EXPECT_EQ(paths(maps, "/opt/my trainer"), (Paths{"/usr/bin/python3.9", "/opt/my trainer"}));
  EXPECT_EQ(paths(maps, "/opt/my"), Paths{"/usr/bin/python3.9"});
}

TEST(PythonFiles, AnUpgradedInterpreterIsMarked) {
  const auto files = python_files(
      "00400000-00500000 r--p 00000000 fe:00 11    /usr/bin/python3.11 (deleted)\n", "");
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].path, "/usr/bin/python3.11");
  EXPECT_TRUE(files[0].deleted);
}

TEST(PythonFiles, TakesAnyText) {
  EXPECT_EQ(paths(""), Paths{});
  EXPECT_EQ(paths("\n\n"), Paths{});
  EXPECT_EQ(paths("400-500"), Paths{});
  EXPECT_EQ(paths("x-500 r--p 0 0 0 /python3"), Paths{});
  EXPECT_EQ(paths("400-500 r--p 0 0 0 python3"), Paths{});
  EXPECT_EQ(paths("400-500 r--p 0 0 0 /python3"), Paths{"/python3"});
  EXPECT_EQ(paths("400-500 r--p 1000 0 0 /python3"), Paths{});
  std::string many;
  for (int i = 0; i < 100; ++i)
    many += "400-500 r--p 0 0 0 /python3\n";
  EXPECT_EQ(paths(many).size(), 8U);
}

TEST(VersionInName, IsReadFromTheFileName) {
  EXPECT_EQ(version_in_name("/usr/lib/libpython3.10.so.1.0"), (Version{3, 10}));
  EXPECT_EQ(version_in_name("/opt/python3.9/bin/python3.8"), (Version{3, 8}));
  EXPECT_EQ(version_in_name("/usr/lib/libpython3.7m.so.1.0"), (Version{3, 7}));
  EXPECT_EQ(version_in_name("/usr/bin/python3"), std::nullopt);
  EXPECT_EQ(version_in_name("/usr/bin/python3."), std::nullopt);
  EXPECT_EQ(version_in_name("/usr/bin/python"), std::nullopt);
  EXPECT_EQ(version_in_name("/opt/python3.9/bin/trainer"), std::nullopt);
  EXPECT_EQ(version_in_name(""), std::nullopt);
}

}  // namespace
}  // namespace lockstep::stacks
