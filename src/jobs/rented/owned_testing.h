// A job whose rental another host owns, for tests: the test plays the host, and the journal is
// real.
#pragma once

#include "cloud/journal.h"
#include "jobs/rented/owned_end.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::jobs::rented {

class OwnedTest : public ::testing::Test {
 protected:
  using Words = std::vector<std::string>;

  OwnedTest() {
    std::string name = ::testing::TempDir() + "ownedXXXXXX";
    folder_ = mkdtemp(name.data());
    setenv("XDG_STATE_HOME", folder_.c_str(), 1);
    EXPECT_TRUE(journal().keep_job(course_));
  }
  ~OwnedTest() override {
    unsetenv("XDG_STATE_HOME");
    std::filesystem::remove_all(folder_);
  }
  cloud::Journal journal() const { return cloud::Journal::open(folder_ + "/lockstep").value(); }
  bool is_kept() const { return journal().has_job("r").value(); }

  OwnedWorld world() {
    OwnedWorld world;
    world.ask = [this](const cloud::RentedJob&, const Words& argv) -> Result<std::string> {
      asked_.push_back(argv);
      if (!reached_) return fail(Errc::unavailable, "me@h: no route");
      if (argv.front() == "state") return owned_state_text(there_);
      const auto answer = answers_.find(argv.back());
      return answer == answers_.end() ? std::string() : answer->second;
    };
    world.run = [this](const cloud::RentedJob&, const Words& command,
                       OwnerOutput output) -> Result<int> {
      run_.push_back(command);
      outputs_.push_back(output);
      if (!reached_) return fail(Errc::unavailable, "me@h: no route");
      return code_;
    };
    world.view = [this](const cloud::RentedJob&, OwnedViewRequest request) -> Result<OwnedViewEnd> {
      viewed_.push_back(std::move(request));
      if (meanwhile_) meanwhile_();
      return end_;
    };
    world.bring = [this](const cloud::RentedJob&, const std::string& path,
                         const OwnedWorld::Say&) -> Result<bool> {
      brought_.push_back(path);
      return path != unreadable_;
    };
    world.now_ms = [this] { return now_ms_; };
    world.say = [this](const std::string& text) { said_.push_back(text); };
    return world;
  }
  void ends(int code) {
    there_ = {.known = true,
              .ended = true,
              .state = code == 0 ? "succeeded" : "failed",
              .code = code,
              .note = "it cost 1 USD",
              .job = "aaaa1111"};
    end_ = {.code = code};
  }

  std::string folder_;
  cloud::RentedJob course_ = {.rental = "r",
                              .cluster = "lab",
                              .words = {},
                              .folder = "/",
                              .stage = cloud::RentedJob::Stage::working,
                              .note = "train.py",
                              .began_ms = 1000,
                              .host = "me@h",
                              .root = "/project",
                              .tree = "project",
                              .back = {"out", "logs"}};
  OwnedState there_ = {.known = true, .state = "running", .job = "aaaa1111"};
  OwnedViewEnd end_ = {.code = 0};
  bool reached_ = true;
  int code_ = 0;  // exit code of a user's command there
  std::int64_t now_ms_ = 2000;
  std::string unreadable_ = "none";
  std::function<void()> meanwhile_;             // while a view runs
  std::map<std::string, std::string> answers_;  // by the last word of the question
  std::vector<Words> asked_;
  std::vector<Words> run_;
  std::vector<OwnerOutput> outputs_;  // of run_
  std::vector<OwnedViewRequest> viewed_;
  Words brought_;
  Words said_;
};

}  // namespace lockstep::jobs::rented
