// Submits to a Slurm whose sbatch is a script of the test.
#include "jobs/on_slurm/slurm_submit.h"

#include "base/error_testing.h"
#include "jobs/on_slurm/slurm_once.h"
#include "jobs/on_slurm/slurm_resume.h"
#include "jobs/on_slurm/slurm_world_testing.h"

#include <fmt/core.h>

#include <sys/stat.h>

namespace lockstep::jobs::on_slurm {
namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

class SlurmSubmitTest : public SlurmWorldTest {
 protected:
  SlurmSubmitTest() {
    fs::create_directories(top_ + "/bin");
    fs::create_directories(top_ + "/work");
    const char* path = getenv("PATH");
    path_ = path == nullptr ? "" : path;
    setenv("PATH", (top_ + "/bin:" + path_).c_str(), 1);
    sbatch("echo 7");
  }
  ~SlurmSubmitTest() override { setenv("PATH", path_.c_str(), 1); }

  // Makes an sbatch that writes its arguments to `calls`, one a line, and then runs `does`.
  void sbatch(const std::string& does) const {
    const std::string program = top_ + "/bin/sbatch";
    EXPECT_TRUE(io::write_file(program, "#!/bin/sh\nprintf '%s\\n' \"$@\" >>" + top_ +
                                            "/calls\necho >>" + top_ + "/calls\n" + does + "\n"));
    EXPECT_EQ(chmod(program.c_str(), 0755), 0);
  }
  std::string calls() const { return io::read_file(top_ + "/calls").value_or(""); }
  SlurmRequest request(const Texts& options = {}) const {
    SlurmRequest made;
    made.wish.settings = slurm::read_settings(options)->settings;
    made.wish.folder = top_ + "/work";
    made.wish.name = "train";
    made.run = {"--", "train.py"};
    made.command = {"train.py", "--lr", "0.1"};
    return made;
  }
  jobs::JobBook book() const { return jobs::JobBook::open(io::state_folder()).value(); }
  Result<Submission> submit(const SlurmRequest& what) { return submit_slurm_job(what, world()); }
  // Folders of jobs, without the one that the fixture makes.
  std::size_t folders() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(io::state_folder() + "/slurm"))
      if (entry.is_directory() && entry.path().filename() != "aaaa1111") ++count;
    return count;
  }

  std::string path_;
};

TEST_F(SlurmSubmitTest, ASubmittedJobIsKnownByBothItsNames) {
  const auto done = submit(request({"-N2"}));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->job, "7");
  EXPECT_NE(calls().find("--parsable\n"), std::string::npos) << calls();
  EXPECT_NE(calls().find("--nodes=2\n"), std::string::npos) << calls();
  const auto known = book().find("7");
  ASSERT_TRUE(known);
  EXPECT_EQ(known->id, done->id);
  EXPECT_EQ(known->name, "train");
  EXPECT_EQ(known->command, "train.py --lr 0.1");
  EXPECT_EQ(known->status.state, JobState::queued);
  const slurm::JobFolder folder(done->folder);
  struct stat token {};
  ASSERT_EQ(stat(folder.at("token").c_str(), &token), 0);
  EXPECT_EQ(token.st_mode & 0777, 0600U) << "the job's shared secret";
  EXPECT_EQ(access(folder.at("lockstep").c_str(), X_OK), 0);
  EXPECT_EQ(*io::read_file(folder.at("script")), done->script);
  ASSERT_TRUE(find_submitted(done->id));
}

TEST_F(SlurmSubmitTest, ARefusedJobLeavesNothing) {
  sbatch("echo 'sbatch: error: Batch job submission failed: Invalid account' >&2; exit 1");
  const auto refused = submit(request());
  EXPECT_EQ(refused.error().message,
            "sbatch refused the job: sbatch: error: Batch job submission failed: Invalid account");
  EXPECT_EQ(folders(), 0U);
  EXPECT_TRUE(book().list(10)->empty());
}

