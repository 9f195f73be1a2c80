// For tests of jobs on Slurm: a Slurm with one job, and a clock that moves only while the test
// waits.
#pragma once

#include "io/fd.h"
#include "io/own_folders.h"
#include "jobs/on_slurm/slurm_submit.h"
#include "jobs/on_slurm/slurm_world.h"
#include "slurm/job_folder.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace lockstep::jobs::on_slurm {

// Slurm's programs. Their answers follow from the state of the one job.
struct FakeSlurm {
  std::string job = "7";
  std::string state = "RUNNING";
  std::string exit = "0:0";  // code and signal of an ended job
  std::string reason = "None";
  std::string nodes = "n1";
  std::string output;                      // what scontrol names as the job's output file
  std::string script;                      // path of the job's script
  std::string accounting;                  // what sacct prints; empty: accounting is off
  std::string refusal;                     // the error text of a failing scancel
  std::string refused = {};                // the id for which scancel fails; empty: any
  bool knows = true;                       // false: Slurm has forgotten the job
  bool answers = true;                     // false: the controller is down
  std::vector<std::string> asked = {};     // the programs, in order
  std::vector<std::string> canceled = {};  // ids given to scancel
  std::vector<std::string> released = {};  // ids given to scontrol release
  // How the next srun inside the job ends, and the calls of srun.
  Result<proc::ToolOutput> step = says("");
  std::vector<std::vector<std::string>> steps = {};

  static proc::ToolOutput says(std::string text) {
    return {.out = std::move(text), .err = "", .exit = {}};
  }
  static proc::ToolOutput fails(std::string text) {
    return {.out = "", .err = std::move(text), .exit = {.code = 1}};
  }
  Result<proc::ToolOutput> run_step(const std::vector<std::string>& argv) {
    steps.push_back(argv);
    return step;
  }
  long times(const std::string& program) const {
    return std::count(asked.begin(), asked.end(), program);
  }
  proc::ToolOutput run(const std::vector<std::string>& argv) {
    asked.push_back(argv[0]);
    if (!answers) return fails(argv[0] + ": error: Unable to contact slurm controller\n");
    if (argv[0] == "sacct")
      return accounting.empty() ? fails("Slurm accounting storage is disabled\n")
                                : says(accounting);
    if (argv[0] == "scancel") {
      canceled.push_back(argv.back());
      const bool fits = refused.empty() || refused == argv.back();
      return refusal.empty() || !fits ? says("") : fails("scancel: error: " + refusal + "\n");
    }
    if (argv[0] == "scontrol" && argv[1] == "release") {
      released.push_back(argv.back());
      return says("");
    }
    const bool scripts = std::count(argv.begin(), argv.end(), "--format=%F|%o") != 0;
    if (scripts) return says(knows ? job + "|" + script + "\n" : "");
    const bool of_job = argv[0] == "squeue" || argv.end()[-2] == "job";
    if (argv[0] == "sinfo" || !of_job) return says("");
    const bool mine = argv.back() == job || argv.back() == "--jobs=" + job;
    if (!knows || !mine) return fails("slurm_load_jobs error: Invalid job id specified\n");
    if (argv[0] == "squeue")
      return says(job + "|" + job + "|" + state + "|ann|gpu|1000000|N/A|N/A|10:00|2|" + nodes +
                  "|1|(null)|(null)|(null)|(null)|" + reason + "|train\n");
    return says("JobId=" + job + " JobName=train UserId=ann(1000) JobState=" + state +
                " Reason=" + reason + " Restarts=0 ExitCode=" + exit +
                " SubmitTime=1000000 NodeList=n1 StdOut=" + output + "\n");
  }
};

// Makes a state folder with the folder of job aaaa1111, which is job 7 of the fake Slurm.
class SlurmWorldTest : public ::testing::Test {
 protected:
  using Ms = std::chrono::milliseconds;

  SlurmWorldTest() {
    std::string name = "/tmp/lockstep-slurm-XXXXXX";
    top_ = mkdtemp(name.data());
    setenv("XDG_STATE_HOME", top_.c_str(), 1);
    auto folder = slurm::JobFolder::create("aaaa1111");
    EXPECT_TRUE(folder);
    place_ = {.job = "7", .folder = folder->path(), .output = top_ + "/out"};
  }
  ~SlurmWorldTest() override {
    unsetenv("XDG_STATE_HOME");
    std::filesystem::remove_all(top_);
  }

  SlurmWorld world() {
    return {
        .run = [this](const auto& argv) -> Result<proc::ToolOutput> { return slurm_.run(argv); },
        .step = [this](const auto& argv) { return slurm_.run_step(argv); },
        .now = [this] { return SlurmWorld::Clock::time_point(time_); },
        .unix_ms = [this] { return 1'000'000'000 + time_.count(); },
        .wait_for_signal = [this](Ms limit) { return wait(limit); },
        .sleep = [this](Ms pause) { time_ += pause; },
        .print = [this](std::string_view bytes) -> Status {
          printed_ += bytes;
          return {};
        }};
  }
  // Does `what` once so much time has passed in the world.
  void at(Ms when, std::function<void()> what) { later_.emplace(when, std::move(what)); }

  jobs::KnownJob known() const {
    jobs::KnownJob job{.id = "aaaa1111", .name = "train", .place = "slurm", .command = "train.py"};
    job.plan = plan_text(place_);
    job.created_ms = 1'000'000'000;
    return job;
  }
  void keep(const slurm::BatchState& state) const {
    EXPECT_TRUE(slurm::JobFolder(place_.folder).keep(state));
  }
  static slurm::BatchState ended(const std::string& cause, int code) {
    slurm::BatchState state;
    state.stage = slurm::Stage::ended;
    state.job = "7";
    state.ended_ms = 1'000'005'000;
    state.code = code;
    state.cause = cause;
    state.words = "words";
    return state;
  }
  void write_output(const std::string& text) const {
    EXPECT_TRUE(io::write_file(top_ + "/out", text));
  }

  FakeSlurm slurm_;
  SlurmPlace place_;
  std::string top_;
  std::string printed_;
  Ms time_{0};
  // A test that would wait forever is interrupted after an hour in the world.
  Ms patience_ = std::chrono::hours(1);

 private:
  int wait(Ms limit) {
    time_ += limit;
    while (!later_.empty() && later_.begin()->first <= time_) {
      const auto what = std::move(later_.begin()->second);
      later_.erase(later_.begin());
      what();
    }
    return time_ < patience_ ? 0 : SIGINT;
  }
  std::multimap<Ms, std::function<void()>> later_;
};

}  // namespace lockstep::jobs::on_slurm
