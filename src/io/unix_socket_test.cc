#include "io/unix_socket.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

namespace lockstep::io {
namespace {

TEST(ConnectUnix, SaysWhetherSomebodyListens) {
  char folder[] = "/tmp/fd_test_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/socket";
  EXPECT_EQ(code_of(connect_unix(path)), Errc::unavailable);
  Fd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(code_of(connect_unix(path)), Errc::unavailable);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  EXPECT_TRUE(connect_unix(path));
  listener.reset();
  EXPECT_EQ(code_of(connect_unix(path)), Errc::unavailable);
  const std::string long_path = folder + std::string(sizeof address.sun_path, 'x');
  EXPECT_EQ(code_of(connect_unix(long_path)), Errc::invalid_input);
  unlink(path.c_str());
  rmdir(folder);
}

TEST(ConnectUnixNow, DoesNotWaitForAFullBacklog) {
  const std::string name = "@unix_socket_test/full/" + std::to_string(getpid());
  EXPECT_EQ(code_of(connect_unix_now(name)), Errc::unavailable);
  const auto listener = listen_unix(name, 0);
  ASSERT_TRUE(listener);
  const auto first = connect_unix_now(name);
  ASSERT_TRUE(first);
  EXPECT_NE(fcntl(first->get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(code_of(connect_unix_now(name)), Errc::timeout);
}

TEST(ListenUnix, ReplacesADeadSocketButNoLivingOne) {
  char folder[] = "/tmp/unix_socket_test_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/socket";
  auto first = listen_unix(path, 4);
  ASSERT_TRUE(first) << first.error().message;
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  const auto client = connect_unix(path);
  ASSERT_TRUE(client);
  EXPECT_TRUE(is_own_peer(client->get()));
  EXPECT_EQ(code_of(listen_unix(path, 4)), Errc::already_exists);
  EXPECT_TRUE(connect_unix(path));  // the refused one left the socket file alone
  first->reset();
  EXPECT_TRUE(listen_unix(path, 4));
  unlink(path.c_str());
  rmdir(folder);
}

TEST(ListenUnix, AnAbstractNameHasNoFileAndIsFreeAgain) {
  const std::string name = "@unix_socket_test/" + std::to_string(getpid());
  EXPECT_EQ(code_of(connect_unix(name)), Errc::unavailable);
  auto listener = listen_unix(name, 4);
  ASSERT_TRUE(listener) << listener.error().message;
  EXPECT_EQ(code_of(listen_unix(name, 4)), Errc::already_exists);
  EXPECT_TRUE(connect_unix(name));
  EXPECT_FALSE(connect_unix(name + "x"));
  listener->reset();
  EXPECT_EQ(code_of(connect_unix(name)), Errc::unavailable);
  EXPECT_TRUE(listen_unix(name, 4));
}

TEST(IsOwnPeer, RefusesWhatIsNoSocket) {
  EXPECT_FALSE(is_own_peer(0));
  EXPECT_FALSE(is_own_peer(-1));
}

}  // namespace
}  // namespace lockstep::io
