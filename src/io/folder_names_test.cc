#include "io/folder_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace lockstep::io {
namespace {

TEST(FolderNames, AllEntriesAndNothingElse) {
  std::string folder = std::filesystem::temp_directory_path() / "names-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  EXPECT_TRUE(names_in(folder).empty());
  std::ofstream hidden(folder + "/.hidden");
  std::filesystem::create_directory(folder + "/below");
  std::ofstream deep(folder + "/below/deep");
  auto names = names_in(folder);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{".hidden", "below"}));
  EXPECT_TRUE(names_in(folder + "/.hidden").empty());
  EXPECT_TRUE(names_in(folder + "/none").empty());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lockstep::io
