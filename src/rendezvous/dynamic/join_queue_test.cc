// The queue's protocol over a store in memory, and whole agents queued behind dead nodes.
#include "rendezvous/dynamic/join_queue.h"

#include "rendezvous/dynamic/dynamic_backend_testing.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::dynamic {
namespace {
using namespace testing;  // NOLINT
using Kind = JoinQueue::Answer::Kind;

// Queues over the keys of one agent's place.
class JoinQueueTest : public DynamicBackendTest {
 protected:
  JoinQueueTest() : keys(open("host").place->keys()) {}

  struct Filed {
    std::unique_ptr<JoinQueue> queue;
    std::optional<JoinQueue::Answer> answer;
  };
  Filed& file(const std::string& wish, std::int64_t settled = 0) {
    Filed& filed = all.emplace_back();
    filed.queue = std::make_unique<JoinQueue>(keys, "q/");
    filed.queue->file(wish, settled, [&](auto answer) { filed.answer = answer; });
    until([&] { return filed.queue->ticket() > 0; });
    return filed;
  }
  JoinQueue::Batch collect(Filed& filed, std::int64_t settled) {
    std::optional<Result<JoinQueue::Batch>> got;
    filed.queue->collect(settled, [&](auto batch) { got = std::move(batch); });
    until([&] { return got.has_value(); });
    return got->value();
  }
  void put(const std::string& key, const std::string& value) {
    bool done = false;
    keys.set(key, value, [&](const Result<void>&) { done = true; });
    until([&] { return done; });
  }
  std::optional<std::string> at(const std::string& key) {
    std::optional<std::optional<std::string>> found;
    keys.probe(key, [&](const auto& value) { found = value.value(); });
    until([&] { return found.has_value(); });
    return *found;
  }
  void take_ticket(const std::string& prefix) {
    bool taken = false;
    keys.add(prefix + "tickets", 1, [&](const Result<std::int64_t>&) { taken = true; });
    until([&] { return taken; });
  }

