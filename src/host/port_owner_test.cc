#include "host/port_owner.h"

#include "host/fake_tree_testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace lockstep::host {
namespace {

constexpr std::string_view kHeader =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n";

class PortOwnerTree : public FakeTree {};

TEST_F(PortOwnerTree, FindsTheProcess) {
  put("/net/tcp", std::string(kHeader) +
                      "   0: 0100007F:733D 0200007F:733C 01 0:0 00:0 0  1000  0 11 1 0\n"
                      "   1: 0100007F:733D 00000000:0000 0A 0:0 00:0 0  1000  0 12 1 0\n");
  put("/77/cmdline", std::string_view("python3\0my train.py\0", 20));
  link("/77/fd/0", "/dev/null");
  link("/77/fd/3", "socket:[12]");
  link("/66/fd/3", "socket:[11]");
  put("/66/cmdline", "wrong");
  const auto owner = find_port_owner(root_, 0x733D);
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->pid, 77);
  EXPECT_EQ(owner->command, "python3 'my train.py'");
  EXPECT_EQ(owner->uid, 1000U);
  EXPECT_FALSE(find_port_owner(root_, 0x733C));
}

TEST_F(PortOwnerTree, AnotherUsersProcessIsUnknown) {
  put("/net/tcp6",
      std::string(kHeader) +
          "   0: 00000000000000000000000000000000:0050 00000000000000000000000000000000:0000 0A "
          "0:0 00:0 0     7  0 12 1 0\n");
  const auto owner = find_port_owner(root_, 80);
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->pid, 0);
  EXPECT_EQ(owner->uid, 7U);
}

TEST(PortOwner, FindsThisTest) {
  const io::Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  ASSERT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const auto owner = find_port_owner("/proc", ntohs(address.sin_port));
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->pid, getpid());
  EXPECT_NE(owner->command.find("host_test"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::host
