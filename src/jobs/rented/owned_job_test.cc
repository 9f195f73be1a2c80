#include "jobs/rented/owned_job.h"

#include "base/error_testing.h"
#include "jobs/rented/owned_testing.h"

#include <fmt/core.h>

#include <signal.h>

#include <fstream>

namespace lockstep::jobs::rented {
namespace {

using Stage = cloud::RentedJob::Stage;

class OwnedJobTest : public OwnedTest {
 protected:
  OwnedJob job() { return {known_owned(course_), course_, world()}; }
};

TEST_F(OwnedJobTest, ItIsFoundByItsClusterOrItsId) {
  cloud::RentedJob mine = course_;
  mine.cluster = "mine";
  mine.host.clear();
  cloud::RentedJob newer = course_;
  newer.cluster = "newer";
  newer.job = "bbbb2222";
  newer.began_ms = 5000;
  const std::vector<cloud::RentedJob> courses = {course_, mine, newer};
  EXPECT_EQ(find_owned("lab", courses)->cluster, "lab");
  EXPECT_EQ(find_owned("bbbb2222", courses)->cluster, "newer");
  EXPECT_FALSE(find_owned("mine", courses)) << "this machine has its course";
  EXPECT_FALSE(find_owned("", courses));
  EXPECT_EQ(owned_among(courses).at(0).cluster, "newer");
  EXPECT_EQ(owned_among(courses).size(), 2U);
}

// A journal that another process keeps busy.
class BusyRecords : public cloud::Records {
 public:
  Status put(const Record&) override { return busy(); }
  Status add(const Record&) override { return busy(); }
  Status change(const Record&) override { return busy(); }
  Status drop(const std::string&, const std::string&) override { return busy(); }
  Result<std::vector<Record>> open_ones(const std::string&) override { return busy(); }
  Result<std::vector<Record>> since(const std::string&, std::int64_t) override { return busy(); }
  Result<std::optional<Record>> newest(const std::string&, const std::string&) override {
    return busy();
  }

