// Agents of the c10d backend with store_type=file on one loop, over a real file.
#include "rendezvous/dynamic/file_place.h"

#include "io/fd.h"
#include "io/loop_testing.h"
#include "rendezvous/dynamic/dynamic_backend.h"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <unistd.h>

#include <deque>
#include <filesystem>

namespace lockstep::rendezvous::dynamic {
namespace {
using namespace std::chrono_literals;

struct Agent {
  std::unique_ptr<DynamicBackend> backend;
  std::optional<Result<void>> opened;
  std::optional<Result<std::optional<Round>>> joined;
  std::optional<Result<void>> finished;
  std::optional<Result<void>> left;
  std::optional<Interruption> interrupted;
};

class FilePlaceTest : public ::testing::Test {
 protected:
  FilePlaceTest() {
    char name[] = "/tmp/file_place_test_XXXXXX";
    folder = mkdtemp(name);
    path = folder + "/store";
    settings.run_id = "job";
    settings.dynamic.min_nodes = 2;
    settings.dynamic.max_nodes = 2;
    settings.dynamic.last_call_timeout = 60ms;
    settings.read_timeout = 5000ms;
  }
  ~FilePlaceTest() override { std::filesystem::remove_all(folder); }
  Agent& open(const std::string& name) {
    Agent& agent = agents.emplace_back();
    settings.offer.host = name;
    agent.backend = std::make_unique<DynamicBackend>(
        loop,
        std::make_unique<FilePlace>(
            loop, FilePlaceSettings{.path = path, .run_id = "job", .local_addr = name}),
        settings, [](const std::string& addr) {
          return StorePlace{addr, 4711};
        });
    agent.backend->on_interruption([&](const Interruption& what) { agent.interrupted = what; });
    agent.backend->open([&](Result<void> done) { agent.opened = std::move(done); });
    until([&] { return agent.opened.has_value(); });
    return agent;
  }
  void join(Agent& agent) {
    agent.joined.reset();
    agent.backend->join([&](auto result) { agent.joined = std::move(result); });
  }
  template <class Fact>
  void until(Fact fact) {
    ASSERT_TRUE(io::run_until(loop, fact));
  }

  io::Loop loop;
  std::string folder;
  std::string path;
  DynamicBackendSettings settings;
  std::deque<Agent> agents;
};

TEST_F(FilePlaceTest, TwoMeetFailFinishAndLeave) {
  settings.offer.local_world_size = 2;
  Agent& b = open("b");
  Agent& a = open("a");
  ASSERT_TRUE(*a.opened) << a.opened->error().message;
  join(a);
  join(b);
  until([&] { return a.joined && b.joined; });
  const Round& round = a.joined->value().value();
  EXPECT_EQ(round.world_size, 4);
  EXPECT_EQ(round.master_addr, "a");
  EXPECT_EQ(b.joined->value()->base_rank, 2);
  a.backend->tell_failure("rank 0 failed", false);
  until([&] { return b.interrupted.has_value(); });
  EXPECT_EQ(b.interrupted->why, "rank 0 failed");
  join(a);
  join(b);
  until([&] { return a.joined && b.joined; });
  EXPECT_EQ(b.joined->value()->restarts, 1);
  for (Agent* agent : {&a, &b})
    agent->backend->finish([agent](Result<void> done) { agent->finished = std::move(done); });
  until([&] { return a.finished && b.finished; });
  EXPECT_TRUE(*a.finished);
  for (Agent* agent : {&a, &b})
    agent->backend->leave(Departure::succeeded,
                          [agent](Result<void> done) { agent->left = std::move(done); });
  until([&] { return a.left && b.left; });
  EXPECT_TRUE(*a.left);
  EXPECT_TRUE(*b.left);
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
}

TEST_F(FilePlaceTest, ALostFileEndsTheJob) {
  Agent& a = open("a");
  Agent& b = open("b");
  join(a);
  join(b);
  until([&] { return a.joined && b.joined; });
  ASSERT_EQ(unlink(path.c_str()), 0);
  until([&] { return a.interrupted && b.interrupted; });
  EXPECT_EQ(a.interrupted->kind, Interruption::Kind::end);
  EXPECT_NE(a.interrupted->why.find("the file " + path), std::string::npos) << a.interrupted->why;
}

TEST_F(FilePlaceTest, AForeignFileFailsTheOpening) {
  ASSERT_TRUE(io::write_file(path, "root:x:0:0:root:/root:/bin/bash\n"));
  Agent& a = open("a");
  ASSERT_FALSE(*a.opened);
  EXPECT_EQ(a.opened->error().code, Errc::corrupt);
  EXPECT_EQ(io::read_file(path), "root:x:0:0:root:/root:/bin/bash\n");
}

}  // namespace
}  // namespace lockstep::rendezvous::dynamic
