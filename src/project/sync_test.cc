// Syncs a project without any host: a stand-in answers with the code of the host's end, in local
// folders.
#include "base/error_testing.h"
#include "project/piece_run.h"
#include "project/project_sync.h"
#include "sync/host_tree.h"
#include "sync/pieces.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

namespace lockstep::project {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// Sets the time of a file some hours back.
void age(const fs::path& path, std::chrono::hours hours) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - hours);
}

class SyncTest : public ::testing::Test {
 protected:
  SyncTest() {
    const fs::path top = fs::path(::testing::TempDir()) /
                         (std::string("project_sync_") +
                          ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(top);
    fs::create_directories(top / "here/code");
    top_ = fs::canonical(top);
    here_ = top_ / "here/code";
    setenv("XDG_STATE_HOME", (top_ / "state").c_str(), 1);
    setenv("GIT_CEILING_DIRECTORIES", top_.c_str(), 1);
    project_ = {.root = here_.string(), .name = "code", .folder = ""};
    options_.remark = [this](const std::string& text) { remarks_ += text + "\n"; };
    options_.run_command = [this](io::Loop&, const hosts::CommandRequest& request) {
      return serve(request);
    };
  }
  ~SyncTest() override {
    unsetenv("XDG_STATE_HOME");
    unsetenv("GIT_CEILING_DIRECTORIES");
  }

  fs::path there(const std::string& host) const { return top_ / host / "code"; }
  sync::HostFolders folders(const std::string& host) const {
    fs::create_directories(top_ / host);
    return {(top_ / host).string(), (top_ / (host + ".records")).string()};
  }

  Result<std::vector<hosts::HostEnding>> serve(const hosts::CommandRequest& request) {
    if (request.meanwhile) request.meanwhile();
    std::vector<hosts::HostEnding> endings;
    for (std::size_t i = 0; i < request.hosts.size(); ++i) {
      const std::string& name = request.hosts[i].name;
      const std::string& what = request.argv.at(1);
      const auto fails = failures_.find(fmt::format("{} {}", what, name));
      if (fails != failures_.end()) {
        endings.push_back(fails->second);
        continue;
      }
      if (before_) before_(what);
      std::string input;
      if (request.make_input)
        while (const auto more = request.make_input(i))
          input += *more;
      else
        input = request.given.at(0);
      endings.push_back({.out = answer(what, folders(name), input)});
    }
    return endings;
  }

  static std::string answer(const std::string& what, const sync::HostFolders& folders,
                            const std::string& input) {
    if (what == "offer") {
      auto offer = sync::decode_offer(input);
      EXPECT_TRUE(offer);
      auto told = sync::answer_offer(*offer, folders);
      if (told) told->rsync = false;
      return sync::print_answer(told);
    }
    if (what == "delivery") {
      sync::DeliveryTaker taker(folders);
      sync::DeliveryReader reader;
      reader.put(input);
      while (const auto delivery = reader.next().value())
        if (const Status taken = taker.take(*delivery); !taken)
          return sync::encode_listing(Failure(taken.error()));
      EXPECT_TRUE(reader.at_border());
      return sync::encode_listing(sync::Manifest());
    }
    const auto wish = sync::decode_wish(input);
    EXPECT_TRUE(wish);
    if (what == "list") return sync::encode_listing(sync::list_tree(*wish, folders));
    return sync::encode_contents(sync::give_contents(*wish, folders));
  }

  SyncReport sync(const std::vector<std::string>& names = {"a"}) {
    std::vector<hosts::HostPlace> places;
    places.reserve(names.size());
    for (const std::string& name : names)
      places.push_back({.name = name, .target = {.host = name}});
    remarks_.clear();
    return sync_project(places, project_, options_).value();
  }
  HostSync back(const std::string& path = "") {
    remarks_.clear();
    return sync_back({.name = "a", .target = {.host = "a"}}, project_, path, options_).value();
  }

  fs::path top_;
  fs::path here_;
  Project project_;
  SyncOptions options_;
  std::string remarks_;
  std::map<std::string, hosts::HostEnding> failures_;    // by request and host: "offer a"
  std::function<void(const std::string& what)> before_;  // called before a host reads its input
};

TEST_F(SyncTest, AProjectArrivesOnEachHost) {
  write(here_ / "train.py", "print('hello')\n");
  write(here_ / "src/empty", "");
  fs::create_symlink("train.py", here_ / "link.py");
  std::uint64_t shown = 0;
  options_.progress = [&](std::uint64_t bytes, std::uint64_t) { shown = bytes; };
  const SyncReport report = sync({"a", "b"});
  EXPECT_EQ(code_of(report), 0);
  EXPECT_EQ(report.files, 3U);
  for (const std::string name : {"a", "b"}) {
    EXPECT_EQ(read(there(name) / "train.py"), "print('hello')\n");
    EXPECT_EQ(read(there(name) / "src/empty"), "");
    EXPECT_EQ(fs::read_symlink(there(name) / "link.py"), "train.py");
  }
  EXPECT_EQ(report.hosts[0].place, there("a").string());
  EXPECT_EQ(report.hosts[1].files, 3U);
  EXPECT_EQ(report.hosts[1].bytes, 15U);
  EXPECT_EQ(shown, 30U);
  EXPECT_EQ(sync({"a", "b"}).hosts[0].files, 0U) << "nothing has changed";
}

TEST_F(SyncTest, WhatIsGoneHereIsToldAndRemovedThere) {
  write(here_ / "one.py", "1");
  write(here_ / "two.py", "2");
  sync();
  fs::remove(here_ / "one.py");
  const SyncReport report = sync();
  EXPECT_EQ(report.hosts[0].removed, 1U);
  EXPECT_NE(remarks_.find("a: removes 1 file there, sent earlier and gone here: one.py"),
            std::string::npos)
      << remarks_;
  EXPECT_FALSE(fs::exists(there("a") / "one.py"));
  EXPECT_TRUE(fs::exists(there("a") / "two.py"));
}

TEST_F(SyncTest, AnEditThereIsToldBeforeItIsOverwritten) {
  write(here_ / "one.py", "1");
  sync();
  // Of another size: rsync takes files of one size and one second for equal.
  write(there("a") / "one.py", "edited there by hand");
  write(here_ / "one.py", "changed here");
  const SyncReport report = sync();
  EXPECT_EQ(report.hosts[0].edited, 1U);
  EXPECT_NE(remarks_.find("a: 1 file was changed there"), std::string::npos) << remarks_;
  EXPECT_EQ(read(there("a") / "one.py"), "changed here");
}

TEST_F(SyncTest, AReceivedTreeSendsOnOnlyWhatItWasSent) {
  write(here_ / "train.py", "1");
  sync();
  write(there("a") / "out/result", "of an earlier job");
  // Host a becomes the client, with its record of what it was sent.
  fs::create_directories(top_ / "state/lockstep");
  fs::create_directory_symlink(folders("a").records, top_ / "state/lockstep/synced");
  project_.root = there("a");
  options_.as_received = true;
  EXPECT_EQ(sync({"b"}).files, 1U);
  EXPECT_FALSE(fs::exists(there("b") / "out"));
  options_.as_received = false;
  EXPECT_EQ(sync({"c"}).files, 2U);
}

TEST_F(SyncTest, AReceivedTreeSendsOnIgnoredFilesThatItWasSent) {
  write(here_ / ".gitignore", "*.bin\n");
  write(here_ / "weights.bin", "1");
  options_.everything = true;  // as git sends a tracked file that .gitignore names
  sync();
  options_.everything = false;
  write(there("a") / "more.bin", "of an earlier job");
  fs::create_directories(top_ / "state/lockstep");
  fs::create_directory_symlink(folders("a").records, top_ / "state/lockstep/synced");
  project_.root = there("a");
  options_.as_received = true;
  EXPECT_EQ(sync({"b"}).files, 2U);
  EXPECT_TRUE(fs::exists(there("b") / "weights.bin"));
  EXPECT_FALSE(fs::exists(there("b") / "more.bin"));
}

TEST_F(SyncTest, ADryRunChangesNothing) {
  write(here_ / "one.py", "1");
  options_.dry_run = true;
  const SyncReport report = sync();
  EXPECT_EQ(report.hosts[0].files, 1U);
  EXPECT_EQ(report.hosts[0].bytes, 1U);
  EXPECT_FALSE(fs::exists(there("a")));
}

TEST_F(SyncTest, AHostThatIsNotReachedKeepsNoOtherFromItsFiles) {
  write(here_ / "one.py", "1");
  failures_["offer a"] = {.code = 255, .error = "a: the connection was closed"};
  const SyncReport report = sync({"a", "b"});
  EXPECT_EQ(code_of(report), 255);
  EXPECT_EQ(report.hosts[0].error, "a: the connection was closed");
  EXPECT_EQ(report.hosts[1].error, "");
  EXPECT_EQ(read(there("b") / "one.py"), "1");
}

TEST_F(SyncTest, AnAnswerThatMakesNoSenseIsAnError) {
  write(here_ / "one.py", "1");
  failures_["offer a"] = {.out = "no json"};
  failures_["offer b"] = {.code = 137, .err = "killed\n"};
  const SyncReport report = sync({"a", "b"});
  EXPECT_EQ(report.hosts[0].code, 1);
  EXPECT_EQ(report.hosts[0].error.substr(0, 3), "a: ");
  EXPECT_EQ(report.hosts[1].code, 137);
  EXPECT_EQ(report.hosts[1].error, "b: killed");
}

TEST_F(SyncTest, ADeliveryThatFailsIsToldInTheHostsWords) {
  write(here_ / "one.py", "1");
  failures_["delivery a"] = {.code = 2, .err = "no space left\n"};
  failures_["delivery b"] = {.code = 2};
  failures_["delivery c"] = {.out = sync::encode_listing(fail(Errc::exhausted, "disk full"))};
  failures_["delivery d"] = {.code = 130, .error = "SIGINT"};
  const SyncReport report = sync({"a", "b", "c", "d"});
  EXPECT_EQ(report.hosts[0].error, "a: no space left");
  EXPECT_EQ(report.hosts[1].error, "b: its lockstep ended with 2");
  EXPECT_EQ(report.hosts[2].error, "c: disk full");
  EXPECT_EQ(report.hosts[3].error, "d: SIGINT");
  EXPECT_EQ(report.hosts[3].code, 130);
}

TEST_F(SyncTest, AFileThatChangesAllTheTimeIsSentAsAMomentShowsIt) {
  write(here_ / "log.txt", "0");
  write(here_ / "rests.py", "1");
  int changes = 0;
  before_ = [&](const std::string& what) {
    if (what == "delivery") write(here_ / "log.txt", std::string(++changes + 5, 'x'));
  };
  const SyncReport report = sync();
  EXPECT_EQ(report.hosts[0].error, "") << remarks_;
  EXPECT_EQ(read(there("a") / "rests.py"), "1");
  EXPECT_EQ(read(there("a") / "log.txt"), "xxxxxx") << "as it was after the first delivery";
  EXPECT_NE(remarks_.find("changed during the read"), std::string::npos) << remarks_;
}

TEST_F(SyncTest, AnEmptyProjectIsRemarked) {
  EXPECT_EQ(sync().files, 0U);
  EXPECT_NE(remarks_.find("has no files to send"), std::string::npos);
}

TEST_F(SyncTest, BackBringsWhatIsNewThere) {
  write(here_ / "one.py", "1");
  sync();
  write(there("a") / "out/model.bin", std::string(3000, 'm'));
  std::uint64_t shown = 0;
  options_.progress = [&](std::uint64_t bytes, std::uint64_t) { shown = bytes; };
  const HostSync came = back("out");
  EXPECT_EQ(came.error, "");
  EXPECT_EQ(came.files, 1U);
  EXPECT_EQ(came.bytes, 3000U);
  EXPECT_EQ(shown, 3000U);
  EXPECT_EQ(read(here_ / "out/model.bin"), std::string(3000, 'm'));
  EXPECT_EQ(back("out").files, 0U) << "it is here";
}

TEST_F(SyncTest, BackKeepsWhatIsNewerHereUnlessForced) {
  write(here_ / "one.py", "1");
  sync();
  write(there("a") / "one.py", "theirs");
  age(there("a") / "one.py", std::chrono::hours(2));
  write(here_ / "one.py", "mine");
  EXPECT_EQ(back().files, 0U);
  EXPECT_NE(remarks_.find("so these stay: one.py"), std::string::npos) << remarks_;
  EXPECT_EQ(read(here_ / "one.py"), "mine");
  options_.force = true;
  EXPECT_EQ(back().files, 1U);
  EXPECT_EQ(read(here_ / "one.py"), "theirs");
}

TEST_F(SyncTest, BackLeavesWhatGitOrALinkCouldAbuse) {
  write(here_ / "one.py", "1");
  sync();
  write(there("a") / "sub/HEAD", "ref: refs/heads/main");
  write(there("a") / "disk_of_windows/Head", "ref: refs/heads/main");
  fs::create_symlink("/etc/passwd", there("a") / "leads_out");
  write(there("a") / "good.txt", "good");
  EXPECT_EQ(back().files, 1U);
  EXPECT_FALSE(fs::exists(here_ / "sub/HEAD"));
  EXPECT_FALSE(fs::exists(here_ / "disk_of_windows/Head"));
  EXPECT_FALSE(fs::exists(fs::symlink_status(here_ / "leads_out")));
  EXPECT_NE(remarks_.find("sub/HEAD"), std::string::npos) << remarks_;
}

TEST_F(SyncTest, BackByADryRunOnlyCounts) {
  write(here_ / "one.py", "1");
  sync();
  write(there("a") / "new", "12345");
  options_.dry_run = true;
  const HostSync came = back();
  EXPECT_EQ(came.files, 1U);
  EXPECT_EQ(came.bytes, 5U);
  EXPECT_FALSE(fs::exists(here_ / "new"));
}

TEST_F(SyncTest, BackTellsWhatAHostSays) {
  write(here_ / "one.py", "1");
  sync();
  failures_["list a"] = {.code = 255, .error = "a: the connection was closed"};
  EXPECT_EQ(back().code, 255);
  failures_["list a"] = {.out =
                             sync::encode_listing(fail(Errc::not_found, "no such tree", "sync"))};
  HostSync came = back();
  EXPECT_EQ(came.code, 1);
  EXPECT_EQ(came.error, "a: no such tree");
  EXPECT_EQ(came.hint, "sync");
  failures_.clear();
  write(there("a") / "new", "12345");
  failures_["give a"] = {.out = sync::encode_contents(std::vector<std::string>())};
  came = back();
  EXPECT_EQ(came.error, "a: invalid answer");
  failures_["give a"] = {.out = sync::encode_contents(std::vector<std::string>{"123"})};
  came = back();
  EXPECT_EQ(came.error, "");
  EXPECT_EQ(came.files, 0U) << "it changed meanwhile";
  EXPECT_FALSE(fs::exists(here_ / "new"));
}

TEST_F(SyncTest, WhatAHostClaimsToHaveMustFitHere) {
  sync::Manifest listing = {{.path = "huge", .size = 1ULL << 62, .mtime_ns = 1}};
  failures_["list a"] = {.out = sync::encode_listing(listing)};
  const auto came = sync_back({.name = "a", .target = {.host = "a"}}, project_, "", options_);
  ASSERT_FALSE(came);
  EXPECT_EQ(code_of(came), Errc::exhausted);
}

TEST_F(SyncTest, BackTakesOnlyWhatWasAskedFor) {
  sync::Manifest listing = {{.path = "other/file", .size = 1, .mtime_ns = 1}};
  failures_["list a"] = {.out = sync::encode_listing(listing)};
  EXPECT_EQ(back("out").files, 0U);
  EXPECT_FALSE(fs::exists(here_ / "other"));
}

TEST_F(SyncTest, ASummaryIsOneLine) {
  EXPECT_EQ(some_of({"a", "b"}), "a, b");
  EXPECT_EQ(some_of({"a", "b", "c", "d", "e"}), "a, b, c and 2 more");
}

}  // namespace
}  // namespace lockstep::project
