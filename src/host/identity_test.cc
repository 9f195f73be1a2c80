#include "host/identity.h"

#include <gtest/gtest.h>

namespace lockstep::host {
namespace {

TEST(Identity, FqdnFromHosts) {
  EXPECT_EQ(fqdn_from_hosts("node1", "127.0.0.1 localhost\n10.0.0.1\tnode1.example node1\n"),
            "node1.example");
  EXPECT_EQ(fqdn_from_hosts("node1", "10.0.0.1 node1 node1.example # main\n"), "node1.example");
  EXPECT_EQ(fqdn_from_hosts("node1", "10.0.0.1 other.example\n10.0.0.1 node1\n"), "other.example");
  EXPECT_EQ(fqdn_from_hosts("node1", "10.0.0.1 main node1\n"), "main");
}

TEST(Identity, FallsBackToTheHostname) {
  EXPECT_EQ(fqdn_from_hosts("node1", ""), "node1");
  EXPECT_EQ(fqdn_from_hosts("node1", "# 10.0.0.1 node1.example node1\nnode1\n"), "node1");
  EXPECT_EQ(fqdn_from_hosts("node1", "127.0.0.1 localhost.localdomain localhost node1\n"), "node1");
}

TEST(Identity, ThisMachineHasNames) {
  EXPECT_FALSE(hostname().empty());
  EXPECT_FALSE(node_name().empty());
}

}  // namespace
}  // namespace lockstep::host
