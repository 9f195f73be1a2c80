#include "io/unix_socket.h"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

namespace lockstep::io {
namespace {

TEST(ConnectUnix, SaysWhetherSomebodyListens) {
  char folder[] = "/tmp/fd_test_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/socket";
  EXPECT_EQ(connect_unix(path).error().code, Errc::unavailable);
  Fd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(connect_unix(path).error().code, Errc::unavailable);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  EXPECT_TRUE(connect_unix(path));
  listener.reset();
  EXPECT_EQ(connect_unix(path).error().code, Errc::unavailable);
  const std::string long_path = folder + std::string(sizeof address.sun_path, 'x');
  EXPECT_EQ(connect_unix(long_path).error().code, Errc::invalid_input);
  unlink(path.c_str());
  rmdir(folder);
}

}  // namespace
}  // namespace lockstep::io
