// A job on hosts, without any host: the test answers for them.
#include "jobs/on_hosts/hosts_job.h"

#include "base/error_testing.h"
#include "io/fd.h"
#include "jobs/on_hosts/job_plan.h"
#include "jobs/row_why.h"
#include "status/profile_trace.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>

namespace lockstep::jobs::on_hosts {
namespace {

using Texts = std::vector<std::string>;

class HostsJobTest : public ::testing::Test {
 protected:
  HostsJobTest() {
    JobRequest request;
    request.hosts = {{.name = "gpus-0", .target = {.host = "a"}},
                     {.name = "gpus-1", .target = {.host = "b"}}};
    request.spec.id = "aaaa1111";
    request.spec.name = "train";
    request.words = {{"--node-rank=0"}, {"--node-rank=1"}};
    known_ = {.id = "aaaa1111", .name = "train", .place = "gpus", .command = "train.py"};
    known_.nodes = request.hosts;
    known_.plan = plan_text(request, {.ahead = {}, .endpoint = "10.0.0.1:7"});
  }
  static std::string record(const job::PartState& state) {
    job::JobRecord record;
    record.spec.id = "aaaa1111";
    record.spec.name = "train";
    record.state = state;
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    all.push_back(to_json(record));
    return codec::print_json(all) + "\n";
  }
  static hosts::HostEnding told(const std::string& out) { return {.code = 0, .out = out}; }
  static hosts::HostEnding silent(const std::string& name) {
    return {.code = 255, .error = name + ": no route to host"};
  }
  Status bring(const TraceThere& trace, const std::string& to) {
    return job().bring_trace(trace, to, [this] { return held_; });
  }
  HostsJob job() {
    return HostsJob(known_, {.run = [this](io::Loop&, const hosts::CommandRequest& request)
                                 -> Result<std::vector<hosts::HostEnding>> {
                               EXPECT_EQ(request.argv.at(0), "host-job");
                               EXPECT_EQ(request.argv.at(2), "aaaa1111" + row_);
                               asked_.push_back(request.argv.at(1));
                               limit_ = request.limit;
                               least_ = request.least_output;
                               more_.assign(request.argv.begin() + 3, request.argv.end());
                               hosts_.clear();
                               for (const hosts::HostPlace& host : request.hosts)
                                 hosts_.push_back(host.name);
                               if (stopped_)
                                 return Failure({Errc::canceled, "stopped", {}, SIGINT});
                               auto answers = answers_.at(request.argv.at(1));
                               if (!request.on_output) return answers;
                               for (int i = 0; i < pieces_; ++i)
                                 if (const Status taken = request.on_output(0, piece_); !taken) {
                                   answers[0] = silent(taken.error().message);
                                   break;
                                 }
                               return answers;
                             },
                             .start = [this](const JobRequest& request) -> Result<StartedJob> {
                               started_.push_back(request);
                               return StartedJob{.ahead = ahead_, .endpoint = {}};
                             },
                             .most_trace = most_trace_});
  }

