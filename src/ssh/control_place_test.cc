#include "ssh/control_place.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>
#include <set>
#include <utility>
#include <vector>

namespace lockstep::ssh {
namespace {

TEST(ControlPlace, FitsIntoASocketsPathAsSshMakesIt) {
  namespace fs = std::filesystem;
  std::size_t longest = 0;
  for (std::size_t size = 55; size < 80; ++size) {
    std::string top = ::testing::TempDir() + "place_";
    ASSERT_LT(top.size(), size);
    top += std::string(size - top.size(), 'x');
    fs::create_directory(top);
    fs::permissions(top, fs::perms::owner_all);
    setenv("XDG_RUNTIME_DIR", top.c_str(), 1);
    const auto socket = control_socket({.host = "h"}, "");
    fs::remove_all(top);
    ASSERT_TRUE(socket) << socket.error().message;
    EXPECT_LE(socket->size() + 17, 107U) << *socket;
    if (socket->starts_with(top)) longest = size;
  }
  unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(longest, 64U);
}

// A master made with one cluster's pins has not checked the keys of another cluster.
TEST(ControlPlace, EachWayAndEachSetOfPinsHasItsOwnMaster) {
  const std::vector<std::pair<Target, std::string>> ways = {
      {{.host = "h"}, ""},
      {{.host = "h"}, "/pins/a"},
      {{.host = "h"}, "/pins/b"},
      {{.host = "h", .user = "u"}, ""},
      {{.host = "h", .port = 2222}, ""},
      {{.host = "h", .key_path = "/k"}, ""},
      {{.host = "h", .jump = "j"}, ""},
      {{.host = "h", .host_keys = HostKeys::pinned}, "/pins/a"},
  };
  std::set<std::string> sockets;
  for (const auto& [target, pins] : ways)
    sockets.insert(control_socket(target, pins).value());
  EXPECT_EQ(sockets.size(), ways.size());
}

}  // namespace
}  // namespace lockstep::ssh
