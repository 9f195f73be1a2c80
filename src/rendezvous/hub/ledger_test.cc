// Which hub may decide for a job, however the network is split.
#include "rendezvous/hub/ledger.h"

#include "rendezvous/hub/quorum_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

namespace lockstep::rendezvous::hub {
namespace {

Nonce agent(int number) {
  Nonce nonce{};
  nonce[0] = static_cast<std::uint8_t>(number + 1);
  return nonce;
}

Voters voters(const std::vector<int>& numbers) {
  Voters of;
  of.first = agent(numbers.front());
  for (const int number : numbers)
    of.all.push_back({agent(number), static_cast<std::uint32_t>(number)});
  return of;
}

TEST(Quorum, IsMoreThanHalfOrHalfWithTheHost) {
  EXPECT_TRUE(is_quorum(voters({0, 1, 2}), {agent(1), agent(2)}));
  EXPECT_FALSE(is_quorum(voters({0, 1, 2}), {agent(0)}));
  EXPECT_TRUE(is_quorum(voters({0, 1}), {agent(0)}));
  EXPECT_FALSE(is_quorum(voters({0, 1}), {agent(1)}));
  EXPECT_TRUE(is_quorum(voters({0, 1, 2, 3}), {agent(0), agent(3)}));
  EXPECT_FALSE(is_quorum(voters({0, 1, 2, 3}), {agent(1), agent(2)}));
  EXPECT_FALSE(is_quorum(voters({0, 1, 2}), {agent(7), agent(8)}));
  EXPECT_FALSE(is_quorum({}, {agent(0)}));
}

TEST(Terms, OfTwoNodesAreNeverTheSame) {
  EXPECT_GT(next_term(0, {}), 0U);
  for (const int number : {0, 1, 254}) {
    EXPECT_GT(next_term(next_term(0, agent(3)), agent(number)), next_term(0, agent(3)));
    EXPECT_EQ(next_term(12'345'678, agent(number)) % (1ULL << 40U),
              next_term(0, agent(number)) % (1ULL << 40U));
    EXPECT_NE(next_term(5, agent(number)), next_term(5, agent(number - 1)));
  }
}

TEST(Witness, TakesNothingOlderThanItHasPromised) {
  Witness witness(4);
  Charter charter;
  charter.term = 5;
  charter.version = 1;
  EXPECT_EQ(std::get<Agreed>(witness.take(charter)), (Agreed{5, 1}));
  EXPECT_EQ(witness.testify({9}), (Testimony{9, 4, charter}));
  charter.version = 2;
  EXPECT_EQ(std::get<Testimony>(witness.take(charter)).promised, 9U);
  EXPECT_EQ(witness.charter().version, 1U);
  EXPECT_EQ(witness.testify({7}).promised, 9U);
  charter.term = 9;
  EXPECT_TRUE(std::holds_alternative<Agreed>(witness.take(charter)));
  EXPECT_TRUE(std::holds_alternative<Agreed>(witness.take(charter)));  // a repetition
}

TEST(Witness, ForgetsTheCharterOfAnotherJob) {
  Witness witness(4);
  Charter charter;
  charter.term = 5;
  (void)witness.take(charter);
  witness.forget();
  EXPECT_EQ(witness.testify({2}), (Testimony{2, 4, {}}));
}

// Nodes and hubs on a network that may lose messages. Each node is connected to one hub at a time.
struct World {
  struct Node {
    Witness witness;
    int hub = -1;
    PeerId peer = 0;
  };
  struct Letter {
    int from = 0;  // a node, or the node of a hub if to_hub is false
    int to = 0;
    PeerId peer = 0;
    bool to_hub = false;
    Frame frame;
  };

  // lists: the nodes have no list of hosts, and the hub makes one of their addresses.
  explicit World(int count, bool with_lists = false) : lists(with_lists) {
    for (int i = 0; i < count; ++i)
      add();
  }
  void add() {
    const auto number = nodes.size();
    Witness witness(lists ? kNoPlace : static_cast<std::uint32_t>(number));
    if (lists) witness.set_hub({"n" + std::to_string(number), 29400});
    nodes.push_back({std::move(witness)});
    hubs.resize(nodes.size());
  }

