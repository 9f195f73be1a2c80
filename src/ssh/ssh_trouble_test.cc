// Error texts as seen from OpenSSH 9.2.
#include "ssh/ssh_trouble.h"

#include <gtest/gtest.h>

namespace lockstep::ssh {
namespace {

std::string message(std::string_view said) {
  return ssh_trouble(parse_target("ubuntu@gpu1").value(), said).message;
}

TEST(SshTrouble, NamesTheHopThatFails) {
  EXPECT_EQ(message("ssh: Could not resolve hostname gpu1: Name or service not known\r\n"),
            "the name gpu1 does not resolve");
  EXPECT_EQ(message("ssh: connect to host 10.0.0.5 port 22: Connection refused\r\n"),
            "10.0.0.5 port 22: connection refused");
  EXPECT_EQ(message("ssh: connect to host jump port 22: Connection timed out\r\n"
                    "kex_exchange_identification: Connection closed by remote host\r\n"
                    "Connection closed by UNKNOWN port 65535\r\n"),
            "jump port 22: connection timed out");
  EXPECT_EQ(message("channel 0: open failed: connect failed: No route to host\r\n"
                    "stdio forwarding failed\r\nConnection closed by UNKNOWN port 65535\r\n"),
            "the jump host could not connect to the host: connect failed: No route to host");
  EXPECT_EQ(message("Connection timed out during banner exchange\r\n"
                    "Connection to 10.0.0.5 port 22 timed out\r\n"),
            "the port takes connections, but no SSH server greets there");
}

TEST(SshTrouble, NamesAKeyThatIsRevoked) {
  EXPECT_EQ(message("@       WARNING: REVOKED HOST KEY DETECTED!               @\r\n"
                    "The ED25519 host key for gpu1 is marked as revoked.\r\n"
                    "Host key verification failed.\r\n"),
            "the host key is revoked: a line @revoked of a known_hosts file names the key");
}

TEST(SshTrouble, NamesTheKeyAndWhoIsNotLetIn) {
  EXPECT_EQ(message("ubuntu@gpu1: Permission denied (publickey,password).\r\n"),
            "ubuntu@gpu1 is not let in: the host accepts none of our keys (it offers "
            "publickey,password)");
  EXPECT_EQ(message("Warning: Identity file /k not accessible: No such file or directory.\n"
                    "ubuntu@gpu1: Permission denied (publickey).\r\n"),
            "the key /k does not exist");
  const auto open = ssh_trouble(parse_target("gpu1").value(),
                                "@@@\n@  WARNING: UNPROTECTED PRIVATE KEY FILE!  @\n@@@\n"
                                "Permissions 0644 for '/home/me/my key' are too open.\n"
                                "It is required that your private key files are NOT accessible by "
                                "others.\nThis private key will be ignored.\n"
                                "gpu1: Permission denied (publickey).\n");
  EXPECT_EQ(open.message, "other users may read the key /home/me/my key, so ssh does not use it");
  EXPECT_EQ(open.hint, "chmod 600 '/home/me/my key'");
}

TEST(SshTrouble, AChangedHostKeyIsToldWithTheWayOut) {
  const auto changed =
      ssh_trouble(parse_target("gpu1").value(),
                  "@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@\n"
                  "IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\n"
                  "Offending ED25519 key in /home/me/pins/gpus:3\r\n  remove with:\r\n"
                  "Host key verification failed.\r\n");
  EXPECT_EQ(changed.code, Errc::denied);
  EXPECT_NE(changed.message.find("the host key has changed"), std::string::npos);
  EXPECT_NE(changed.message.find("/home/me/pins/gpus:3"), std::string::npos);
  EXPECT_NE(changed.hint.find("ssh-keygen -f /home/me/pins/gpus -R gpu1"), std::string::npos);
}

TEST(SshTrouble, AnotherKeyThanThePinnedOneIsNoReasonToForgetThePin) {
  const Target target{.host = "10.0.0.5", .host_keys = HostKeys::pinned};
  for (const char* said :
       {"@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@\n"
        "Offending ED25519 key in /pins:3\r\nHost key verification failed.\r\n",
        "Unable to negotiate with 10.0.0.5 port 22: no matching host key type found. Their offer: "
        "rsa-sha2-512\r\n",
        "No ED25519 host key is known for 10.0.0.5 and you have requested strict checking.\r\n"
        "Host key verification failed.\r\n"}) {
    const Error error = ssh_trouble(target, said);
    EXPECT_EQ(error.code, Errc::denied);
    EXPECT_STREQ(error.hint.c_str(), kWrongHost) << said;
  }
  EXPECT_NE(ssh_trouble(target, "Connection refused").hint, kWrongHost);
}

TEST(SshTrouble, OtherwiseTheLastLineIsShown) {
  EXPECT_EQ(message("Bad owner or permissions on /home/me/.ssh/config\r\n"),
            "Bad owner or permissions on /home/me/.ssh/config");
  EXPECT_EQ(message(""), "ssh failed without a word");
  EXPECT_EQ(message("a\x1b[2J\n"), "a\\x1b[2J");
}

TEST(SshTrouble, AKeyWithAPassphraseIsNamed) {
  const Error error =
      ssh_trouble(parse_target("gpu1").value(), "ubuntu@gpu1: Permission denied (publickey).\r\n",
                  "/home/me/k 1");
  EXPECT_EQ(
      error.message,
      "ubuntu@gpu1 is not let in: the host accepts none of our keys (it offers publickey), and the "
      "key /home/me/k 1 needs a passphrase, which ssh could not ask for");
  EXPECT_EQ(error.hint, "load it first: ssh-add '/home/me/k 1'");
}

TEST(SshTrouble, AKeyOfAnotherTypeIsAChangedKey) {
  EXPECT_NE(
      message("No ED25519 host key is known for gpu1 and you have requested strict checking.\n"
              "Host key verification failed.\n")
          .find("host key has another type"),
      std::string::npos);
}

}  // namespace
}  // namespace lockstep::ssh