TEST_F(SlurmSubmitTest, AnAnswerWithoutANumberIsAnError) {
  sbatch("echo welcome; echo 12x");
  EXPECT_EQ(submit(request()).error().message, "sbatch printed no job id: welcome 12x");
  sbatch("echo welcome; echo '12;cluster'");
  EXPECT_EQ(submit(request())->job, "12");
}

// sbatch gave up, but the controller had the request.
TEST_F(SlurmSubmitTest, AJobThatArrivedLateIsFoundInTheQueue) {
  auto wish = request();
  wish.id = "bbbb2222";
  slurm_.script = slurm::JobFolder(slurm::JobFolder::place("bbbb2222")).at("script");
  for (const char* does : {"kill -9 $$", "echo 'sbatch: error: Socket timed out' >&2; exit 1"}) {
    sbatch(does);
    const auto done = submit(wish);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->job, "7");
    fs::remove_all(done->folder);
  }
}

TEST_F(SlurmSubmitTest, AJobThatMayHaveArrivedKeepsItsFolder) {
  sbatch("kill -9 $$");
  slurm_.answers = false;
  const auto unknown = submit(request());
  EXPECT_EQ(code_of(unknown), Errc::canceled);
  EXPECT_NE(unknown.error().hint.find("squeue"), std::string::npos);
  EXPECT_EQ(folders(), 1U) << "the job would fail without it";
}

TEST_F(SlurmSubmitTest, ARepeatedRequestSubmitsNothing) {
  auto wish = request();
  wish.id = "bbbb2222";
  ASSERT_EQ(submit(wish)->job, "7");
  sbatch("echo 8");
  const auto again = submit(wish);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->job, "7");
  EXPECT_EQ(book().list(10)->size(), 1U);
}

TEST_F(SlurmSubmitTest, WithoutSbatchTheHintNamesAnotherPlace) {
  setenv("PATH", (top_ + "/none").c_str(), 1);
  const auto refused = submit(request());
  EXPECT_EQ(code_of(refused), Errc::not_found);
  EXPECT_NE(refused.error().hint.find("--on user@login"), std::string::npos);
  EXPECT_EQ(folders(), 0U);
}

TEST_F(SlurmSubmitTest, APreviewMakesNothing) {
  const auto shown = preview_slurm_job(request({"-N2"}));
  ASSERT_TRUE(shown) << shown.error().message;
  EXPECT_NE(shown->script.find("train.py"), std::string::npos);
  EXPECT_TRUE(shown->job.empty());
  EXPECT_EQ(folders(), 0U);
  EXPECT_EQ(calls(), "");
}