  KnownJob known_;
  std::map<std::string, std::vector<hosts::HostEnding>> answers_;
  Texts ahead_;
  bool stopped_ = false;
  Status held_;                                // of `meanwhile` in a fetch
  std::optional<std::chrono::seconds> limit_;  // of the last request
  std::size_t least_ = 0;                      // as limit_
  Texts asked_;
  Texts more_;                   // words of the last request, after the job's id
  Texts hosts_;                  // names of the hosts of the last request
  std::string piece_ = "trace";  // what the host prints of a trace, and how often
  int pieces_ = 2;
  std::int64_t most_trace_ = status::kMostTrace;
  std::vector<JobRequest> started_;
  std::string row_;  // what the id in a request ends with
};

const job::PartState kRuns{.stage = job::Stage::running};
const job::PartState kLost{.stage = job::Stage::lost};
const job::PartState kFailed{.stage = job::Stage::ended, .ended_ms = 7, .code = 3};
const job::PartState kDone{.stage = job::Stage::ended, .ended_ms = 9};
const job::PartState kCanceled{
    .stage = job::Stage::ended, .ended_ms = 9, .code = 143, .canceled = true};

TEST_F(HostsJobTest, AQuestionAboutThreadsGoesToAllHosts) {
  const auto answer = [](const char* node) {
    return "[" + looks::answer_json({.node = node, .threads = true}) + "]";
  };
  // An older agent does not say that it knows the word.
  answers_["looks"] = {told(answer("n0")), told("[{\"node\": \"n1\"}]")};
  const auto answers = job().looks({.threads = true});
  ASSERT_TRUE(answers) << answers.error().message;
  EXPECT_EQ(more_, Texts{"threads"});
  ASSERT_EQ(answers->size(), 2U);
  EXPECT_TRUE(answers->at(0).threads);
  EXPECT_FALSE(answers->at(1).threads);
  ASSERT_TRUE(job().looks({.rank = 3, .native = true}));
  EXPECT_EQ(more_, Texts{"rank=3&native"});
  ASSERT_TRUE(job().looks({}));
  EXPECT_EQ(more_, Texts{});
}

// Each question is a log-in per host.
TEST_F(HostsJobTest, OnlyTheHostOfARowIsAskedAboutIt) {
  answers_["report"] = {told(R"({"root_cause": {"rank": 3}})")};
  const auto reports = job().row_reports(12, "gpus-1");
  EXPECT_EQ(hosts_, Texts{"gpus-1"});
  EXPECT_EQ(more_, Texts{"12"});
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0]["root_cause"]["rank"], 3);
  // The tails of many ranks' outputs are long.
  answers_["report"] = {told(R"({"tail": ")" + std::string(2UL << 20, 'x') + "\"}")};
  EXPECT_EQ(job().row_reports(12, "gpus-1").size(), 1U);
  answers_["report"] = {silent("gpus-1")};
  EXPECT_TRUE(job().row_reports(12, "gpus-1").empty());
  row_ = "[12]";
  answers_["looks"] = {told("[" + looks::answer_json({.node = "n0"}) + "]")};
  EXPECT_EQ(job().row_looks(12, "gpus-0")->size(), 1U);
  EXPECT_EQ(hosts_, Texts{"gpus-0"});
}

TEST_F(HostsJobTest, TheRowsOfAllHostsAreInTheOrderOfTheirRanks) {
  const auto rows = [](const char* node, int rank) {
    return looks::rows_json({.node = node, .rows = {{.rank = rank, .node = node}}});
  };
  // A host may be hostile, of an older version, or show the agents of another one.
  answers_["ranks"] = {told("[" + rows("n1", 4) + ", 3, {\"rows\": 7}]"),
                       told("[" + rows("n0\x1b", 0) + "," + rows("n1", 4) + "]")};
  const auto nodes = job().ranks();
  ASSERT_TRUE(nodes);
  ASSERT_EQ(nodes->size(), 3U);
  EXPECT_EQ(nodes->at(0).node, "n0\\x1b");
  EXPECT_EQ(nodes->at(1).node, "n1");
  EXPECT_TRUE(nodes->at(2).rows.empty());
  answers_["ranks"] = {silent("gpus-0"), told("host-job has no verb 'ranks'")};
  EXPECT_TRUE(job().ranks()->empty());
}

TEST_F(HostsJobTest, APageIsOnTheHostThatTellsOfIt) {
  const page::PageAnswer served{
      .node = "n1", .host = "127.0.0.1", .port = 8000, .token = "0123456789abcdef"};
  page::PageAnswer hostile = served;
  hostile.host = "a b";
  answers_["page"] = {told("[" + page::page_answer_json(hostile) + ", 7]"),
                      told("[" + page::page_answer_json(served) + "]")};
  const auto pages = job().page(0);
  ASSERT_TRUE(pages);
  ASSERT_EQ(pages->size(), 1U);
  EXPECT_EQ(pages->at(0).page, served);
  ASSERT_TRUE(pages->at(0).host);
  EXPECT_EQ(pages->at(0).host->name, "gpus-1");
  answers_["page"] = {silent("gpus-0"), told("host-job has no verb 'page'")};
  EXPECT_TRUE(job().page(0)->empty());
}

