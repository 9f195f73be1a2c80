#include "rendezvous/host_match.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::rendezvous {
namespace {

HostFacts machine() {
  return {
      .hostname = "node1",
      .canonical_name = "node1.example.org",
      .own_addresses = {"127.0.0.1", "10.0.0.1", "192.168.5.1", "::1", "fe80::1", "2001:db8::1"},
      .endpoint_addresses = {}};
}
HostFacts resolving(std::vector<std::string> endpoint_addresses) {
  HostFacts facts = machine();
  facts.endpoint_addresses = std::move(endpoint_addresses);
  return facts;
}

struct Row {
  std::string endpoint;
  std::vector<std::string> resolved;
  bool host;
};

TEST(HostMatch, Table) {
  const std::vector<Row> rows = {
      {"localhost", {}, true},
      {"127.0.0.1", {}, true},
      {"127.0.0.7", {}, true},
      {"::1", {}, true},
      {"node1", {}, true},
      {"NODE1", {}, true},
      {"node1.example.org", {}, true},
      {"10.0.0.1", {}, true},
      {"192.168.5.1", {}, true},  // a second network card; torchrun would not host
      {"2001:db8::1", {}, true},
      {"2001:0db8:0::0001", {}, true},
      {"10.0.0.2", {}, false},
      {"2001:db8::2", {}, false},
      {"head", {"192.168.5.1"}, true},  // an alias
      {"head", {"10.9.9.9", "10.0.0.1"}, true},
      {"head", {"127.0.1.1"}, true},  // Debian's /etc/hosts entry, valid on this machine alone
      {"head", {"10.0.0.2"}, false},
      {"head", {}, false},
      {"node2", {"10.0.0.2"}, false},
  };
  for (const Row& row : rows) {
    const auto choice = choose_host(row.endpoint, std::nullopt, resolving(row.resolved));
    EXPECT_EQ(choice.host, row.host) << row.endpoint << ": " << choice.reason;
    EXPECT_EQ(choice.may_join_instead, row.host) << row.endpoint;
    EXPECT_FALSE(choice.reason.empty());
  }
}

TEST(HostMatch, IsHostIsObeyedAndFinal) {
  const auto yes = choose_host("10.0.0.2", true, machine());
  EXPECT_TRUE(yes.host);
  EXPECT_FALSE(yes.may_join_instead);
  const auto no = choose_host("localhost", false, machine());
  EXPECT_FALSE(no.host);
  EXPECT_FALSE(no.may_join_instead);
}

TEST(HostMatch, NamesAreLookedUpOnlyWhereTheyDecide) {
  for (const char* known : {"localhost", "::1", "10.0.0.1", "10.0.0.2", "node1"})
    EXPECT_TRUE(choose_host_at_once(known, std::nullopt, machine())) << known;
  for (const char* unknown : {"head", "node1.example.org", "node2"})
    EXPECT_FALSE(choose_host_at_once(unknown, std::nullopt, machine())) << unknown;
  EXPECT_TRUE(choose_host_at_once("head", false, machine()));
}

TEST(HostMatch, ThisMachine) {
  const HostFacts facts = facts_of_this_machine();
  EXPECT_FALSE(facts.hostname.empty());
  const auto& own = facts.own_addresses;
  EXPECT_NE(std::find(own.begin(), own.end(), "127.0.0.1"), own.end());
}

TEST(HostMatch, AddressTowards) {
  const auto loopback = io::resolve_numeric("127.0.0.5", 29400);
  EXPECT_EQ(address_towards(loopback->addresses[0]).value(), "127.0.0.1");
}

TEST(NodeAddress, Table) {
  NodeAddressFacts facts{.local_addr = {},
                         .endpoint_host = "10.0.0.9",
                         .hosts = false,
                         .route_address = "10.0.0.1",
                         .own_addresses = {"127.0.0.1", "fe80::1", "10.0.0.1"},
                         .hostname = "node1"};
  EXPECT_EQ(choose_node_address(facts), "10.0.0.1");
  facts.local_addr = "alias-of-mine";
  EXPECT_EQ(choose_node_address(facts), "alias-of-mine");
  facts.local_addr.reset();
  facts.route_address = "";
  EXPECT_EQ(choose_node_address(facts), "10.0.0.1");
  facts.own_addresses = {"127.0.0.1", "::1"};
  EXPECT_EQ(choose_node_address(facts), "node1");
  facts.endpoint_host = "localhost";
  facts.route_address = "127.0.0.1";
  EXPECT_EQ(choose_node_address(facts), "127.0.0.1");
  facts.endpoint_host = "127.0.0.2";
  EXPECT_EQ(choose_node_address(facts), "127.0.0.1");
  facts.endpoint_host = "head";  // resolves to 127.0.1.1 on the host itself
  facts.hosts = true;
  EXPECT_EQ(choose_node_address(facts), "head");
  facts.route_address = "10.0.0.1";
  EXPECT_EQ(choose_node_address(facts), "10.0.0.1");
}

}  // namespace
}  // namespace lockstep::rendezvous