TEST_F(SlurmSubmitTest, WhatSlurmWouldEndWithoutAWordIsRefusedHere) {
  const auto refused = submit(request({"--output=missing/%j.out"}));
  EXPECT_NE(refused.error().message.find("--output: the folder"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(submit(request({"--output=%x/%j.out"}))) << "only Slurm knows this folder";
}

TEST_F(SlurmSubmitTest, FewerNodesThanAskedForMustBePossible) {
  for (const int fewer : {0, 3}) {
    auto wish = request({"-N2"});
    wish.min_nodes = fewer;
    EXPECT_EQ(submit(wish).error().message, "--min-nodes must be a number from 1 to --nodes");
  }
  auto wish = request({"-N2"});
  wish.min_nodes = 1;
  EXPECT_TRUE(submit(wish));
}

// The launchers that the script calls are stand-ins in the job's folder.
TEST_F(SlurmSubmitTest, AUsersOwnScriptGetsStandInsForItsLaunchers) {
  auto wish = request({"-N2"});
  wish.wish.old_script = true;
  wish.script = "#!/bin/bash\nsrun torchrun train.py\n";
  wish.run = {};
  wish.arguments = {"first", "second"};
  const auto done = submit(wish);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_NE(done->script.find("srun torchrun train.py"), std::string::npos);
  EXPECT_NE(calls().find("script\nfirst\nsecond\n"), std::string::npos) << calls();
  EXPECT_EQ(access((done->folder + "/bin/srun").c_str(), X_OK), 0);
  EXPECT_EQ(access((done->folder + "/launch.json").c_str(), R_OK), 0);
}

TEST_F(SlurmSubmitTest, AChainKeepsTheWordsOfItsNextJob) {
  auto wish = request({"-N2", "--time=10"});
  wish.wish.chain = 3;
  const auto done = submit(wish);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(io::read_file(done->folder + "/next.json"));
}

class ArraySubmitTest : public SlurmSubmitTest {
 protected:
  // Slurm gives the numbers 7, 8 and so on. `then` happens for the job behind the last.
  void sbatch_up_to(int last, const std::string& then =
                                  "echo 'sbatch: error: QOSMaxSubmitJob' >&2; exit 1") const {
    sbatch(
        fmt::format("n=$(cat {0}/n 2>/dev/null || echo 7); echo $((n + 1)) >{0}/n\n"
                    "[ $n -le {1} ] || {{ {2}; }}\n"
                    "echo $n",
                    top_, last, then));
  }
  long times_held() const {
    const std::string all = calls();
    long count = 0;
    for (std::size_t at = all.find("--hold\n"); at != all.npos; at = all.find("--hold\n", at + 1))
      ++count;
    return count;
  }
  SlurmRequest sweep(std::size_t rows, std::optional<std::int64_t> at_once = {}) const {
    SlurmRequest made = request();
    SlurmSweep sweep{.table = {.names = {"n"}, .rows = {}}, .rows = {}, .at_once = at_once};
    for (std::size_t row = 0; row < rows; ++row) {
      sweep.table.rows.push_back({std::to_string(row)});
      sweep.rows.push_back(row);
    }
    sweep.array_rows = 10;
    made.sweep = std::move(sweep);
    return made;
  }
};

TEST_F(ArraySubmitTest, ManyRowsAreOneJobOfSeveralArrays) {
  sbatch_up_to(9);
  const auto done = submit(sweep(25, 4));
  ASSERT_TRUE(done) << done.error().message;
  for (const char* part :
       {"--array=0-9%4\n--dependency=afterany:7\n", "--array=0-4%4\n--dependency=afterany:8\n",
        "/script\n0\n", "/script\n10\n", "/script\n20\n"})
    EXPECT_NE(calls().find(part), std::string::npos) << part << " in " << calls();
  EXPECT_NE(done->script.find("/rows/$((SLURM_ARRAY_TASK_ID + ${1:-0}))\n"), std::string::npos);
  EXPECT_EQ(done->notes.back(),
            "25 rows need 3 array jobs, of 10 rows at most, which run one after the other because "
            "of --at-once");
  for (const char* number : {"7", "8", "9"}) {
    const auto known = find_job(book(), number);
    ASSERT_TRUE(known) << number;
    EXPECT_EQ(known->id, done->id);
    EXPECT_EQ(slurm_place(*known)->jobs(), (Texts{"7", "8", "9"}));
  }
  EXPECT_EQ(times_held(), 3) << calls();
  EXPECT_EQ(slurm_.released, (Texts{"9,8,7"}));
}

// Before that, a client that dies would leave rows that no command knows.
TEST_F(ArraySubmitTest, ArraysAreReleasedOnceTheJobIsRecorded) {
  sbatch_up_to(9);
  SlurmWorld looks = world();
  std::size_t known = 0;
  looks.run = [&](const Texts& argv) -> Result<proc::ToolOutput> {
    if (argv[1] == "release") known = book().list(10)->size();
    return slurm_.run(argv);
  };
  ASSERT_TRUE(submit_slurm_job(sweep(25), looks));
  EXPECT_EQ(known, 1U);
}

TEST_F(ArraySubmitTest, AUsersOwnHoldIsKept) {
  sbatch_up_to(9);
  SlurmRequest made = sweep(25);
  made.wish.settings = slurm::read_settings(Texts{"-H"})->settings;
  ASSERT_TRUE(submit(made));
  EXPECT_TRUE(slurm_.released.empty());
}

TEST_F(ArraySubmitTest, ArraysThatCannotBeReleasedAreNamed) {
  sbatch_up_to(9);
  slurm_.answers = false;
  const auto held = submit(sweep(25));
  EXPECT_EQ(code_of(held), Errc::unavailable);
  EXPECT_EQ(held.error().message.find("the rows are submitted and recorded, but held: "), 0U)
      << held.error().message;
  EXPECT_NE(held.error().hint.find("; scontrol release 9,8,7 lets them begin"), std::string::npos)
      << held.error().hint;
  EXPECT_EQ(book().list(10)->size(), 1U);
}

TEST_F(ArraySubmitTest, ArraysThatCannotBeRecordedAreCanceled) {
  sbatch_up_to(7, "for each; do case $each in */script) rm -rf ${each%/script};; esac; done");
  SlurmRequest made = sweep(25);
  made.sweep->rows = {0, 24};  // the array between them has no row to run
  const auto refused = submit(made);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("; the arrays submitted so far are canceled: 7, 8"),
            std::string::npos)
      << refused.error().message;
  EXPECT_EQ(slurm_.canceled, (Texts{"8", "7"}));
}

TEST_F(ArraySubmitTest, AResumeHoldsItsArraysToo) {
  sbatch_up_to(14);
  const SlurmRequest made = sweep(25, 4);
  const auto done = submit(made);
  ASSERT_TRUE(done) << done.error().message;
  slurm_.knows = false;
  for (const std::size_t row : made.sweep->rows) {
    const slurm::JobFolder folder(slurm::JobFolder(done->folder).row(row));
    ASSERT_TRUE(folder.make_row({}));
    ASSERT_TRUE(folder.keep(row == 3 || row == 14 ? ended("worker", 7) : ended("success", 0)));
  }
  const auto known = book().find(done->id);
  const auto again = resume_slurm_rows(*known, {made.sweep->table, made.sweep->rows},
                                       *slurm_place(*known), {}, world());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->nodes, (Texts{"slurm as job 10, 11"}));
  EXPECT_EQ(times_held(), 5) << calls();
  EXPECT_EQ(slurm_.released, (Texts{"9,8,7", "11,10"}));
  EXPECT_EQ(calls().find("afterany:10"), std::string::npos) << "two rows may run at once";
}