 private:
  static Failure busy() { return fail(Errc::unavailable, "busy"); }
};

TEST_F(OwnedJobTest, ABusyJournalIsNotOneWithoutJobs) {
  cloud::Journal open = journal();
  EXPECT_EQ(find_owned("lab", read_courses()).value()->rental, "r");
  EXPECT_EQ(owned_among(open)->size(), 1U);
  cloud::Journal busy(std::make_unique<BusyRecords>());
  const auto found = find_owned("lab", busy.jobs());
  EXPECT_EQ(code_of(found), Errc::unavailable);
  EXPECT_EQ(found.error().message, "cannot tell whether 'lab' is a job of another host: busy");
  EXPECT_EQ(found.error().hint, "repeat the command");
  EXPECT_EQ(code_of(owned_among(busy)), Errc::unavailable);
  EXPECT_EQ(code_of(check_machines_here("host", busy.jobs())), Errc::unavailable);
}

TEST_F(OwnedJobTest, AnUnreadableJournalIsAnErrorOrHasNoJobs) {
  std::ofstream(folder_ + "/lockstep/rentals.db") << "no database";
  EXPECT_EQ(code_of(find_owned("lab", read_courses())), Errc::corrupt);
  EXPECT_TRUE(courses_here().empty());
  std::filesystem::remove_all(folder_ + "/lockstep");
  std::filesystem::create_directory(folder_ + "/lockstep");
  std::filesystem::create_symlink("rentals.db", folder_ + "/lockstep/rentals.db");
  EXPECT_FALSE(read_courses()) << "a loop, and not a missing file";
  std::filesystem::remove_all(folder_ + "/lockstep");
  EXPECT_FALSE(find_owned("lab", read_courses()).value());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/lockstep")) << "this user never rented";
}

TEST_F(OwnedJobTest, CommandsAboutItsMachinesAreRefusedHere) {
  course_.job = "aaaa1111";
  ASSERT_TRUE(journal().keep_job(course_));
  EXPECT_EQ(check_machines_here("lab", read_courses()).error().message,
            "the machines of 'lab' belong to me@h");
  EXPECT_TRUE(check_machines_here("aaaa1111", read_courses())) << "no cluster, and maybe a host";
  EXPECT_TRUE(check_machines_here("host", read_courses()));
}

TEST_F(OwnedJobTest, ItsRecordLeadsBackToItsCourse) {
  EXPECT_EQ(known_owned(course_).id, "lab") << "its id is not known yet";
  course_.job = "aaaa1111";
  KnownJob record = known_owned(course_);
  EXPECT_EQ(record.id, "aaaa1111");
  EXPECT_EQ(record.command, "train.py");
  EXPECT_EQ(owned_course_of(record, {course_})->rental, "r");
  record.created_ms = 7;
  EXPECT_FALSE(owned_course_of(record, {course_})) << "another job of that name on that host";
}

TEST_F(OwnedJobTest, TheHostTellsItsState) {
  auto known = job();
  EXPECT_EQ(known.status()->state, JobState::running);
  EXPECT_EQ(known.record().id, "aaaa1111");
  there_.state = "restarting";
  EXPECT_EQ(job().status()->state, JobState::restarting);
  ends(3);
  EXPECT_EQ(job().status()->state, JobState::failed);
  EXPECT_EQ(job().status()->code, 3);
  there_ = {};
  EXPECT_EQ(job().status()->state, JobState::lost);
  course_.stage = Stage::renting;
  EXPECT_EQ(job().status()->state, JobState::starting);
  reached_ = false;
  EXPECT_EQ(code_of(job().status()), Errc::unavailable);
}

// Answers on the host for the agents of the machines.
class AnsweringJob : public Job {
 public:
  AnsweringJob() : Job({.id = "aaaa1111", .name = "train", .place = "lab", .command = {}}) {}
  Result<JobStatus> status() override { return JobStatus{.state = JobState::running}; }
  Result<Explanation> why() override {
    if (silent) return fail(Errc::unavailable, "no host\x1b[2J answers", "wait");
    return explain_job(record_, {.state = JobState::running}, nullptr);
  }
  Result<std::vector<looks::Answer>> looks(const looks::Question& question) override {
    return std::vector<looks::Answer>{
        {.node = "n0", .words = fmt::format("rank {}", question.rank.value_or(-1))}};
  }
  Result<std::vector<looks::NodeRows>> ranks() override {
    if (silent) return fail(Errc::unavailable, "no host answers");
    return std::vector<looks::NodeRows>{{.node = "n0", .rows = {{.rank = 0, .node = "n0"}}},
                                        {.node = "n1", .rows = {{.rank = 1, .node = "n1"}}}};
  }
  Result<std::vector<status::EventAnswer>> events(std::int64_t after) override {
    return std::vector<status::EventAnswer>{{.agent = "a",
                                             .node = "n0",
                                             .next = after + 1,
                                             .more = true,
                                             .events = {{.time_ms = 7,
                                                         .kind = status::JobEventKind::hung,
                                                         .agent = "a",
                                                         .number = after + 1}}}};
  }
  Result<Followed> follow(const FollowOptions& /*options*/) override { return Followed{}; }
  Result<JobStatus> cancel() override { return status(); }
  Result<Resumed> resume(const std::vector<std::string>& /*env*/) override { return Resumed{}; }

