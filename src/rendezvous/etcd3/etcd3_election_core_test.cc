#include "rendezvous/etcd3/etcd3_election_core.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace lockstep::rendezvous::etcd3 {
namespace {
using namespace std::chrono_literals;
using Core = Etcd3ElectionCore;
using Phase = Core::Phase;

// An election with a recording driver and a clock set by the test. This node's lease is 7 and lasts
// 3 s.
struct Etcd3ElectionCoreTest : public ::testing::Test {
  template <class T>
  static const T* is(const Core::Action& action) {
    return std::get_if<T>(&action);
  }
  static std::string name(const Core::Action& action) {
    const auto words = [](const Error& error) { return error.message; };
    if (is<Core::Grant>(action)) return "grant";
    if (const auto* to = is<Core::KeepAlive>(action))
      return "keep alive " + std::to_string(to->patience.count());
    if (is<Core::Campaign>(action)) return "campaign";
    if (const auto* to = is<Core::Watch>(action)) return "watch " + std::to_string(to->from);
    if (is<Core::StopWatch>(action)) return "stop watch";
    if (is<Core::GrantFacts>(action)) return "grant facts";
    if (is<Core::KeepFacts>(action)) return "keep facts";
    if (const auto* to = is<Core::PutFacts>(action))
      return "put " + to->text + " led " + std::to_string(to->led);
    if (const auto* to = is<Core::Started>(action))
      return "started" +
             (to->facts ? *to->facts ? " with facts" : "" : ": " + words(to->facts.error()));
    if (const auto* to = is<Core::Leader>(action))
      return to->place ? "leader " + to->place->addr : "no leader";
    if (const auto* to = is<Core::Elected>(action))
      return to->facts ? "elected with facts" : "elected";
    if (const auto* to = is<Core::Closed>(action)) return "closed: " + to->facts.why;
    if (is<Core::Deposed>(action)) return "deposed";
    if (const auto* to = is<Core::Unsure>(action)) return "unsure: " + words(to->error);
    if (is<Core::Sure>(action)) return "sure";
    if (const auto* to = is<Core::Lost>(action)) return "lost: " + words(to->error);
    if (const auto* to = is<Core::Stored>(action))
      return "stored " + std::to_string(to->ticket) +
             (to->status ? "" : ": " + words(to->status.error()));
    return "?";
  }
  std::string done() {
    std::string text;
    while (auto action = core.next_action())
      text += (text.empty() ? "" : ", ") + name(*action);
    return text;
  }

  static Etcd3Reply lease(std::int64_t ttl = 3) {
    Etcd3Reply reply;
    reply.lease = 7;
    reply.ttl = ttl;
    return reply;
  }
  static Etcd3Kv key(const std::string& value, std::int64_t create, std::int64_t of_lease) {
    Etcd3Kv kv;
    kv.value = value;
    kv.create_revision = create;
    kv.lease = of_lease;
    return kv;
  }
  static std::vector<Etcd3Kv> facts(bool closed = false) {
    Etcd3Facts facts;
    facts.round = 4;
    facts.closed = closed;
    facts.why = closed ? "done" : "";
    return {key(print_etcd3_facts(facts), 1, 9)};
  }
  // Returns the answer for a campaign that created the leader's key.
  static Etcd3Reply made(std::int64_t revision, std::vector<Etcd3Kv> known = {}) {
    Etcd3Reply reply;
    reply.revision = revision;
    reply.succeeded = true;
    reply.ranges = {{}, std::move(known)};
    return reply;
  }
  // Returns the answer for a key of another node.
  static Etcd3Reply taken(std::int64_t revision, Etcd3Kv kv, std::vector<Etcd3Kv> known = {}) {
    Etcd3Reply reply;
    reply.revision = revision;
    reply.ranges = {{std::move(kv)}, std::move(known)};
    return reply;
  }
  static Etcd3Event put(Etcd3Kv kv) {
    Etcd3Event event;
    event.kv = std::move(kv);
    return event;
  }
  static Etcd3Event deleted() {
    Etcd3Event event;
    event.deleted = true;
    return event;
  }
  static Etcd3Reply stored(bool succeeded = true) {
    Etcd3Reply reply;
    reply.succeeded = succeeded;
    return reply;
  }