TEST_F(ArraySubmitTest, ArraysWithoutALimitRunSideBySide) {
  sbatch_up_to(9);
  ASSERT_TRUE(submit(sweep(25)));
  EXPECT_EQ(calls().find("--dependency"), std::string::npos) << calls();
  sbatch_up_to(14);
  const auto done = submit(sweep(25, 25));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(calls().find("--dependency"), std::string::npos) << "all rows may run at once";
  EXPECT_NE(done->notes.back().find("which run side by side"), std::string::npos);
}

TEST_F(ArraySubmitTest, OneArrayHasNoArgument) {
  ASSERT_TRUE(submit(sweep(10, 4)));
  EXPECT_NE(calls().find("/script\n\n"), std::string::npos) << calls();
  EXPECT_EQ(times_held(), 0);
  EXPECT_TRUE(slurm_.released.empty());
}

TEST_F(ArraySubmitTest, IfOneArrayIsRefusedThoseBeforeAreCanceled) {
  sbatch_up_to(8);
  const auto refused = submit(sweep(25, 4));
  EXPECT_EQ(refused.error().message,
            "sbatch refused the job: sbatch: error: QOSMaxSubmitJob; the arrays submitted so far "
            "are canceled: 7, 8");
  EXPECT_EQ(refused.error().hint, "submit fewer rows: --sweep-only 0-19");
  EXPECT_EQ(times_held(), 3) << "no row has run";
  EXPECT_EQ(slurm_.canceled, (Texts{"8", "7"})) << "the one that waits first";
  EXPECT_EQ(folders(), 0U);
  EXPECT_TRUE(book().list(10)->empty());
}