TEST_F(HostsJobTest, TheAgentsOfAllHostsAnswerAboutAProfile) {
  const auto answer = [](const std::string& node, int rank) {
    return status::profile_answer_json({.node = node, .id = 7, .ranks = {{.rank = rank}}});
  };
  answers_["profile"] = {told("[" + answer("n0", 0) + ", 7, {\"ranks\": 3}]"),
                         told("[" + answer("n1\x1b", 1) + "]")};
  const status::ProfileQuery start{
      .what = status::ProfileQuery::What::start, .id = 7, .wish = {.steps = 5}};
  auto said = job().profile({.query = start});
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(more_, Texts{"do=start&id=7&steps=5&every=1&ms=0&limit=120&ranks="});
  EXPECT_EQ(limit_, std::chrono::seconds(60)) << "a host that hangs holds up the others";
  ASSERT_EQ(said->agents.size(), 2U);
  EXPECT_EQ(said->agents[1].host, 1);
  EXPECT_EQ(said->agents[1].says.node, "n1\\x1b");
  EXPECT_EQ(said->agents[1].says.ranks.at(0).rank, 1);
  EXPECT_TRUE(said->silent.empty());

  answers_["profile"] = {silent("gpus-0"),
                         {.code = 1, .err = "host-job has no verb 'profile'\x1b\n"}};
  said = job().profile({.query = {.id = 7}});
  ASSERT_TRUE(said);
  EXPECT_TRUE(said->agents.empty());
  EXPECT_EQ(said->silent,
            (std::map<int, std::string>{{0, "gpus-0: no route to host"},
                                        {1, "gpus-1: host-job has no verb 'profile'\\x1b"}}));

  answers_["profile"] = {told("[" + answer("n1", 1) + "]")};
  said = job().profile({.query = {.id = 7}, .hosts = {1}});
  ASSERT_TRUE(said);
  EXPECT_EQ(hosts_, Texts{"gpus-1"});
  EXPECT_EQ(said->agents.at(0).host, 1);
  EXPECT_EQ(limit_, std::chrono::seconds(20));
  answers_["profile"] = {
      told("[" + status::profile_answer_json({.refusal = "x", .late = true}) + "]")};
  said = job().profile({.query = {.id = 7}, .hosts = {1}});
  EXPECT_EQ(said->agents.at(0).says.node, "gpus-1") << "an agent without an answer has no name";
  asked_.clear();
  said = job().profile({.query = {.id = 7}, .hosts = {2}});
  ASSERT_TRUE(said) << "an earlier attempt had more hosts";
  EXPECT_TRUE(said->agents.empty() && said->silent.empty() && asked_.empty());
  stopped_ = true;
  EXPECT_EQ(job().profile({.query = {.id = 7}}).error().sys, SIGINT);
}

TEST_F(HostsJobTest, ATraceIsBroughtToItsFile) {
  const std::string to = ::testing::TempDir() + "lockstep-trace-" + std::to_string(getpid());
  answers_["profile-trace"] = {told("")};
  ASSERT_TRUE(bring({.host = 1, .folder = "/f", .profile = 7, .rank = 3}, to));
  EXPECT_EQ(io::read_file(to).value(), "tracetrace");
  EXPECT_EQ(hosts_, Texts{"gpus-1"});
  EXPECT_EQ(more_, (Texts{"/f", "7", "3"}));
  EXPECT_EQ(limit_, std::chrono::seconds(30));
  EXPECT_EQ(least_, 1U << 20) << "a byte now and then does not hold the command";
  answers_["profile-trace"] = {{.code = 1, .err = "the trace is no longer there\n"}};
  EXPECT_EQ(bring({.host = 1}, to).error().message, "gpus-1: the trace is no longer there");
  EXPECT_EQ(io::read_file(to).value(), "tracetrace") << "the trace of before stays";
  stopped_ = true;
  EXPECT_EQ(bring({.host = 1}, to).error().sys, SIGINT);
  EXPECT_EQ(io::read_file(to).value(), "tracetrace");
  EXPECT_FALSE(io::read_file(to + ".part")) << "a part of a trace is no trace";
  stopped_ = false;
  EXPECT_EQ(code_of(bring({.host = 2}, to)), Errc::not_found);
}

