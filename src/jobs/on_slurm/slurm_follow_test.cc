#include "jobs/on_slurm/slurm_follow.h"

#include "base/error_testing.h"
#include "jobs/on_slurm/slurm_world_testing.h"

#include <sys/stat.h>

namespace lockstep::jobs::on_slurm {
namespace {

using std::chrono::seconds;

class SlurmFollowTest : public SlurmWorldTest {
 protected:
  Followed follow(const FollowOptions& options = {}, std::int64_t from = 0) {
    const auto followed = follow_slurm_job(
        {.job = known(), .place = place_, .options = options, .from = from}, world());
    EXPECT_TRUE(followed);
    return followed ? *followed : Followed();
  }
};

TEST_F(SlurmFollowTest, AllOutputComesBeforeTheEndThatTheJobRecorded) {
  write_output("one\n");
  at(seconds(3), [this] { write_output("one\ntwo\n"); });
  at(seconds(9), [this] {
    write_output("one\ntwo\nthree");
    keep(ended("success", 0));
  });
  const Followed followed = follow();
  EXPECT_EQ(printed_, "one\ntwo\nthree");
  EXPECT_EQ(followed.status.state, JobState::succeeded);
  EXPECT_EQ(followed.status.code, 0);
  EXPECT_EQ(followed.status.ended_ms, 1'000'005'000);
}

// The batch step was killed before it could record an end.
TEST_F(SlurmFollowTest, AnEndThatOnlySlurmKnowsIsAskedOfSlurm) {
  at(seconds(20), [this] {
    slurm_.state = "FAILED";
    slurm_.exit = "3:0";
  });
  Followed followed = follow();
  EXPECT_EQ(followed.status.state, JobState::failed);
  EXPECT_EQ(followed.status.code, 3);
  EXPECT_EQ(followed.status.why, "failed");
  slurm_.state = "OUT_OF_MEMORY";
  slurm_.exit = "0:125";
  followed = follow();
  EXPECT_EQ(followed.status.code, 128 + 125);
  slurm_.exit = "0:0";
  EXPECT_EQ(follow().status.code, 1) << "an end that is no success never has code 0";
  slurm_.state = "CANCELLED";
  followed = follow();
  EXPECT_EQ(followed.status.state, JobState::canceled);
  EXPECT_TRUE(followed.status.by_person);
}

TEST_F(SlurmFollowTest, AControllerThatIsDownEndsNothing) {
  at(seconds(5), [this] { slurm_.answers = false; });
  at(seconds(100), [this] { slurm_.answers = true; });
  at(seconds(200), [this] { slurm_.state = "COMPLETED"; });
  EXPECT_EQ(follow().status.state, JobState::succeeded);
  EXPECT_GT(time_, seconds(200));
}

// The controller was down for longer than MinJobAge, and accounting is off.
TEST_F(SlurmFollowTest, AJobThatSlurmHasForgottenIsNotFollowedForever) {
  at(seconds(30), [this] { slurm_.knows = false; });
  Followed followed = follow();
  EXPECT_FALSE(followed.left);
  EXPECT_EQ(followed.status.state, JobState::lost);
  EXPECT_LT(time_, seconds(60));

  // The job's own record still has the end.
  slurm_.knows = true;
  at(time_ + seconds(30), [this] {
    slurm_.knows = false;
    keep(ended("node lost", 9));
  });
  followed = follow();
  EXPECT_FALSE(followed.left);
  EXPECT_EQ(followed.status.state, JobState::failed);
  EXPECT_EQ(followed.status.code, 9);
}

TEST_F(SlurmFollowTest, AJobThatSlurmQueuesAgainGoesOn) {
  at(seconds(5), [this] {
    keep(ended("node lost", 1));
    slurm_.state = "PENDING";
    slurm_.reason = "BeginTime";
  });
  at(seconds(300), [this] {
    slurm_.state = "RUNNING";
    keep({.stage = slurm::Stage::running, .job = "7", .run = 1});
  });
  at(seconds(400), [this] { keep(ended("success", 0)); });
  EXPECT_EQ(follow().status.state, JobState::succeeded);
  EXPECT_GE(time_, seconds(400));
}

// A chain goes on as another job of Slurm, which is asked for from then on.
TEST_F(SlurmFollowTest, TheNextJobOfAChainIsFollowed) {
  at(seconds(5), [this] {
    slurm::BatchState state;
    state.stage = slurm::Stage::requeued;
    state.job = "7";
    state.next = "8";
    state.chain = 0;
    keep(state);
    slurm_.job = "8";
    slurm_.state = "PENDING";
  });
  at(seconds(60), [this] {
    slurm_.state = "FAILED";
    slurm_.exit = "4:0";
  });
  const Followed followed = follow();
  EXPECT_EQ(followed.status.code, 4);
  EXPECT_GE(time_, seconds(60));
}

TEST_F(SlurmFollowTest, ASignalEndsOnlyTheFollowing) {
  patience_ = seconds(10);
  const Followed followed = follow();
  EXPECT_TRUE(followed.left);
  EXPECT_EQ(followed.signal, SIGINT);
  EXPECT_TRUE(slurm_.canceled.empty());
}

// Many users share the controller.
TEST_F(SlurmFollowTest, ALongJobAsksTheControllerSeldom) {
  at(std::chrono::minutes(30), [this] { keep(ended("success", 0)); });
  EXPECT_EQ(follow().status.state, JobState::succeeded);
  EXPECT_LE(slurm_.times("squeue"), 30 * 60 / 15 + 10);
}

TEST_F(SlurmFollowTest, OutputThatExistsNowIsEnoughWithoutFollow) {
  write_output("a\nb\nc\n");
  const Followed followed = follow({.to_end = false, .lines = 2});
  EXPECT_EQ(printed_, "b\nc\n");
  EXPECT_EQ(followed.status.state, JobState::running);
  printed_.clear();
  follow({.to_end = false}, 2);
  EXPECT_EQ(printed_, "b\nc\n") << "a client that lost its link goes on at its byte";
}

TEST_F(SlurmFollowTest, LinesOfOneRankOrAsJson) {
  write_output("[rank0]: zero\n[rank1]: one\n[rank11]: eleven\nplain\n[rank1]: cut");
  follow({.to_end = false, .rank = 1});
  EXPECT_EQ(printed_, "[rank1]: one\n[rank1]: cut\n");
  printed_.clear();
  follow({.to_end = false, .json = true, .lines = 2});
  EXPECT_EQ(std::count(printed_.begin(), printed_.end(), '\n'), 2);
  EXPECT_NE(printed_.find(R"("rank":1)"), std::string::npos) << printed_;
}

// The file is read in chunks of 256 KiB, and memory holds 64 KiB of an unfinished line.
TEST_F(SlurmFollowTest, ALongLineOfARankStaysOneLine) {
  const std::string before = "[rank0]: " + std::string(150'000, '.') + "\n";
  const std::string line = "[rank1]: " + std::string(200'000, 'x') + "\n";
  write_output(before + line + before + "[rank1]: end\n");
  follow({.to_end = false, .rank = 1});
  EXPECT_EQ(printed_.size(), line.size() + 13);
  EXPECT_EQ(std::count(printed_.begin(), printed_.end(), '\n'), 2);
  EXPECT_EQ(printed_.find("[rank1]", 1), line.size());
}

TEST_F(SlurmFollowTest, EqualLinesOfRanksAreFoldedForPeople) {
  write_output("[rank0]: ready\n[rank1]: ready\n");
  follow({.to_end = false, .fold = true});
  EXPECT_EQ(std::count(printed_.begin(), printed_.end(), '\n'), 1) << printed_;
}

// A requeued job opens its output file anew.
TEST_F(SlurmFollowTest, AFileThatWasCutIsPrintedFromItsBegin) {
  write_output("the first run\n");
  at(seconds(3), [this] { write_output("again\n"); });
  at(seconds(6), [this] { keep(ended("success", 0)); });
  follow();
  EXPECT_EQ(printed_, "the first run\nagain\n");
}

// Opening a pipe without a writer would block.
TEST_F(SlurmFollowTest, AnOutputThatIsNoFileIsLeftAlone) {
  ASSERT_EQ(mkfifo((top_ + "/out").c_str(), 0600), 0);
  at(seconds(3), [this] { keep(ended("worker", 2)); });
  EXPECT_EQ(follow().status.code, 2);
  EXPECT_EQ(printed_, "");
}

// Another person submitted the job without Lockstep.
TEST_F(SlurmFollowTest, AJobOfOthersIsFoundByItsNumber) {
  slurm_.output = top_ + "/out";
  write_output("theirs\n");
  const auto found = find_slurm_job("7", world());
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->name, "train");
  place_ = *slurm_place(*found);
  EXPECT_EQ(place_.output, slurm_.output);
  place_ = {.job = "7", .folder = "", .output = ""};
  follow({.to_end = false});
  EXPECT_EQ(printed_, "theirs\n") << "Slurm knows the file";
  slurm_.knows = false;
  EXPECT_EQ(code_of(find_slurm_job("7", world())), Errc::not_found);
  EXPECT_EQ(code_of(find_slurm_job("-h", world())), Errc::invalid_input);
}

TEST_F(SlurmFollowTest, StatesOfSeveralJobsCostOneQuestion) {
  jobs::KnownJob other = known();
  other.id = "bbbb2222";
  other.plan = plan_text({.job = "9", .folder = top_ + "/none", .output = ""});
  auto statuses = ask_slurm_jobs({known(), other}, world());
  ASSERT_TRUE(statuses);
  EXPECT_EQ(statuses->at(0)->state, JobState::running);
  EXPECT_FALSE(statuses->at(1)) << "nobody knows it";
  EXPECT_EQ(slurm_.times("squeue"), 1);

  slurm_.knows = false;
  keep(ended("time limit", 143));
  statuses = ask_slurm_jobs({known()}, world());
  EXPECT_EQ(statuses->at(0)->code, 143) << "Slurm has forgotten it, the job's folder has not";
  slurm_.answers = false;
  EXPECT_EQ(code_of(ask_slurm_jobs({known()}, world())), Errc::unavailable);
}

// The batch step's record and Slurm's word, for one job.
TEST_F(SlurmFollowTest, TheJobsOwnRecordOfAnEndWinsOverSlurms) {
  const auto state_of = [](const char* state, int code) {
    slurm::JobReport status;
    status.state = slurm::parse_job_state(state);
    status.exit_code = code;
    return status;
  };
  const auto completed = state_of("COMPLETED", 0);
  const auto waiting = state_of("PENDING", 0);
  const auto canceled = state_of("CANCELLED", 0);
  EXPECT_EQ(batch_status(ended("worker", 7), &completed, 1).code, 7);
  EXPECT_EQ(batch_status(ended("worker", 7), &waiting, 1).code, 7) << "final: it never runs again";
  EXPECT_EQ(batch_status(ended("node lost", 1), &waiting, 1).state, JobState::queued);
  EXPECT_EQ(batch_status(ended("stopped", 143), &canceled, 1).state, JobState::canceled);
  EXPECT_EQ(batch_status(ended("stopped", 143), nullptr, 1).state, JobState::canceled);
  EXPECT_EQ(batch_status(ended("worker", 7), &canceled, 1).state, JobState::failed);
  EXPECT_EQ(batch_status(std::nullopt, nullptr, 1).state, JobState::running);
  const auto booting = state_of("CONFIGURING", 0);
  EXPECT_EQ(batch_status(std::nullopt, &booting, 1).state, JobState::starting);
  EXPECT_EQ(batch_status(std::nullopt, &completed, 5).ended_ms, 5) << "Slurm tells no time";
}

}  // namespace
}  // namespace lockstep::jobs::on_slurm