  KeyValue& keys;
  std::deque<Filed> all;
};

TEST_F(JoinQueueTest, TheFirstActsForAllAndAllHearOfIt) {
  Filed& a = file("a");
  Filed& b = file("b");
  Filed& c = file("c");
  until([&] { return a.answer.has_value(); });
  EXPECT_EQ(a.answer->kind, Kind::act);
  const auto batch = collect(a, 0);
  EXPECT_EQ(batch.first, 1);
  EXPECT_EQ(batch.wishes, (std::vector<std::string>{"a", "b", "c"}));
  Filed& d = file("d");
  EXPECT_FALSE(b.answer || c.answer || d.answer);
  a.queue->answer(batch, {{Kind::wait, 7}, {Kind::wait, 7}, {Kind::look, 7}});
  until([&] { return b.answer && c.answer && d.answer; });
  EXPECT_EQ(b.answer->kind, Kind::wait);
  EXPECT_EQ(b.answer->change, 7);
  EXPECT_EQ(c.answer->kind, Kind::look);
  EXPECT_EQ(d.answer->kind, Kind::act) << "it is the next one";
  EXPECT_TRUE(d.queue->holds(3));
  EXPECT_FALSE(c.queue->holds(3));
}

TEST_F(JoinQueueTest, WhoeverLeavesTakesItsWishBackAndLetsTheNextOneAct) {
  Filed& a = file("a");
  Filed& b = file("b");
  until([&] { return a.answer.has_value(); });
  a.queue->leave(0);
  until([&] { return b.answer.has_value(); });
  EXPECT_EQ(b.answer->kind, Kind::act);
  EXPECT_EQ(collect(b, 0).wishes, (std::vector<std::string>{"void", "b"}));
}

TEST_F(JoinQueueTest, AGapIsWaitedForOnlyAtTheHead) {
  Filed& a = file("a");
  take_ticket("q/");  // this node dies before filing its wish
  Filed& c = file("c");
  EXPECT_EQ(collect(a, 0).wishes, std::vector<std::string>{"a"});
  EXPECT_EQ(collect(c, 1).wishes, std::vector<std::string>{"void"});
  EXPECT_EQ(collect(c, 2).wishes, std::vector<std::string>{"c"});
  EXPECT_TRUE(collect(c, 3).wishes.empty());
}

TEST_F(JoinQueueTest, NonsenseAsAnAnswerMakesANodeAct) {
  file("a");
  Filed& b = file("b");
  put("q/answer/2", "wait -5");
  until([&] { return b.answer.has_value(); });
  EXPECT_EQ(b.answer->kind, Kind::act);
}

TEST_F(JoinQueueTest, AWishThatComesTooLateIsNone) {
  put("q/wish/1", "void");  // another node has closed the gap
  JoinQueue queue(keys, "q/");
  std::optional<JoinQueue::Answer> answer;
  queue.file("a", 0, [&](auto told) { answer = told; });
  until([&] { return answer.has_value(); });
  EXPECT_EQ(answer->kind, Kind::act);
  EXPECT_FALSE(queue.holds(0));
}

TEST_F(JoinQueueTest, ASettledWishIsNotTakenBack) {
  Filed& a = file("a");
  a.queue->leave(1);
  EXPECT_EQ(at("q/wish/1"), "a");
  EXPECT_EQ(at("q/answer/2"), std::nullopt);
}

TEST_F(JoinQueueTest, ATicketThatIsNotWantedAnyMoreGetsNoWish) {
  JoinQueue queue(keys, "q/");
  queue.file("first", 0, [](auto) {});
  queue.file("second", 0, [](auto) {});
  until([&] { return queue.ticket() == 2; });
  EXPECT_EQ(at("q/wish/2"), "second");
  queue.file("third", 0, [](auto) {});
  queue.leave(0);
  EXPECT_EQ(at("q/tickets"), "3");
  EXPECT_EQ(at("q/wish/1"), std::nullopt);
  EXPECT_EQ(at("q/wish/3"), std::nullopt);
}

TEST_F(JoinQueueTest, OneWriteSettlesNoMoreThanSoMany) {
  constexpr std::int64_t kMost = 4096;
  Filed& a = file("a");
  KeyValue::Entries others;
  for (std::int64_t i = 2; i <= kMost + 1; ++i)
    others.emplace_back("q/wish/" + std::to_string(i), "x");
  keys.multi_set(others, nullptr);
  keys.add("q/tickets", kMost, nullptr);
  EXPECT_EQ(collect(a, 0).end(), kMost + 1);
}

// Otherwise another node would let the stopped agent into a round.
TEST_F(JoinQueueTest, AnAgentThatIsStoppedTakesItsWishBack) {
  const std::string queue = "torch.rendezvous.job/lockstep/";
  settings.dynamic.poll_interval = 10s;  // the patience with the first node in the queue
  take_ticket(queue);
  Agent& b = open("b");
  b.place->contended = true;
  join(b);
  until([&] { return at(queue + "wish/2").has_value(); });
  EXPECT_NE(at(queue + "wish/2"), "void");
  b.backend->leave(Departure::stopped, [&](const Result<void>& left) { b.left = left; });
  until([&] { return b.left.has_value(); });
  EXPECT_EQ(at(queue + "wish/2"), "void");
}

// The dead nodes leave a missing wish and a malformed one. The others go on after a short wait.
TEST_F(JoinQueueTest, AgentsBehindTheDeadComeInAllTheSame) {
  constexpr std::size_t kMany = 20;
  settings.dynamic.min_nodes = settings.dynamic.max_nodes = kMany;
  settings.dynamic.poll_interval = 100ms;  // the patience with the first node in the queue
  settings.dynamic.keep_alive_interval = 60s;
  agents.clear();
  for (std::size_t i = 0; i < kMany; ++i)
    open("n" + std::to_string(i));
  KeyValue& at = agents.front().place->keys();
  at.add("torch.rendezvous.job/lockstep/tickets", 2, nullptr);
  at.set("torch.rendezvous.job/lockstep/wish/2", "nonsense", nullptr);
  for (Agent& agent : agents)
    join(agent);
  until([&] {
    return std::all_of(agents.begin(), agents.end(),
                       [](const Agent& agent) { return agent.joined.has_value(); });
  });
  std::set<int> ranks;
  for (const Agent& agent : agents)
    ranks.insert(round(agent).group_rank);
  EXPECT_EQ(ranks.size(), kMany);
  EXPECT_EQ(round(agents.front()).number, 0);
}

}  // namespace
}  // namespace lockstep::rendezvous::dynamic