TEST_F(HostsJobTest, AFetchEndsIfItsCommandMust) {
  const std::string to = ::testing::TempDir() + "lockstep-held-" + std::to_string(getpid());
  answers_["profile-trace"] = {told("")};
  held_ = Failure({Errc::canceled, "stopped", {}, SIGINT});
  EXPECT_EQ(bring({.host = 0}, to).error().sys, SIGINT);
  EXPECT_FALSE(io::read_file(to));
  known_.nodes[1].login = true;
  held_ = {};
  EXPECT_TRUE(bring({.host = 1}, to));
  EXPECT_EQ(limit_, std::chrono::seconds(90)) << "it may wait for the file system of the nodes";
  unlink(to.c_str());
}

TEST_F(HostsJobTest, AHostCannotFillTheDiskWithATrace) {
  const std::string to = ::testing::TempDir() + "lockstep-large-" + std::to_string(getpid());
  answers_["profile-trace"] = {told("")};
  most_trace_ = 10;
  EXPECT_TRUE(bring({.host = 0}, to));
  ASSERT_EQ(unlink(to.c_str()), 0);
  pieces_ = 3;
  EXPECT_NE(bring({.host = 0}, to).error().message.find("is larger than 16 GiB"),
            std::string::npos);
  EXPECT_FALSE(io::read_file(to));
}

TEST_F(HostsJobTest, ASilentHostDoesNotHideTheOthers) {
  answers_["status"] = {silent("gpus-0"), told(record(kRuns))};
  const auto status = job().status();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->state, JobState::running);
  EXPECT_FALSE(status->nodes.at(0).state);
  EXPECT_EQ(status->nodes.at(1).state, JobState::running);
}

// "lost" would be wrong: the job may run there.
TEST_F(HostsJobTest, AJobWhoseHostsAreAllSilentHasNoKnownState) {
  answers_["status"] = {silent("gpus-0"), silent("gpus-1")};
  const auto unknown = job().status();
  EXPECT_EQ(code_of(unknown), Errc::unavailable);
  EXPECT_EQ(unknown.error().message,
            "no answer from gpus-0, gpus-1: the state of job aaaa1111 is not known");
  EXPECT_EQ(code_of(job().why()), Errc::unavailable);
  answers_["status"] = {told(record(kLost)), silent("gpus-1")};
  EXPECT_EQ(code_of(job().status()), Errc::unavailable);
}

TEST_F(HostsJobTest, AHostThatKnowsNoSuchJobHasLostItsPart) {
  answers_["status"] = {told("[]"), told("[]")};
  const auto status = job().status();
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(status->state, JobState::lost);
  EXPECT_EQ(status->nodes.at(1).state, JobState::lost);
  EXPECT_NE(job().why()->text.find("gpus-1: lost: knows no such job"), std::string::npos);
  answers_["status"] = {told("[]"), told(record(kRuns))};
  EXPECT_EQ(job().status()->state, JobState::running);
}