  void stand() {
    core.start(now);
    EXPECT_EQ(done(), "grant");
    core.granted(lease(), now);
    EXPECT_EQ(done(), "campaign");
  }
  void lead() {
    stand();
    core.campaigned(made(5), now);
    EXPECT_EQ(done(), "watch 6, started, elected, no leader");
    EXPECT_TRUE(core.leads());
  }
  void follow() {
    stand();
    core.campaigned(taken(5, key("10.0.0.1:4", 3, 8)), now);
    EXPECT_EQ(done(), "watch 6, started, leader 10.0.0.1");
    EXPECT_EQ(core.phase(), Phase::following);
  }
  void wait(std::chrono::milliseconds time) {
    now += time;
    core.tick(now);
  }
  void renew() {
    wait(1000ms);
    EXPECT_EQ(done().substr(0, 10), "keep alive");
    core.kept_alive(lease(), now);
  }

  Core core{"job", "etcd at E"};
  io::TimePoint now{1000s};
};

// --- who leads ---

TEST_F(Etcd3ElectionCoreTest, TheKeyIsMadeAndItsPlaceShownOnce) {
  lead();
  EXPECT_EQ(core.led_revision(), 5);
  core.watched({put(key("", 5, 7))}, now);
  EXPECT_EQ(done(), "");
  core.watched({put(key("10.0.0.2:9", 5, 7))}, now);
  EXPECT_EQ(done(), "leader 10.0.0.2");
  core.watched({put(key("10.0.0.2:9", 5, 7))}, now);
  EXPECT_EQ(done(), "");
  core.watched({put(key("10.0.0.2", 5, 7))}, now);  // an address without a port is not a place
  EXPECT_EQ(done(), "no leader");
}

TEST_F(Etcd3ElectionCoreTest, TheKeyIsTakenAndComesFree) {
  follow();
  core.watched({deleted()}, now);
  EXPECT_EQ(done(), "no leader");
  core.tick(now);
  EXPECT_EQ(done(), "campaign");
  core.campaigned(made(9, facts()), now);
  EXPECT_EQ(done(), "watch 10, elected with facts, grant facts");
  EXPECT_EQ(core.phase(), Phase::leading);
}

TEST_F(Etcd3ElectionCoreTest, AKeyThatIsTakenAndNotShownIsAskedForAgainAfterAPause) {
  stand();
  Etcd3Reply gone = made(5);
  gone.succeeded = false;
  core.campaigned(gone, now);
  EXPECT_EQ(done(), "");
  wait(200ms);
  EXPECT_EQ(done(), "campaign");
  EXPECT_EQ(core.phase(), Phase::starting);
}

// Endless changes in a watch must not cause as many requests.
TEST_F(Etcd3ElectionCoreTest, OneCampaignAtATime) {
  follow();
  for (int i = 0; i < 3; ++i) {
    core.watched({deleted()}, now);
    core.gap(now);
    core.tick(now);
  }
  EXPECT_EQ(done(), "no leader, campaign");
  core.campaigned(taken(9, key("10.0.0.1:4", 8, 8)), now);
  core.tick(now);
  EXPECT_EQ(done(), "watch 10, leader 10.0.0.1, campaign");  // the key has changed since
  core.campaigned(taken(9, key("10.0.0.1:4", 8, 8)), now);
  core.tick(now);
  EXPECT_EQ(done(), "watch 10");
}

TEST_F(Etcd3ElectionCoreTest, APlaceThatIsTooLongIsNone) {
  stand();
  core.campaigned(taken(5, key(std::string(400, 'a') + ":4", 4, 8)), now);
  EXPECT_EQ(done(), "watch 6, started, no leader");
}

// The first answer is lost; the repetition finds the key created by the first attempt.
TEST_F(Etcd3ElectionCoreTest, ACampaignDoneTwiceLeadsAllTheSame) {
  stand();
  core.campaigned(taken(8, key("", 5, 7)), now);
  EXPECT_EQ(done(), "watch 9, started, elected, no leader");
  EXPECT_EQ(core.led_revision(), 5);
  core.campaigned(taken(8, key("", 5, 7)), now);
  EXPECT_EQ(done(), "watch 9");  // not elected twice
}

TEST_F(Etcd3ElectionCoreTest, ALeaderWhoseKeyIsDeletedIsDeposedAndStandsAgain) {
  lead();
  core.watched({deleted()}, now);
  EXPECT_EQ(done(), "deposed");
  EXPECT_FALSE(core.leads());
  EXPECT_EQ(core.led_revision(), 0);
  core.tick(now);
  EXPECT_EQ(done(), "campaign");
  core.campaigned(taken(9, key("10.0.0.1:4", 8, 8)), now);
  EXPECT_EQ(done(), "watch 10, leader 10.0.0.1");
}

TEST_F(Etcd3ElectionCoreTest, ALeaderSeesThatAnotherOneHasTakenOver) {
  lead();
  core.watched({deleted(), put(key("10.0.0.1:4", 8, 8))}, now);
  EXPECT_EQ(done(), "deposed, leader 10.0.0.1");
}

TEST_F(Etcd3ElectionCoreTest, AfterACompactionTheKeyIsLookedAt) {
  lead();
  core.gap(now);
  core.tick(now);
  EXPECT_EQ(done(), "campaign");
  core.campaigned(taken(9, key("10.0.0.1:4", 8, 8)), now);
  EXPECT_EQ(done(), "watch 10, deposed, leader 10.0.0.1");
}

TEST_F(Etcd3ElectionCoreTest, AJobThatIsOverIsTold) {
  follow();
  core.watched({deleted()}, now);
  core.tick(now);
  EXPECT_EQ(done(), "no leader, campaign");
  core.campaigned(made(9, facts(true)), now);
  EXPECT_EQ(done(), "watch 10, closed: done, elected with facts, grant facts");
}

TEST_F(Etcd3ElectionCoreTest, TheFirstCampaignMustSucceedAndLaterOnesAreTriedAgain) {
  stand();
  core.campaigned(fail(Errc::unavailable, "E"), now);
  EXPECT_EQ(done(), "started: rendezvous in etcd (job): E");
  EXPECT_EQ(core.phase(), Phase::over);
  EXPECT_EQ(core.next_time(), std::nullopt);
  core = Core("job", "etcd at E");
  follow();
  core.campaigned(fail(Errc::unavailable, "E"), now);
  EXPECT_EQ(done(), "");
  wait(199ms);
  EXPECT_EQ(done(), "");
  wait(1ms);
  EXPECT_EQ(done(), "campaign");
}

TEST_F(Etcd3ElectionCoreTest, NonsenseIsNamed) {
  core.start(now);
  core.granted(lease(0), now);
  EXPECT_EQ(done(),
            "grant, started: rendezvous in etcd (job): etcd has granted a lease without an id or "
            "a duration");
  core = Core("job", "etcd at E");
  core.start(now);
  Etcd3Reply none = lease();
  none.lease = 0;
  core.granted(none, now);
  EXPECT_EQ(done(),
            "grant, started: rendezvous in etcd (job): etcd has granted a lease without an id or "
            "a duration");
  core = Core("job", "etcd at E");
  stand();
  Etcd3Reply less = made(5);
  less.ranges.pop_back();
  core.campaigned(less, now);
  EXPECT_EQ(
      done(),
      "started: rendezvous in etcd (job): etcd's answer to a transaction does not have the two "
      "parts asked for");
}

// --- the lease ---

TEST_F(Etcd3ElectionCoreTest, TheLeaseIsRenewedAtEachThird) {
  lead();
  wait(999ms);
  EXPECT_EQ(done(), "");
  wait(1ms);
  EXPECT_EQ(done(), "keep alive 2000");
  now += 300ms;
  core.kept_alive(lease(), now);
  EXPECT_EQ(core.next_time(), now + 700ms);  // counts from the request
}

TEST_F(Etcd3ElectionCoreTest, WithoutAnAnswerItIsUnsureAndThenLost) {
  lead();
  wait(1000ms);
  done();
  wait(1000ms);
  EXPECT_EQ(done(), "unsure: etcd at E has not answered for 1000 ms");
  core.kept_alive(lease(), now);
  EXPECT_EQ(done(), "sure");
  wait(1ms);  // the answer is older than a third already: renew again
  EXPECT_EQ(done(), "keep alive 1999");
  wait(999ms);
  EXPECT_EQ(done(), "");
  wait(1ms);
  EXPECT_EQ(done(), "unsure: etcd at E has not answered for 1000 ms");
  wait(999ms);
  EXPECT_EQ(done(),
            "lost: etcd was out of reach for longer than the lease: etcd at E has not answered for "
            "3 s, stop watch");
  EXPECT_FALSE(core.leads());
  core.watched({put(key("x:1", 5, 7))}, now);
  core.gap(now);
  core.campaigned(made(9), now);
  core.kept_alive(lease(), now);
  EXPECT_EQ(done(), "");
  EXPECT_EQ(core.next_time(), std::nullopt);
}

TEST_F(Etcd3ElectionCoreTest, ALeaseThatEtcdDoesNotKnowIsLost) {
  follow();
  wait(1000ms);
  core.kept_alive(lease(0), now);
  EXPECT_EQ(done(),
            "keep alive 2000, lost: etcd at E: the lease of this node has run out, stop watch");
}

TEST_F(Etcd3ElectionCoreTest, AProcessThatDidNotRunSaysSo) {
  lead();
  wait(5s);
  EXPECT_EQ(
      done(),
      "keep alive 1, lost: this process did not run for 4.0 s (it was stopped, or the machine "
      "was): the lease of this node in etcd, 3 s, has run out, stop watch");
}

TEST_F(Etcd3ElectionCoreTest, AProcessThatDidNotRunDoesNotBlameEtcd) {
  lead();
  wait(1000ms);
  EXPECT_EQ(done(), "keep alive 2000");
  wait(4s);
  EXPECT_EQ(done().find("lost: this process did not run for 3.0 s"), 0U);
  // This node is not blamed for a sleep that it has made up for.
  core = Core("job", "etcd at E");
  lead();
  for (int i = 0; i < 2; ++i) {
    wait(1600ms);
    EXPECT_EQ(done(), "keep alive 1400");
    if (i == 0) core.kept_alive(lease(), now);
  }
  wait(1000ms);
  EXPECT_EQ(done(), "unsure: etcd at E has not answered for 1000 ms");
}

TEST_F(Etcd3ElectionCoreTest, ALeaseLastsNoLongerThanADay) {
  core.start(now);
  core.granted(lease(std::int64_t{1} << 60), now);
  EXPECT_EQ(core.next_time(), now + 8h);  // a third of the lease
}

// --- the job's facts ---

TEST_F(Etcd3ElectionCoreTest, FactsAreWrittenOneAfterTheOtherUnderALeaseOfTheirOwn) {
  lead();
  EXPECT_EQ(core.put_facts("a"), 1U);
  EXPECT_EQ(core.put_facts("b"), 2U);
  EXPECT_EQ(done(), "grant facts");
  core.facts_granted(lease(), now);
  EXPECT_EQ(done(), "put a led 5");
  core.facts_put(stored());
  EXPECT_EQ(done(), "stored 1, put b led 5");
  core.facts_put(fail(Errc::unavailable, "E"));
  EXPECT_EQ(done(), "stored 2: rendezvous in etcd (job): E");
  core.put_facts("c");
  core.facts_put(stored(false));
  EXPECT_EQ(done(),
            "put c led 5, stored 3: this node does not lead the rendezvous in etcd any more");
}

TEST_F(Etcd3ElectionCoreTest, FactsAreTheLeadersAlone) {
  const std::string no = ": this node does not lead the rendezvous in etcd any more";
  follow();
  core.put_facts("a");
  EXPECT_EQ(done(), "stored 1" + no);
  core = Core("job", "etcd at E");
  lead();
  core.put_facts("a");
  core.put_facts("b");
  core.watched({deleted()}, now);
  EXPECT_EQ(done(), "grant facts, deposed");
  core.facts_granted(lease(), now);
  EXPECT_EQ(done(), "stored 1" + no + ", stored 2" + no);
}

TEST_F(Etcd3ElectionCoreTest, FactsOfAnEarlierLeadAreNotWritten) {
  const std::string no = ": this node does not lead the rendezvous in etcd any more";
  lead();
  core.put_facts("a");
  core.put_facts("b");
  core.watched({deleted()}, now);
  core.tick(now);
  EXPECT_EQ(done(), "grant facts, deposed, campaign");
  core.campaigned(made(9), now);
  core.put_facts("c");
  EXPECT_EQ(done(), "watch 10, elected");
  core.facts_granted(lease(), now);
  EXPECT_EQ(done(), "stored 1" + no + ", stored 2" + no + ", put c led 9");
}

TEST_F(Etcd3ElectionCoreTest, TheLeaseOfTheFactsIsKeptAliveHourByHour) {
  lead();
  core.put_facts("a");
  core.facts_granted(lease(), now);
  core.facts_put(stored());
  done();
  int kept = 0;
  for (int i = 0; i < 3700; ++i) {
    renew();
    kept += done() == "keep facts" ? 1 : 0;
  }
  EXPECT_EQ(kept, 1);
}

TEST_F(Etcd3ElectionCoreTest, AfterResigningOnlyWhoWaitsForFactsIsTold) {
  lead();
  core.put_facts("a");
  core.watched({put(key("10.0.0.2:9", 5, 7))}, now);
  core.resign();
  EXPECT_EQ(done(), "stop watch");
  core.facts_granted(lease(), now);
  EXPECT_EQ(done(), "stored 1: this node does not lead the rendezvous in etcd any more");
  core.campaigned(made(9), now);
  EXPECT_EQ(done(), "");
}

}  // namespace
}  // namespace lockstep::rendezvous::etcd3
