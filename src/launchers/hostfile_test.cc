#include "launchers/hostfile.h"

#include <gtest/gtest.h>

namespace lockstep::launchers {
namespace {

using Hosts = std::vector<HostSlots>;

Hosts parsed(std::string_view text) {
  const auto hosts = parse_hostfile(text);
  EXPECT_TRUE(hosts) << hosts.error().message;
  return hosts.value_or(Hosts{});
}

std::string error(std::string_view text) {
  const auto hosts = parse_hostfile(text);
  return hosts ? "" : hosts.error().message;
}

const Hosts kTwo = {{"worker-0", {0, 1}}, {"worker-1", {0, 1, 2, 3}}};

ChosenHosts chosen(std::string_view include, std::string_view exclude = {},
                   const Hosts& hosts = kTwo) {
  auto result = choose_slots(hosts, include, exclude);
  EXPECT_TRUE(result) << result.error().message;
  return result.value_or(ChosenHosts{});
}

std::string refused(std::string_view include, std::string_view exclude = {}) {
  const auto result = choose_slots(kTwo, include, exclude);
  return result ? "" : result.error().message;
}

TEST(Hostfile, LinesAreReadAsDeepspeedReadsThem) {
  EXPECT_EQ(parsed("# ours\n\n  w0 slots=2 max_slots=4\r\nw2\tslots=1junk\nuser@h slots=0\n"
                   "h:2222 \t slots=1"),
            (Hosts{{"w0", {0, 1}}, {"w2", {0}}, {"user@h", {}}, {"h:2222", {0}}}));
}

TEST(Hostfile, WhatDeepspeedRefusesIsNamedWithItsLine) {
  EXPECT_EQ(error("w0 slots=1\n\nw1"), "line 3: 'w1' is not NAME slots=N");
  EXPECT_EQ(error("w0 max=1 slots=2"), "line 1: 'w0 max=1 slots=2' is not NAME slots=N");
  EXPECT_EQ(error("w0 Slots=2"), "line 1: 'w0 Slots=2' is not NAME slots=N");
  EXPECT_EQ(error("w0 slots="), "line 1: 'w0 slots=' is not NAME slots=N");
  EXPECT_EQ(error("slots=2"), "line 1: 'slots=2' is not NAME slots=N");
  EXPECT_EQ(error("w0 slots=2\nw0 slots=2"), "line 2: w0 is listed twice");
  EXPECT_EQ(error("w0 slots=4097"), "line 1: slots=4097 is more than 4096");
  EXPECT_EQ(error("w0 slots=99999999999999999999"),
            "line 1: slots=99999999999999999999 is more than 4096");
  EXPECT_EQ(error("\n# none\n"), "the file names no host");
}

TEST(Hostfile, WithoutAFilterAllTakePart) {
  EXPECT_EQ(chosen("").hosts, kTwo);
  const ChosenHosts some = chosen("", "", {{"a", {}}, {"b", {0}}});
  EXPECT_EQ(some.hosts, (Hosts{{"b", {0}}}));
  EXPECT_EQ(some.notes, std::vector<std::string>{"a has slots=0 and takes no part"});
}

TEST(Hostfile, AnIncludeTakesWhatItNames) {
  EXPECT_EQ(chosen("worker-1:2,0,2").hosts, (Hosts{{"worker-1", {0, 2}}}));
  EXPECT_TRUE(chosen("worker-1:0").notes.empty());
  EXPECT_EQ(chosen("worker-1:0@worker-0:1@worker-1:3").hosts,
            (Hosts{{"worker-0", {1}}, {"worker-1", {0, 3}}}));
}

// DeepSpeed 0.19 leaves such a host out: its own launcher's list of slots is empty.
TEST(Hostfile, AnIncludeWithoutSlotsTakesAllOfThem) {
  const ChosenHosts both = chosen("worker-0@worker-1:0,2");
  EXPECT_EQ(both.hosts, (Hosts{{"worker-0", {0, 1}}, {"worker-1", {0, 2}}}));
  EXPECT_EQ(both.notes, std::vector<std::string>{
                            "--include names all slots of worker-0, as DeepSpeed's help says; "
                            "DeepSpeed's launcher would drop these hosts"});
  EXPECT_EQ(chosen("worker-1").hosts, (Hosts{{"worker-1", {0, 1, 2, 3}}}));
}

TEST(Hostfile, AnExcludeLeavesTheRest) {
  EXPECT_EQ(chosen("", "worker-1:0").hosts, (Hosts{{"worker-0", {0, 1}}, {"worker-1", {1, 2, 3}}}));
  EXPECT_EQ(chosen("", "worker-0").hosts, (Hosts{{"worker-1", {0, 1, 2, 3}}}));
  EXPECT_EQ(chosen("", "worker-0:0,1").hosts, (Hosts{{"worker-1", {0, 1, 2, 3}}}));
}

TEST(Hostfile, APortIsPartOfTheName) {
  const Hosts ports = {{"h:2222", {0, 1}}, {"h", {0}}};
  EXPECT_EQ(chosen("h:2222", "", ports).hosts, (Hosts{{"h:2222", {0, 1}}}));
  EXPECT_EQ(chosen("h:2222:1", "", ports).hosts, (Hosts{{"h:2222", {1}}}));
  EXPECT_EQ(chosen("h:0", "", ports).hosts, (Hosts{{"h", {0}}}));
}

TEST(Hostfile, WhatTheFileDoesNotHaveIsNamed) {
  EXPECT_EQ(refused("a", "b"), "--include and --exclude are both given");
  EXPECT_EQ(refused("worker-2"), "--include worker-2: the hostfile has no host 'worker-2'");
  EXPECT_EQ(refused("worker-[0-1]"),
            "--include worker-[0-1]: the hostfile has no host "
            "'worker-[0-1]'");
  // DeepSpeed accepts the slot and then fails, because the device does not exist.
  EXPECT_EQ(refused("worker-1:7"),
            "--include worker-1:7: worker-1 has no slot 7; the hostfile gives 4 slots");
  EXPECT_EQ(refused("", "worker-0:2"),
            "--exclude worker-0:2: worker-0 has no slot 2; the hostfile gives 2 slots");
  EXPECT_EQ(refused("worker-0:x"),
            "--include worker-0:x: 'x' must be the number of a slot of worker-0");
  EXPECT_EQ(refused("worker-0@"), "--include worker-0@: the hostfile has no host ''");
  EXPECT_EQ(refused("", "worker-0@worker-1"), "no slot of any host is left");
}

TEST(Hostfile, SlotsAreWrittenForTheOption) {
  EXPECT_EQ(slots_text({0, 2, 11}), "0,2,11");
}

}  // namespace
}  // namespace lockstep::launchers