TEST_F(ArraySubmitTest, AnArrayThatCannotBeCanceledIsNamed) {
  sbatch_up_to(7);
  slurm_.refusal = "Access denied";
  const auto refused = submit(sweep(25));
  EXPECT_NE(refused.error().message.find("could not all be canceled"), std::string::npos);
  EXPECT_EQ(refused.error().hint, "submit fewer rows: --sweep-only 0-9; scancel 7");
}

TEST_F(ArraySubmitTest, AnArrayThatHasEndedNeedsNoCancel) {
  sbatch_up_to(7);
  slurm_.refusal = "Kill job error on job id 7: Invalid job id specified";
  EXPECT_NE(submit(sweep(25)).error().message.find("are canceled: 7"), std::string::npos);
}

// The array may be there, so the hint to look for it stays.
TEST_F(ArraySubmitTest, AnArrayWhoseAnswerIsLostIsToBeLookedFor) {
  sbatch_up_to(7, "kill -9 $$");
  slurm_.answers = false;
  const auto unknown = submit(sweep(25));
  EXPECT_EQ(code_of(unknown), Errc::canceled);
  EXPECT_EQ(unknown.error().hint,
            "squeue shows whether the job is there, as soon as Slurm answers; scancel 7");
}

TEST_F(ArraySubmitTest, WhatALaterArrayCannotHaveIsRefusedBeforeTheFirst) {
  SlurmRequest made = sweep(25, 4);
  made.wish.settings = slurm::read_settings(Texts{"--dependency=afterok:3?afterok:4"})->settings;
  const auto refused = submit(made);
  EXPECT_NE(refused.error().message.find("--dependency=afterok:3?afterok:4 must have no '?'"),
            std::string::npos)
      << refused.error().message;
  EXPECT_EQ(refused.error().hint, "leave out --at-once, or submit fewer rows: --sweep-only 0-9");
  EXPECT_EQ(submit(sweep(1001)).error().message,
            "1001 rows need 101 array jobs, of 10 rows at most: more than 100");
  EXPECT_EQ(submit(sweep(1001)).error().hint, "submit fewer rows: --sweep-only 0-999");
  EXPECT_EQ(calls(), "");
  sbatch_up_to(9);
  made.sweep->at_once.reset();
  EXPECT_TRUE(submit(made)) << "no array waits for another";
}

TEST_F(ArraySubmitTest, RowsOfTwoArraysNeedTwoFiles) {
  SlurmRequest made = sweep(25);
  made.wish.settings = slurm::read_settings(Texts{"--output=%a.out"})->settings;
  EXPECT_NE(submit(made).error().message.find("write to the same files"), std::string::npos);
  made.wish.settings = slurm::read_settings(Texts{"--output=%A-%a.out"})->settings;
  EXPECT_TRUE(submit(made));
}

TEST_F(SlurmSubmitTest, AJobOfAnotherPlaceIsNoSlurmJob) {
  jobs::KnownJob known{.id = "cccc3333", .name = "x", .place = "gpus", .command = "x"};
  for (const char* plan : {"", "{}", "[]", R"({"slurm":7})", R"({"spec":{}})"}) {
    known.plan = plan;
    EXPECT_FALSE(slurm_place(known)) << plan;
  }
  known.plan = plan_text(place_);
  EXPECT_TRUE(slurm_place_here(known));
  known.nodes = {{.name = "login", .target = {}}};
  EXPECT_TRUE(slurm_place(known));
  EXPECT_FALSE(slurm_place_here(known)) << "its folder lies on the login host";
}

}  // namespace
}  // namespace lockstep::jobs::on_slurm
