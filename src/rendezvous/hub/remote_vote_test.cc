// Two agents of the `lockstep` backend and a process that only votes, over real sockets.
#include "rendezvous/hub/remote_vote.h"

#include "hub_backend_testing.h"

namespace lockstep::rendezvous::hub {
namespace {
using namespace testing;  // NOLINT

class RemoteVoteTest : public HubBackendTest {
 protected:
  RemoteVoteTest() {
    settings.min_nodes = 1;
    settings.close_timeout = 60s;  // longer than until() waits
    settings.token = "secret";
    settings.hosts = {{"127.0.0.1", port},
                      {"127.0.0.2", io::open_listener("127.0.0.1", 0, 1).value().port}};
    settings.is_host = true;
    a = &open("a");
    settings.is_host = false;
    settings.place = 1;
    b = &open("b");
    begin_voting();
    meet({a, b});
    until([&] { return voters(*a) == 3 && voters(*b) == 3; });
  }
  void begin_voting() {
    vote = std::make_unique<RemoteVote>(
        loop, RemoteVote::Settings{.run_id = "job",
                                   .token = "secret",
                                   .name = "the client",
                                   .way = [this](std::size_t host) {
                                     return host == cut ? 0 : settings.hosts.at(host).port;
                                   }});
  }
  // Returns the number of voters of the charter before, which a quorum has recorded.
  static std::size_t voters(const Agent& agent) {
    return agent.backend->member().witness()->charter().before.all.size();
  }
  void goes_on_alone(Agent& agent) {
    until([&] { return !agent.interruptions.empty(); });
    EXPECT_EQ(agent.interruptions[0].kind, Interruption::Kind::rejoin);
    join(agent);
    until([&] { return agent.placed(); });
    EXPECT_EQ(agent.round().group_world_size, 1);
  }

  Agent* a = nullptr;
  Agent* b = nullptr;
  std::size_t cut = 2;  // the host to which there is no way
  std::unique_ptr<RemoteVote> vote;
};

TEST_F(RemoteVoteTest, TheOtherNodeGoesOnWithoutTheHost) {
  a->backend.reset();  // as if killed
  goes_on_alone(*b);
  EXPECT_TRUE(b->backend->hosts());
}

TEST_F(RemoteVoteTest, TheHostGoesOnWithoutTheOtherNode) {
  b->backend.reset();
  goes_on_alone(*a);
}

TEST_F(RemoteVoteTest, TheHostGoesOnAfterTheVoteAndThenTheOtherNodeAreGone) {
  vote.reset();
  until([&] { return voters(*a) == 2; });
  EXPECT_TRUE(a->interruptions.empty());
  b->backend.reset();
  goes_on_alone(*a);
}

TEST_F(RemoteVoteTest, AVoteThatComesBackCounts) {
  vote.reset();
  until([&] { return voters(*a) == 2 && voters(*b) == 2; });
  begin_voting();
  until([&] { return voters(*a) == 3 && voters(*b) == 3; });
  a->backend.reset();
  goes_on_alone(*b);
}

TEST_F(RemoteVoteTest, WithoutAWayToTheOtherNodeThereIsNoSuccessor) {
  cut = 1;
  a->backend.reset();
  pass(2s);
  EXPECT_FALSE(b->backend->server() != nullptr && b->backend->server()->leads());
}

TEST_F(RemoteVoteTest, AWayThatDoesNotAnswerIsLeft) {
  const io::Listener silent = io::open_listener("127.0.0.1", 0, 8).value();
  const int hub = std::exchange(settings.hosts[1].port, silent.port);
  a->backend.reset();
  pass(100ms);  // the vote waits there
  settings.hosts[1].port = hub;
  goes_on_alone(*b);
}

// b has finished, and a finishes alone: the others may run another round by now.
TEST_F(RemoteVoteTest, AHostWithoutAQuorumEndsNoJobWell) {
  const HubServer& hub = *a->backend->server();
  const std::size_t guests = hub.counts().guests;
  finish(*b);
  // a's answer needs b's report, which follows b's finish on the same connection.
  for (Agent* agent : {a, b})
    agent->backend->exchange_reports({"x", agent->round().group_rank, "x"}, 5s,
                                     [agent](auto reports) { agent->reports = reports; });
  until([&] { return a->reports.has_value(); });
  b->backend.reset();
  vote.reset();
  // A vote does not count as a guest, but both connections are closed before this turn of the loop.
  until([&] { return hub.counts().guests == guests - 1; });
  finish(*a);
  until([&] { return a->finished || !a->interruptions.empty(); });
  EXPECT_FALSE(a->finished && *a->finished);
}

// Without its own node the hub can record nothing, and tells the end all the same.
TEST_F(RemoteVoteTest, AHostWhoseNodeHasLeftTellsTheOthersTheEnd) {
  const HubServer& hub = *a->backend->server();
  const std::size_t guests = hub.counts().guests;
  leave(*a, Departure::succeeded);
  until([&] { return hub.counts().guests == guests - 1; });
  finish(*b);
  until([&] { return b->finished || !b->interruptions.empty(); });
  EXPECT_TRUE(b->finished && *b->finished);
  EXPECT_TRUE(b->interruptions.empty());
}

TEST_F(RemoteVoteTest, AHostThatLeavesDoesNotWaitForTheVote) {
  leave(*b, Departure::succeeded);
  until([&] { return b->left.has_value(); });
  leave(*a, Departure::succeeded);
  until([&] { return a->left.has_value(); });
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