  void open(int at, bool takes_over) {
    close(at);
    hubs[static_cast<std::size_t>(at)] = std::make_unique<Ledger>(
        Ledger::Settings{.host = agent(at),
                         .after = nodes[static_cast<std::size_t>(at)].witness.promised(),
                         .takes_over = takes_over,
                         .lists_hosts = lists});
  }
  void close(int at) {
    hubs[static_cast<std::size_t>(at)].reset();
    for (auto& node : nodes)
      if (node.hub == at) node.hub = -1;
  }
  void leave(int number) {
    Node& node = nodes[static_cast<std::size_t>(number)];
    if (node.hub >= 0 && hub(node.hub) != nullptr) hub(node.hub)->lose(node.peer);
    node.hub = -1;
  }
  // With `late` the old hub notices the node's departure later, or never.
  void go(int number, int to, bool late = false) {
    Node& node = nodes[static_cast<std::size_t>(number)];
    if (late) node.hub = -1;
    leave(number);
    node.hub = to;
    node.peer = ++peers;
    if (hub(to) != nullptr) hub(to)->arrive(node.peer, agent(number));
  }
  Ledger* hub(int at) { return hubs[static_cast<std::size_t>(at)].get(); }

  void collect() {
    for (int at = 0; at < static_cast<int>(hubs.size()); ++at) {
      if (hub(at) == nullptr) continue;
      for (auto& output : hub(at)->take_output())
        mail.push_back({at, 0, output.to, false, std::move(output.frame)});
      if (const auto round = hub(at)->take_permitted()) permitted.emplace_back(*round, at);
    }
  }
  void deliver(Letter letter) {
    if (letter.to_hub) {
      Ledger* to = hub(letter.to);
      if (to == nullptr) return;
      if (const auto* testimony = std::get_if<Testimony>(&letter.frame))
        to->take(letter.peer, *testimony);
      if (const auto* agreed = std::get_if<Agreed>(&letter.frame)) to->take(letter.peer, *agreed);
      return;
    }
    for (auto& node : nodes) {
      if (node.peer != letter.peer || node.hub != letter.from) continue;
      if (const auto* call = std::get_if<Call>(&letter.frame))
        mail.push_back({0, letter.from, letter.peer, true, node.witness.testify(*call)});
      if (const auto* charter = std::get_if<Charter>(&letter.frame))
        mail.push_back({0, letter.from, letter.peer, true, node.witness.take(*charter)});
    }
  }
  void settle() {
    for (collect(); !mail.empty(); collect()) {
      Letter first = std::move(mail.front());
      mail.erase(mail.begin());
      deliver(std::move(first));
    }
  }
  static PermitRequest round(std::int64_t number) {
    PermitRequest request;
    request.round = number;
    return request;
  }