// A host of a newer version, a login shell that prints, a hostile host.
TEST_F(HostsJobTest, AnAnswerThatIsNoRecordIsNoAnswer) {
  for (const char* text : {"", "welcome to gpus-0", "{}", "[{}]", "[1,2]", "[null]"}) {
    answers_["status"] = {told(text), told(record(kRuns))};
    const auto status = job().status();
    ASSERT_TRUE(status) << text;
    EXPECT_FALSE(status->nodes.at(0).state) << text;
    EXPECT_EQ(status->state, JobState::running) << text;
  }
}

TEST_F(HostsJobTest, ASignalWhileAskingIsTheAnswer) {
  stopped_ = true;
  EXPECT_EQ(job().status().error().sys, SIGINT);
  EXPECT_EQ(job().why().error().sys, SIGINT);
  EXPECT_EQ(job().cancel().error().sys, SIGINT);
  EXPECT_EQ(job().resume({}).error().sys, SIGINT);
}

TEST_F(HostsJobTest, OnlyAFailedJobIsAskedForItsReport) {
  answers_["status"] = {told(record(kDone)), told(record(kDone))};
  const auto said = job().why();
  ASSERT_TRUE(said);
  EXPECT_EQ(said->json["state"], "succeeded");
  EXPECT_EQ(asked_, Texts{"status"}) << "each question is a log-in at each host";
}

TEST_F(HostsJobTest, TheFirstReportWithACauseExplainsAFailure) {
  answers_["status"] = {told(record(kFailed)), told(record(kFailed))};
  answers_["report"] = {
      told(R"({"root_cause":null,"reason":"gpus-1 was lost"})"),
      told(R"({"root_cause":{"rank":5,"host":"gpus-1","exit_code":3,"message":"KeyError: 'x'"}})")};
  const auto said = job().why();
  ASSERT_TRUE(said);
  EXPECT_EQ(said->json["root_cause"]["rank"], 5);
  EXPECT_NE(said->text.find("KeyError: 'x'"), std::string::npos) << said->text;
}

TEST_F(HostsJobTest, AFailureWithoutAReportIsStillExplained) {
  answers_["status"] = {told(record(kFailed)), silent("gpus-1")};
  answers_["report"] = {told("not JSON"), silent("gpus-1")};
  const auto said = job().why();
  ASSERT_TRUE(said);
  EXPECT_EQ(said->json["state"], "failed");
  EXPECT_EQ(said->json["code"], 3);
  EXPECT_TRUE(said->json["root_cause"].is_null());
  EXPECT_NE(said->text.find("gpus-1: does not answer"), std::string::npos) << said->text;
}

TEST_F(HostsJobTest, ACanceledJobIsCanceledWhateverItsCode) {
  answers_["cancel"] = {told(record(kCanceled)), told(record(kCanceled))};
  const auto status = job().cancel();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->state, JobState::canceled);
  EXPECT_TRUE(status->by_person);
  EXPECT_EQ(status->code, 143);
}

// The caller sees which part has not been told, and must not call the job over on that host.
TEST_F(HostsJobTest, APartThatNeverAnswersACancelIsNamed) {
  answers_["cancel"] = {told(record(kCanceled)), silent("gpus-1")};
  const auto status = job().cancel();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->nodes.at(0).state, JobState::canceled);
  EXPECT_FALSE(status->nodes.at(1).state);
  answers_["cancel"] = {told("[]"), silent("gpus-1")};
  EXPECT_EQ(job().cancel()->state, JobState::lost);
}

TEST_F(HostsJobTest, OnlyLostPartsBeginAgain) {
  answers_["status"] = {told(record(kRuns)), told(record(kLost))};
  ahead_ = {"old1"};
  const auto resumed = job().resume({"A=1"});
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(resumed->nodes, Texts{"gpus-1"});
  EXPECT_EQ(resumed->ahead, Texts{"old1"});
  ASSERT_EQ(started_.size(), 1U);
  EXPECT_EQ(started_[0].nodes, std::vector<int>{1});
  EXPECT_EQ(started_[0].words,
            (std::vector<Texts>{{"--node-rank=1", "--rdzv-endpoint=10.0.0.1:7"}}));
  EXPECT_EQ(started_[0].spec.env, Texts{"A=1"});
}

