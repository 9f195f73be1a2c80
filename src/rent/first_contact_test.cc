#include "rent/first_contact.h"

#include "rent/fake_sshd_testing.h"
#include "rent/fake_world_testing.h"
#include "rent/gang.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::rent {
namespace {

using testing::closed_port;
using testing::FailingSsh;
using testing::Greeter;
using testing::kWrongHostWords;
using Kind = cloud::Verdict::Kind;

constexpr const char* kGreets = "SSH-2.0-OpenSSH_9.2\r\n";

class FirstContactTest : public testing::FakeWorld {
 protected:
  FirstContactTest() {
    variables["LOCKSTEP_CLOUD_PACE"] = "0.001";  // a machine has a second to answer
    setenv("LOCKSTEP_SSH_PROBE", "none", 1);
  }
  ~FirstContactTest() override { unsetenv("LOCKSTEP_SSH_PROBE"); }

  // Returns a rental with a machine that no client has met, at this port of 127.0.0.1.
  cloud::Rental machine_at(int port) {
    cloud::Rental rental = rented("a");
    cloud::Machine& machine = rental.attempts[0].machines[0].machine;
    machine.address = "127.0.0.1";
    machine.port = port;
    EXPECT_TRUE(new_keys(*world, rental));
    EXPECT_TRUE(world->journal().keep(rental));
    return rental;
  }
  cloud::Verdict meet(cloud::Rental& rental) {
    return meet_machines(*world, rental,
                         [&](const ContactStep& step) { steps.push_back(step.text); });
  }
  bool stepped(const std::string& words) const {
    for (const std::string& step : steps)
      if (step.find(words) != std::string::npos) return true;
    return false;
  }

  std::vector<std::string> steps;
};

TEST_F(FirstContactTest, MachinesThatAnEarlierCommandHasMetAreGood) {
  cloud::Rental rental = machine_at(1);
  rental.attempts[0].machines[0].host_key = "ssh-ed25519 AAAA";
  EXPECT_EQ(meet(rental).kind, Kind::good);
  EXPECT_TRUE(steps.empty());
}

TEST_F(FirstContactTest, WithoutAMachineThereIsNothingToMeet) {
  cloud::Rental rental = machine_at(1);
  rental.attempts[0].state = cloud::Attempt::State::gone;
  EXPECT_EQ(meet(rental).kind, Kind::stop);
}

TEST_F(FirstContactTest, ASilentMachineIsBadAndTheSecondStopsTheRenting) {
  cloud::Rental rental = machine_at(closed_port());
  const cloud::Verdict first = meet(rental);
  EXPECT_EQ(first.kind, Kind::bad);
  EXPECT_EQ(first.error.message, "a-0: not reached within 1 s: connection refused");
  EXPECT_TRUE(stepped("a-0: waits for sshd"));
  EXPECT_TRUE(stepped("the machine may still be booting, or a firewall here"));
  const cloud::Verdict second = meet(rental);
  EXPECT_EQ(second.kind, Kind::stop) << "each further machine would only cost money";
  EXPECT_NE(second.error.message.find("a firewall here may block outgoing port 22"),
            std::string::npos);
  EXPECT_TRUE(rental.attempts[0].machines[0].host_key.empty());
}

TEST_F(FirstContactTest, AnotherHostKeyThanOursMakesAMachineBad) {
  const Greeter sshd(kGreets);
  const FailingSsh ssh(folder, kWrongHostWords);
  cloud::Rental rental = machine_at(sshd.port());
  const cloud::Verdict verdict = meet(rental);
  EXPECT_EQ(verdict.kind, Kind::bad);
  EXPECT_NE(verdict.error.message.find("the host key differs from the key made for this machine"),
            std::string::npos)
      << verdict.error.message;
  EXPECT_TRUE(stepped("a-0: logs in"));
}

TEST_F(FirstContactTest, TheProviderIsAskedForTheKeyThatTheImageMade) {
  const Greeter sshd(kGreets);
  const FailingSsh ssh(folder, kWrongHostWords);
  cloud::Rental rental = machine_at(sshd.port());
  one->know_host_keys("ssh-ed25519 BBBB");
  EXPECT_EQ(meet(rental).kind, Kind::bad) << "another machine may still answer there";
  EXPECT_TRUE(stepped("the image created a host key: the key known to the provider counts"));
}

TEST_F(FirstContactTest, WhereTheProviderKnowsNoOtherKeyTheMachineIsNotTried) {
  const Greeter sshd(kGreets);
  const FailingSsh ssh(folder, kWrongHostWords);
  cloud::Rental rental = machine_at(sshd.port());
  one->know_host_keys("");
  const cloud::Verdict verdict = meet(rental);
  EXPECT_EQ(verdict.kind, Kind::bad);
  EXPECT_NE(verdict.error.message.find("and the provider knows no other key"), std::string::npos)
      << verdict.error.message;
  EXPECT_FALSE(stepped("the image created a host key"));
}

TEST_F(FirstContactTest, AStopWhileTheProviderIsAskedStopsTheRenting) {
  const Greeter sshd(kGreets);
  const FailingSsh ssh(folder, kWrongHostWords);
  cloud::Rental rental = machine_at(sshd.port());
  one->know_host_keys("");
  web->pauses_left = 0;
  const cloud::Verdict verdict = meet(rental);
  EXPECT_EQ(verdict.kind, Kind::stop);
  EXPECT_EQ(verdict.error.code, Errc::canceled);
}

TEST_F(FirstContactTest, AKeyThatIsRefusedMayBeTakenOnceTheMachineHasBooted) {
  const Greeter sshd(kGreets);
  const FailingSsh ssh(folder, "ubuntu@127.0.0.1: Permission denied (publickey).\n");
  cloud::Rental rental = machine_at(sshd.port());
  const cloud::Verdict verdict = meet(rental);
  EXPECT_EQ(verdict.kind, Kind::bad);
  EXPECT_EQ(verdict.error.message.find("a-0: not reached within 1 s: "), 0U)
      << verdict.error.message;
  EXPECT_EQ(meet(rental).kind, Kind::bad) << "sshd answers, so no firewall is in the way";
}

TEST_F(FirstContactTest, WhatIsTerminatedMeanwhileIsNotWaitedFor) {
  variables.clear();  // fifteen minutes of patience
  cloud::Rental rental = machine_at(closed_port());
  ASSERT_TRUE(world->journal().ask_to_end(rental.id));
  EXPECT_EQ(meet(rental).kind, Kind::bad);
}

}  // namespace
}  // namespace lockstep::rent
