#include "jobs/on_slurm/slurm_bad_nodes.h"

#include "base/clock_ms.h"
#include "slurm/bad_node_file.h"

#include <gtest/gtest.h>

#include <stdlib.h>

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
  const std::string top_ = ::testing::TempDir() + "bad_nodes_there/";
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

}  // namespace
}  // namespace lockstep::jobs::on_slurm