TEST_F(HostsJobTest, AJobWithoutALostPartIsNotStartedTwice) {
  answers_["status"] = {told(record(kRuns)), told(record(kDone))};
  EXPECT_EQ(code_of(job().resume({})), Errc::invalid_input);
  // The silent host may still run its part.
  answers_["status"] = {told(record(kRuns)), silent("gpus-1")};
  const auto refused = job().resume({});
  EXPECT_EQ(code_of(refused), Errc::unavailable);
  EXPECT_NE(refused.error().message.find("no answer from gpus-1"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(started_.empty());
}

TEST_F(HostsJobTest, ASilentHostDoesNotKeepALostPartOfAnotherFromBeginningAgain) {
  answers_["status"] = {told(record(kLost)), silent("gpus-1")};
  const auto resumed = job().resume({});
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(resumed->nodes, Texts{"gpus-0"});
  EXPECT_EQ(started_.at(0).hosts.size(), 1U);
}

// Rented machines are terminated at the job's end.
TEST_F(HostsJobTest, KeptRowsAreToldWithoutTheirHosts) {
  nlohmann::json plan = nlohmann::json::parse(known_.plan);
  plan["spec"]["run"] = {"--sweep=seed=0-2", "--", "train.py"};
  known_.plan = plan.dump();
  known_.status = {.state = JobState::failed, .code = 1, .why = "1 done, 1 failed, 1 unknown"};
  std::string folder = ::testing::TempDir() + "rowsXXXXXX";
  const auto book = JobBook::open(mkdtemp(folder.data()));
  ASSERT_TRUE(book && book->add(known_));
  const auto rows = rows::read_book(rows::begin_line(0, 1000) + rows::end_line(0, 0, 3000, "") +
                                    rows::begin_line(1, 1000) + rows::end_line(1, 7, 2000, "bad"));
  answers_["rows"] = {told(codec::print_json(rows::to_json(rows))), silent("gpus-1")};
  ASSERT_TRUE(job().keep_rows(*book));
  asked_.clear();
  known_ = *book->find("aaaa1111");
  const auto said = job().why();
  ASSERT_TRUE(said);
  EXPECT_EQ(said->text,
            "aaaa1111 (train) on gpus: failed, 1 done, 1 failed, 1 unknown\n"
            "  1 row: bad\n"
            "       1  seed=1  on gpus-0\n"
            "the same command with --sweep-only 1-2 runs the rows again that are not done\n");
  EXPECT_EQ(said->json["rows"][0]["seconds"], 2.0);
  EXPECT_EQ(said->json["rows"][1]["code"], 7);
  HostsJob ended = job();
  EXPECT_EQ(why_row(ended, 1)->text,
            "row 1 of job aaaa1111 (train) on gpus: failed (7)\n"
            "  seed=1\n"
            "  on gpus-0, 1.0 s\n"
            "reason: bad\n"
            "the same command with --sweep-only 1-2 runs the rows again that are not done\n");
  const auto refused = job().resume({});
  ASSERT_EQ(code_of(refused), Errc::invalid_input);
  EXPECT_NE(refused.error().hint.find("--sweep-only 1-2"), std::string::npos);
  EXPECT_TRUE(asked_.empty()) << "a machine that is gone costs a minute";
  std::filesystem::remove_all(folder);
}

TEST_F(HostsJobTest, APlanThatAnotherVersionWroteIsRefused) {
  answers_["status"] = {told(record(kLost)), told(record(kLost))};
  for (const char* plan : {"", "{}", R"({"spec":{},"words":[[]]})", R"({"spec":{},"words":7})"}) {
    known_.plan = plan;
    EXPECT_EQ(code_of(job().resume({})), Errc::corrupt) << plan;
  }
  EXPECT_TRUE(started_.empty());
}

}  // namespace
}  // namespace lockstep::jobs::on_hosts