  bool silent = false;
};

TEST_F(OwnedJobTest, TheHostPassesOnWhatAgentsAnswer) {
  AnsweringJob there;
  const auto reply = [&](const Words& question) {
    answers_[question.back()] = answer_look(&there, question).value();
  };
  reply({"why"});
  EXPECT_EQ(job().why()->text, there.why()->text);
  EXPECT_EQ(job().why()->json, there.why()->json);
  EXPECT_EQ(asked_.back(), (Words{"look", "r", "why"}));
  reply({"looks", "rank=3"});
  EXPECT_EQ(job().looks({.rank = 3})->at(0).words, "rank 3");
  reply({"ranks"});
  EXPECT_EQ(job().ranks()->at(1).rows.at(0).rank, 1);
  reply({"events", "4"});
  const auto events = job().events(4);
  ASSERT_EQ(events->size(), 1U);
  EXPECT_EQ(events->at(0).next, 5);
  EXPECT_TRUE(events->at(0).more);
  EXPECT_EQ(events->at(0).events.at(0).kind, status::JobEventKind::hung);
}

TEST_F(OwnedJobTest, ErrorsOfTheHostNameTheHostInPrintableWords) {
  AnsweringJob there;
  there.silent = true;
  answers_["why"] = answer_look(&there, {"why"}).value();
  EXPECT_EQ(job().why().error().message, "me@h: no host\\x1b[2J answers");
  EXPECT_EQ(code_of(answer_look(&there, {"ranks"})), Errc::unavailable);
  for (const Words& odd : {Words{"dance"}, {"events"}, {"events", "x"}})
    EXPECT_EQ(code_of(answer_look(&there, odd)), Errc::invalid_input);
  answers_.clear();
  EXPECT_EQ(code_of(job().why()), Errc::corrupt);
  EXPECT_TRUE(job().ranks()->empty());
  reached_ = false;
  EXPECT_EQ(code_of(job().ranks()), Errc::unavailable);
}

TEST_F(OwnedJobTest, BeforeTheJobBeginsItsStateIsAllThatIsKnown) {
  for (const char* what : {"why", "ranks"})
    answers_[what] = answer_look(nullptr, {what}).value() + "\n";
  there_ = {.known = true, .state = "starting"};
  const auto said = job().why();
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(said->json["state"], "starting");
  EXPECT_NE(said->text.find("lockstep logs lab"), std::string::npos) << said->text;
  EXPECT_TRUE(job().ranks()->empty());
}

TEST_F(OwnedJobTest, OnlyTheHostReachesItsMachines) {
  const auto page = job().page(0);
  EXPECT_EQ(code_of(page), Errc::invalid_input);
  EXPECT_EQ(page.error().message, "only me@h, which rents the machines of lab, reaches its page");
  EXPECT_EQ(page.error().hint, "on me@h: lockstep page lab");
  EXPECT_EQ(job().profile({}).error().hint, "on me@h: lockstep profile lab");
  EXPECT_EQ(job().facts().owner, "me@h");
  EXPECT_EQ(code_of(job().resume({})), Errc::invalid_input);
  EXPECT_TRUE(asked_.empty());
}

TEST_F(OwnedJobTest, AFollowerSeesTheEndAndHasTheOutputs) {
  ends(0);
  const auto followed = job().follow({});
  ASSERT_TRUE(followed) << followed.error().message;
  EXPECT_EQ(followed->status.state, JobState::succeeded);
  EXPECT_EQ(followed->status.code, 0);
  EXPECT_EQ(brought_.size(), 2U);
  EXPECT_EQ(viewed_.at(0).how, "all");
  EXPECT_EQ(viewed_[0].settings.on_stop, OwnedViewCore::OnStop::cancel);
}

TEST_F(OwnedJobTest, AWaitingCommandShowsNothingAndCancelsNothing) {
  const auto followed = job().follow({.print = false});
  EXPECT_EQ(viewed_.at(0).how, kFollowQuiet);
  EXPECT_EQ(viewed_[0].settings.on_stop, OwnedViewCore::OnStop::leave);
  EXPECT_EQ(followed->status.code, std::nullopt) << "the job goes on";
  EXPECT_EQ(followed->status.state, JobState::running) << "for wait --json";
  end_ = {.signal = SIGINT};
  const auto left = job().follow({.print = false});
  EXPECT_TRUE(left->left);
  EXPECT_EQ(left->signal, SIGINT);
}

TEST_F(OwnedJobTest, OutputOfSomeLinesIsPrintedThere) {
  EXPECT_TRUE(job().follow({.to_end = false}));
  EXPECT_TRUE(viewed_.empty());
  EXPECT_TRUE(job().follow({.json = true, .fold = true, .lines = 5, .rank = 3}));
  EXPECT_EQ(run_, (std::vector<Words>{
                      {"logs", "--fold=never", "lab"},
                      {"logs", "--fold=always", "-f", "--json", "--lines=5", "--rank=3", "lab"}}));
  EXPECT_EQ(viewed_.at(0).how, kFollowQuiet) << "the ranks have ended, and the course has not";
  EXPECT_EQ(viewed_[0].settings.on_stop, OwnedViewCore::OnStop::leave);
  EXPECT_TRUE(is_kept());
  code_ = 2;
  EXPECT_EQ(code_of(job().follow({.to_end = false})), Errc::invalid_input);
  code_ = 128 + SIGINT;
  EXPECT_TRUE(job().follow({.lines = 5})->left);
  ends(3);
  code_ = 3;
  EXPECT_EQ(job().follow({.lines = 5})->status.code, 3);
  EXPECT_FALSE(is_kept()) << "the end is told";
}

TEST_F(OwnedJobTest, WhoFollowsSomeLinesGetsTheCodeOfTheJob) {
  code_ = 2;
  EXPECT_EQ(job().follow({.rank = 99})->status.code, 2) << "the host has refused the rank";
  EXPECT_TRUE(viewed_.empty()) << "the job goes on";
  there_.state = "saving";
  code_ = 3;
  meanwhile_ = [this] { ends(3); };
  EXPECT_EQ(job().follow({.rank = 1})->status.code, 3);
  EXPECT_EQ(viewed_.size(), 1U);
  EXPECT_FALSE(is_kept());
}

TEST_F(OwnedJobTest, WhoFollowsSomeLinesOfAnEndedJobGetsItsCodeWithoutItsOutputs) {
  ends(3);
  code_ = 3;
  auto cut_off = world();
  cut_off.bring = [](const auto&...) -> Result<bool> { return fail(Errc::unavailable, "cut"); };
  OwnedJob job(known_owned(course_), course_, cut_off);
  const auto followed = job.follow({.lines = 5});
  ASSERT_TRUE(followed) << followed.error().message;
  EXPECT_EQ(followed->status.code, 3);
  EXPECT_EQ(code_of(job.follow({.to_end = false})), Errc::unavailable);
  code_ = 128 + SIGINT;
  EXPECT_EQ(code_of(job.follow({.lines = 5})), Errc::unavailable) << "the user wants no more";
  EXPECT_TRUE(is_kept());
}

TEST_F(OwnedJobTest, CtrlCDuringTheTransferIsTheUsersOwnForSomeLinesToo) {
  ends(3);
  code_ = 3;
  auto stopped = world();
  stopped.bring = [](const auto&...) -> Result<bool> {
    return Failure(Error{Errc::canceled, "stopped", {}, SIGINT});
  };
  OwnedJob job(known_owned(course_), course_, stopped);
  const auto followed = job.follow({.lines = 5});
  EXPECT_EQ(code_of(followed), Errc::canceled);
  EXPECT_EQ(followed.error().sys, SIGINT);
}

TEST_F(OwnedJobTest, ACancelReturnsOnceTheJobIsSettled) {
  ends(130);
  const auto status = job().cancel();
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(status->state, JobState::canceled);
  EXPECT_EQ(status->code, 130);
  EXPECT_TRUE(status->by_person);
  EXPECT_TRUE(viewed_.at(0).settings.canceled);
  EXPECT_FALSE(is_kept());
  // It may have ended by itself before.
  ASSERT_TRUE(journal().keep_job(course_));
  ends(0);
  EXPECT_EQ(job().cancel()->state, JobState::succeeded);
}

TEST_F(OwnedJobTest, AJobThatGoesOnIsNotCanceled) {
  EXPECT_EQ(code_of(job().cancel()), Errc::unavailable);
  end_ = {.signal = SIGTERM};
  const auto stopped = job().cancel();
  EXPECT_EQ(code_of(stopped), Errc::canceled);
  EXPECT_EQ(stopped.error().sys, SIGTERM);
}

}  // namespace
}  // namespace lockstep::jobs::rented
