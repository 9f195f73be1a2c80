#include "jobs/on_hosts/meeting_places.h"

#include <gtest/gtest.h>

namespace lockstep::jobs::on_hosts {
namespace {

using Texts = std::vector<std::string>;

// Three hosts, each with an IPv4 and an IPv6 address, that reach each other at both.
std::vector<TriedHost> three() {
  std::vector<TriedHost> hosts;
  for (int i = 0; i < 3; ++i) {
    const std::string number = std::to_string(i);
    hosts.push_back({.name = "gpus-" + number,
                     .addresses = {"10.0.0." + number, "fd00::" + number},
                     .port = 40000 + i});
  }
  for (std::size_t i = 0; i < hosts.size(); ++i)
    for (std::size_t to = 0; to < hosts.size(); ++to)
      hosts[i].reached.push_back(i == to ? Texts{} : hosts[to].addresses);
  return hosts;
}

TEST(MeetingPlaces, EveryNodeIsOneInTheOrderOfNodes) {
  const auto places = meeting_places(three(), 64);
  ASSERT_TRUE(places);
  EXPECT_EQ(places->endpoints, (Texts{"10.0.0.0:40000", "10.0.0.1:40001", "10.0.0.2:40002"}));
  EXPECT_EQ(places->warning, "");
  EXPECT_EQ(meeting_places(three(), 2)->endpoints.size(), 2U);
  EXPECT_EQ(meeting_places(three(), 1)->endpoints, Texts{"10.0.0.0:40000"});
}

// Two nodes of one machine would both take the first entry with its address for their own.
TEST(MeetingPlaces, OfTheNodesOfOneMachineTheFirstIsOne) {
  auto hosts = three();
  hosts[2].addresses = hosts[0].addresses;
  hosts[0].reached[2] = hosts[1].reached[2] = hosts[2].addresses;
  const auto places = meeting_places(hosts, 64);
  EXPECT_EQ(places->endpoints, (Texts{"10.0.0.0:40000", "10.0.0.1:40001"}));
  EXPECT_EQ(places->warning, "");
}

TEST(MeetingPlaces, AnAddressIsOneThatAllOtherHostsHaveReached) {
  auto hosts = three();
  hosts[1].reached[0] = {"fd00::0"};
  hosts[0].reached[1] = {"10.0.0.1"};
  EXPECT_EQ(meeting_places(hosts, 64)->endpoints,
            (Texts{"[fd00::0]:40000", "10.0.0.1:40001", "10.0.0.2:40002"}));
}

TEST(MeetingPlaces, AWayToNodeZeroThatFailsIsAnError) {
  auto hosts = three();
  hosts[2].reached[0] = {};
  const auto places = meeting_places(hosts, 64);
  ASSERT_FALSE(places);
  EXPECT_EQ(places.error().message,
            "gpus-2 cannot reach gpus-0 at any address (10.0.0.0, fd00::0), port 40000");
  EXPECT_NE(places.error().hint.find("firewall"), std::string::npos);
  hosts = three();
  hosts[1].reached[0] = {"10.0.0.0"};
  hosts[2].reached[0] = {"fd00::0"};
  EXPECT_EQ(meeting_places(hosts, 64).error().message,
            "no single address of gpus-0 is reachable from all other hosts");
}

TEST(MeetingPlaces, AWayToAnotherNodeThatFailsIsNamedInOneLine) {
  auto hosts = three();
  hosts[0].reached[1] = {};
  hosts[0].reached[2] = {};
  const auto places = meeting_places(hosts, 64);
  ASSERT_TRUE(places);
  EXPECT_EQ(places->endpoints, Texts{"10.0.0.0:40000"});
  EXPECT_EQ(places->warning,
            "gpus-0 cannot reach gpus-1 at any address (10.0.0.1, fd00::1), port 40001: if gpus-0 "
            "is lost, gpus-1, gpus-2 cannot host the rendezvous in its place");
}

}  // namespace
}  // namespace lockstep::jobs::on_hosts
