#include "jobs/on_slurm/slurm_bad_nodes.h"

#include "base/clock_ms.h"
#include "base/error_testing.h"
#include "jobs/on_slurm/slurm_world_testing.h"
#include "slurm/bad_node_file.h"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

namespace lockstep::jobs::on_slurm {
namespace {

using Names = std::vector<std::string>;

std::string excluded(const Names& words, const Names& names, Names& added) {
  const auto read = slurm::read_settings(words);
  const auto settings = with_excluded(read->settings, names, added);
  const slurm::Setting* setting = slurm::find_setting(settings, "exclude");
  return setting == nullptr ? "" : setting->value;
}

TEST(SlurmBadNodes, AreAddedToTheUsersOwn) {
  Names added;
  EXPECT_EQ(excluded({"-N2"}, {"n1", "n2"}, added), "n1,n2");
  EXPECT_EQ(added, (Names{"n1", "n2"}));
  EXPECT_EQ(excluded({"-x", "n[1-3]"}, {"n2", "n5"}, added), "n[1-3],n5");
  EXPECT_EQ(added, Names{"n5"});
  EXPECT_EQ(excluded({"-x", "n1"}, {"n1"}, added), "n1");
  EXPECT_TRUE(added.empty());
}

TEST(SlurmBadNodes, ThoseThatTheUserNamesAreUsed) {
  Names added;
  EXPECT_EQ(excluded({"-w", "n[1-2]"}, {"n2", "n3"}, added), "n3");
  EXPECT_EQ(excluded({"-w", "n2"}, {"n2"}, added), "");
}

// A client and a login host. The host's end answers in this process, with another state folder.
class BadNodesThere : public ::testing::Test {
 protected:
  BadNodesThere() {
    std::filesystem::remove_all(top_);
    setenv("XDG_STATE_HOME", (top_ + "here").c_str(), 1);
    note(top_ + "here/lockstep", "n1");
    note(top_ + "there/lockstep", "n2");
  }
  ~BadNodesThere() override { unsetenv("XDG_STATE_HOME"); }

  static void note(const std::string& folder, const std::string& node) {
    ASSERT_TRUE(slurm::note_bad_node(
        folder, {.cluster = "hpc", .node = node, .time = now_, .weight = 1, .cause = "power cut"}));
  }
  Result<std::vector<hosts::HostEnding>> answer(const hosts::CommandRequest& request) const {
    if (!lost_.empty()) return std::vector<hosts::HostEnding>{{.code = 255, .error = lost_}};
    EXPECT_EQ(request.argv.front(), "host-submit");
    setenv("XDG_STATE_HOME", (top_ + "there").c_str(), 1);
    auto text = serve_bad_nodes({request.argv.begin() + 1, request.argv.end()});
    setenv("XDG_STATE_HOME", (top_ + "here").c_str(), 1);
    hosts::HostEnding ending;
    if (text) ending.out = std::move(*text);
    if (!text) ending = {.code = 1, .err = text.error().message};
    return std::vector<hosts::HostEnding>{std::move(ending)};
  }
  Names left_out(const hosts::HostPlace& place) const {
    Names names;
    const auto bad = bad_nodes_at(place, "hpc", now_, run_);
    if (!bad) return {bad.error().message};
    for (const slurm::BadNode& each : *bad)
      names.push_back(each.node + ": " + each.cause);
    return names;
  }

