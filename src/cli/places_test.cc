#include "cli/places.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace lockstep::cli {
namespace {

TEST(Places, ADamagedJournalOfRentalsHidesNoHost) {
  std::string folder = ::testing::TempDir() + "placesXXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  setenv("XDG_STATE_HOME", folder.c_str(), 1);
  std::filesystem::create_directory(folder + "/lockstep");
  std::ofstream(folder + "/lockstep/rentals.db") << "no database";
  for (const char* where : {"local", "me@host", "host"}) {
    const auto places = places_of(where, {});
    EXPECT_TRUE(places) << places.error().message;
  }
  unsetenv("XDG_STATE_HOME");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lockstep::cli