  bool lists;
  std::vector<Node> nodes;
  std::vector<std::unique_ptr<Ledger>> hubs;
  std::vector<Letter> mail;
  std::vector<std::pair<std::int64_t, int>> permitted;  // round and permitting hub
  PeerId peers = 0;
};

// Returns a job of `count` nodes at node 0's hub, with the first round recorded.
World begun(int count, bool lists = false) {
  World world(count, lists);
  world.open(0, false);
  for (int i = 0; i < count; ++i)
    world.go(i, 0);
  world.settle();
  world.hub(0)->write(World::round(0));
  world.settle();
  EXPECT_EQ(world.permitted, (std::vector<std::pair<std::int64_t, int>>{{0, 0}}));
  return world;
}

TEST(Ledger, ARoundIsWrittenDownByAQuorumBeforeItIsPermitted) {
  World world(3);
  world.open(0, false);
  for (int i = 0; i < 3; ++i)
    world.go(i, 0);
  world.settle();
  EXPECT_TRUE(world.hub(0)->leads());
  world.hub(0)->write(World::round(0));
  world.collect();
  EXPECT_TRUE(world.permitted.empty());
  world.settle();
  EXPECT_EQ(world.permitted.size(), 1U);
  for (const auto& node : world.nodes)
    EXPECT_EQ(node.witness.charter().round, 0);
}

TEST(Ledger, TheNextHostGoesOnWhereTheLastOneWas) {
  World world = begun(3);
  world.close(0);
  world.open(1, true);
  world.go(1, 1);
  world.settle();
  EXPECT_FALSE(world.hub(1)->leads());  // one of three nodes
  world.go(2, 1);
  world.settle();
  ASSERT_TRUE(world.hub(1)->leads());
  EXPECT_EQ(world.hub(1)->left().round, 0);
  EXPECT_EQ(world.hub(1)->left().now.first, agent(0));
  world.hub(1)->write(World::round(1));
  world.settle();
  EXPECT_EQ(world.permitted.back(), (std::pair<std::int64_t, int>{1, 1}));
  EXPECT_EQ(world.nodes[2].witness.charter().now, voters({1, 2}));
  EXPECT_EQ(world.nodes[2].witness.charter().before, voters({1, 2}));
}

TEST(Ledger, OfFourNodesTwoMayGoOneAfterTheOther) {
  World world = begun(4);
  world.close(0);
  world.open(1, true);
  for (const int node : {1, 2, 3})
    world.go(node, 1);
  world.settle();
  ASSERT_TRUE(world.hub(1)->leads());
  world.close(1);
  world.open(2, true);
  for (const int node : {2, 3})
    world.go(node, 2);
  world.settle();
  EXPECT_TRUE(world.hub(2)->leads());
}

TEST(Ledger, OfTwoNodesTheOneThatHostsGoesOn) {
  World world = begun(2);
  world.leave(1);
  world.settle();
  EXPECT_TRUE(world.hub(0)->has_quorum());
  world.hub(0)->write(World::round(1));
  world.settle();
  EXPECT_EQ(world.permitted.back().first, 1);
  world.open(1, true);
  world.go(1, 1);
  world.settle();
  EXPECT_FALSE(world.hub(1)->leads());
}

TEST(Ledger, AHubThatIsCutOffDecidesNothingAndHearsOfItsSuccessor) {
  World world = begun(3);
  world.leave(1);
  world.leave(2);
  world.settle();
  EXPECT_FALSE(world.hub(0)->has_quorum());
  EXPECT_EQ(world.hub(0)->count(), "1 of 3 nodes");
  world.hub(0)->write(World::round(1));
  world.settle();
  EXPECT_EQ(world.permitted.size(), 1U);
  world.open(1, true);
  world.go(1, 1);
  world.go(2, 1);
  world.settle();
  EXPECT_TRUE(world.hub(1)->leads());
  world.go(2, 0);
  world.settle();
  EXPECT_TRUE(world.hub(0)->deposed());
}

// A node comes back after promising its vote to a hub that never came to lead.
TEST(Ledger, AHubThatLeadsAsksForALaterTerm) {
  World world = begun(3);
  world.open(1, true);
  world.go(1, 1);
  world.settle();
  EXPECT_FALSE(world.hub(1)->leads());
  world.close(1);
  world.go(1, 0);
  world.settle();
  EXPECT_FALSE(world.hub(0)->deposed());
  world.hub(0)->write(World::round(1));
  world.settle();
  EXPECT_EQ(world.permitted.back(), (std::pair<std::int64_t, int>{1, 0}));
  EXPECT_EQ(world.nodes[1].witness.charter().round, 1);
}

// Nodes 1 and 2 go on. Node 2 loses its connection, and is back before the hub has decided
// anything. The voters are the same, but node 2 waits for a charter to know that its search is
// over.
TEST(Ledger, ANodeThatComesBackGetsTheCharterAgain) {
  World world = begun(3);
  world.go(2, 0, true);
  world.collect();
  std::size_t charters = 0;
  while (!world.mail.empty()) {
    World::Letter letter = std::move(world.mail.front());
    world.mail.erase(world.mail.begin());
    charters += std::holds_alternative<Charter>(letter.frame) ? 1 : 0;
    world.deliver(std::move(letter));
    world.collect();
  }
  EXPECT_EQ(charters, 1U);
}

// Hub 1 wins the promises of a quorum. Node 2 loses its connection, and the charter with it.
TEST(Ledger, ANewHubAsksANodeThatComesBackToAgree) {
  World world = begun(3);
  world.close(0);
  world.open(1, true);
  world.go(1, 1);
  world.go(2, 1);
  const auto charter_is_sent = [&world] {
    return std::any_of(world.mail.begin(), world.mail.end(), [](const World::Letter& letter) {
      return std::holds_alternative<Charter>(letter.frame);
    });
  };
  for (world.collect(); !charter_is_sent(); world.collect()) {
    World::Letter letter = std::move(world.mail.front());
    world.mail.erase(world.mail.begin());
    world.deliver(std::move(letter));
  }
  world.go(2, 1, true);
  world.settle();
  EXPECT_TRUE(world.hub(1)->leads());
}

// The new hub's own node has ended its search when the charter came. So the hub itself must notice.
TEST(QuorumWatch, EndsAHubThatLosesAVoterWhileItRecordsThatItLeads) {
  World world = begun(3);
  world.close(0);
  world.open(1, true);
  world.go(1, 1);
  world.go(2, 1);
  for (world.collect(); !world.hub(1)->recording(); world.collect()) {
    World::Letter letter = std::move(world.mail.front());
    world.mail.erase(world.mail.begin());
    world.deliver(std::move(letter));
  }
  world.leave(2);
  world.settle();
  QuorumWatch watch(Ms(2'500));
  const Time now{};
  EXPECT_FALSE(watch.must_give_up(*world.hub(1), world.hub(1)->leads(), now));
  EXPECT_FALSE(watch.must_give_up(*world.hub(1), world.hub(1)->leads(), now + Ms(3'400)));
  EXPECT_TRUE(watch.must_give_up(*world.hub(1), world.hub(1)->leads(), now + Ms(3'500)));
}

TEST(Ledger, AHostThatWasStartedAnewKnowsThatItsJobIsElsewhere) {
  World world = begun(3);
  world.nodes[0].witness = Witness(0);
  world.open(0, false);
  world.go(0, 0);
  world.go(1, 0);
  world.settle();
  EXPECT_TRUE(world.hub(0)->deposed());
}

TEST(Ledger, AnAgentThatIsNewHasNoVoteYet) {
  World world = begun(3);
  world.close(0);
  world.add();
  world.open(1, true);
  world.go(1, 1);
  world.go(3, 1);
  world.settle();
  EXPECT_FALSE(world.hub(1)->leads());
}

// --- the list of hosts, of nodes that were given one endpoint ---

// Returns the voters' addresses, in the order of the voters.
std::vector<std::string> listed(const Charter& charter) {
  std::vector<std::string> addresses;
  for (const Voter& voter : charter.now.all)
    addresses.push_back(voter.place < charter.hosts.size() ? charter.hosts[voter.place].host
                                                           : "none");
  return addresses;
}

TEST(HostList, IsWrittenByTheFirstHubBeforeTheFirstRound) {
  World world = begun(3, true);
  for (const auto& node : world.nodes)
    EXPECT_EQ(listed(node.witness.charter()), (std::vector<std::string>{"n0", "n1", "n2"}));
}

TEST(HostList, IsContinuedByTheNextHub) {
  World world = begun(3, true);
  world.close(0);
  world.open(1, true);
  world.go(1, 1);
  world.go(2, 1);
  world.settle();
  ASSERT_TRUE(world.hub(1)->leads());
  world.hub(1)->write(World::round(1));
  world.settle();
  EXPECT_EQ(listed(world.nodes[2].witness.charter()), (std::vector<std::string>{"n1", "n2"}));
  // The lost host has kept its place, by which the other nodes know the host.
  world.go(0, 1);
  world.settle();
  EXPECT_EQ(listed(world.nodes[2].witness.charter()), (std::vector<std::string>{"n1", "n0", "n2"}));
  EXPECT_EQ(world.nodes[2].witness.charter().hosts.size(), 3U);
}

TEST(HostList, StaysShortWhenNodesAreReplaced) {
  World world = begun(3, true);
  for (int turn = 0; turn < 20; ++turn) {
    world.leave(static_cast<int>(world.nodes.size()) - 1);
    world.settle();
    world.add();
    world.go(static_cast<int>(world.nodes.size()) - 1, 0);
    world.settle();
  }
  EXPECT_EQ(listed(world.nodes[0].witness.charter()).back(), "n22");
  EXPECT_LE(world.nodes[0].witness.charter().hosts.size(), 4U);
}

TEST(HostList, HasNoPlaceForANodeThatCannotHost) {
  World world(3, true);
  world.nodes[2].witness.set_hub({});
  world.open(0, false);
  for (int i = 0; i < 3; ++i)
    world.go(i, 0);
  world.settle();
  world.hub(0)->write(World::round(0));
  world.settle();
  EXPECT_EQ(listed(world.nodes[0].witness.charter()),
            (std::vector<std::string>{"n0", "n1", "none"}));
}

TEST(HostList, IsBoundedByTheVoters) {
  World world(70, true);
  world.open(0, false);
  for (int i = 0; i < 70; ++i)
    world.go(i, 0);
  world.settle();
  world.hub(0)->write(World::round(0));
  world.settle();
  EXPECT_EQ(world.nodes[0].witness.charter().now.all.size(), kMaxVoters);
  EXPECT_EQ(world.nodes[0].witness.charter().hosts.size(), kMaxVoters);
}

// Nodes move and messages get lost at random. Invariants: no number is given to two rounds, and
// every later decision builds on the recorded round.
TEST(LedgerSimulation, NoTwoHubsEverDecideTheSame) {
  constexpr int kNodes = 5;
  std::size_t rounds = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](int below) {
      return static_cast<int>(random() % static_cast<unsigned>(below));
    };
    World world = begun(kNodes, seed % 2 == 1);
    int favourite = 0;  // most nodes move there for a while
    for (int turn = 0; turn < 1500; ++turn) {
      world.collect();
      const int dice = pick(100);
      if (dice < 80) {
        if (world.mail.empty()) continue;
        // Each connection keeps the order of its messages.
        const auto at = static_cast<std::size_t>(pick(static_cast<int>(world.mail.size())));
        auto first = std::find_if(world.mail.begin(), world.mail.end(), [&](const auto& letter) {
          return letter.peer == world.mail[at].peer && letter.to_hub == world.mail[at].to_hub;
        });
        World::Letter letter = std::move(*first);
        world.mail.erase(first);
        world.deliver(std::move(letter));
      } else if (dice < 88) {
        const int node = pick(kNodes);
        const int to = pick(8) == 0 ? pick(kNodes) : favourite;
        if (world.nodes[static_cast<std::size_t>(node)].hub != to) world.go(node, to, pick(2) == 0);
      } else if (dice < 89) {
        if (pick(4) == 0) favourite = pick(kNodes);
        if (world.hub(favourite) == nullptr) world.open(favourite, true);
      } else if (dice < 90) {
        if (pick(8) == 0) world.close(pick(kNodes));
      } else {
        const int at = pick(kNodes);
        Ledger* hub = world.hub(at);
        if (hub != nullptr && hub->leads()) hub->write(World::round(hub->charter().round + 1));
      }
    }
    std::map<std::int64_t, int> by;
    for (const auto& [round, hub] : world.permitted) {
      const auto [known, fresh] = by.emplace(round, hub);
      EXPECT_EQ(known->second, hub) << "round " << round << ", seed " << seed;
    }
    rounds += by.size();
  }
  EXPECT_GT(rounds, 1000U);
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