  static inline const std::int64_t now_ = unix_ms() / 1000;
  const std::string top_ =
      ::testing::TempDir() + "bad_nodes_there." + std::to_string(getpid()) + "/";
  const hosts::HostPlace here_ = {.name = "local", .target = {}, .here = true};
  const hosts::HostPlace login_ = {.name = "login", .target = {.host = "login"}};
  const hosts::RunCommand run_ = [this](io::Loop&, const hosts::CommandRequest& request) {
    return answer(request);
  };
  std::string lost_;
};

TEST_F(BadNodesThere, AreThoseThatTheLoginHostKnows) {
  EXPECT_EQ(left_out(login_), Names{"n2: power cut"});
  EXPECT_EQ(left_out(here_), Names{"n1: power cut"});
  lost_ = "login: no route to host";
  EXPECT_EQ(left_out(login_), Names{"login: no route to host"});
}

TEST_F(BadNodesThere, AreForgottenThere) {
  EXPECT_EQ(forget_bad_node_at(login_, "hpc", "n1", now_, run_).error().message,
            "node n1 is not left out");
  EXPECT_TRUE(forget_bad_node_at(login_, "hpc", "n2", now_, run_));
  EXPECT_EQ(left_out(login_), Names{});
  EXPECT_EQ(left_out(here_), Names{"n1: power cut"});
  EXPECT_TRUE(forget_bad_node_at(here_, "hpc", "n1", now_, run_));
  EXPECT_EQ(left_out(here_), Names{});
}

// A submission on the machine where the failures are noted.
class BadNodesHere : public SlurmWorldTest {
 protected:
  BadNodesHere() {
    note("hpc", "n1");
    note("other", "n9");
  }
  void note(const std::string& cluster, const std::string& node) const {
    EXPECT_TRUE(slurm::note_bad_node(
        io::state_folder(),
        {.cluster = cluster, .node = node, .time = world_s_, .weight = 1, .cause = "power cut"}));
  }
  slurm::JobWish wish(const Names& words) const {
    return {.settings = slurm::read_settings(words)->settings, .folder = "/tmp", .name = "train"};
  }
  // Leaves out nodes, with a Slurm that refuses every job without these words.
  std::string leave_out(slurm::JobWish& wish, const std::string& refused = "-") {
    SlurmWorld slurm = world();
    slurm.run = [this, refused](const Names& argv) -> Result<proc::ToolOutput> {
      asked_ = argv;
      if (argv[0] == "scontrol") return FakeSlurm::says("ClusterName             = hpc\n");
      for (const std::string& word : argv)
        if (word.starts_with(refused)) return FakeSlurm::fails("sbatch: error: no such nodes\n");
      return FakeSlurm::says("");
    };
    return leave_out_bad_nodes(wish, slurm);
  }
  static std::string excluded_by(const slurm::JobWish& wish) {
    const slurm::Setting* setting = slurm::find_setting(wish.settings, "exclude");
    return setting == nullptr ? "" : setting->value;
  }

  static constexpr std::int64_t world_s_ = 1'000'000;
  Names asked_;
};

TEST_F(BadNodesHere, ANodeThatFailedLatelyIsLeftOutAndNamed) {
  slurm::JobWish job = wish({"-N2"});
  EXPECT_EQ(leave_out(job, "nothing"),
            "left out because of recent failures: n1 (power cut); --use-bad-nodes uses these nodes "
            "anyway");
  EXPECT_EQ(excluded_by(job), "n1") << "n9 is a node of another cluster";
  EXPECT_EQ(leave_out(job, "nothing"), "") << "once is enough";
}

// A small cluster has no other nodes.
TEST_F(BadNodesHere, AJobThatSlurmWouldRefuseWithoutThemUsesThem) {
  slurm::JobWish job = wish({"-N2"});
  const std::string note = leave_out(job, "--exclude");
  EXPECT_TRUE(note.starts_with("nodes with recent failures are used anyway")) << note;
  EXPECT_EQ(excluded_by(job), "");
  leave_out(job, "--nodes");
  EXPECT_EQ(excluded_by(job), "n1") << "refused either way: they are not the reason";
}

TEST_F(BadNodesHere, SlurmIsNotAskedWithoutABadNode) {
  slurm::JobWish job = wish({"-M", "far"});
  EXPECT_EQ(leave_out(job), "") << "the nodes of another cluster have other names";
  job = wish({"-w", "n1"});
  EXPECT_EQ(leave_out(job), "") << "the user wants this one";
  std::filesystem::remove(io::state_folder() + "/bad-nodes");
  asked_.clear();
  job = wish({"-N2"});
  EXPECT_EQ(leave_out(job), "");
  EXPECT_TRUE(asked_.empty());
}

TEST_F(BadNodesHere, AClientsWordsAreChecked) {
  EXPECT_NE(serve_bad_nodes({"bad-nodes"})->find("n1"), std::string::npos);
  EXPECT_EQ(code_of(serve_bad_nodes({})), Errc::invalid_input);
  EXPECT_EQ(code_of(serve_bad_nodes({"forget-node", "hpc"})), Errc::invalid_input);
}

}  // namespace
}  // namespace lockstep::jobs::on_slurm
