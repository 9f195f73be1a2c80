// Questions to the agents of a Slurm job, without any Slurm: the test answers for srun.
#include "jobs/on_slurm/slurm_agents.h"

#include "base/error_testing.h"
#include "jobs/on_slurm/slurm_job.h"
#include "jobs/on_slurm/slurm_world_testing.h"

#include <algorithm>

namespace lockstep::jobs::on_slurm {
namespace {

using Texts = std::vector<std::string>;

class SlurmAgentsTest : public SlurmWorldTest {
 protected:
  SlurmJob job() { return {known(), place_, world()}; }
  Status bring(const TraceThere& trace, const std::string& to) {
    return job().bring_trace(trace, to, [] { return Status(); });
  }
  static std::string rows(const std::string& node, int rank) {
    return looks::rows_json({.node = node, .rows = {{.rank = rank, .node = node}}});
  }
  static std::string look(const std::string& node, const std::string& words, bool whole) {
    return looks::answer_json(
        {.node = node, .world = 2, .state = "training", .words = words, .whole = whole});
  }
  // The words that srun was told to start.
  Texts asked() const {
    const Texts& argv = slurm_.steps.at(0);
    return {std::find(argv.begin(), argv.end(), place_.folder + "/lockstep"), argv.end()};
  }
  bool has(const std::string& word) const {
    const Texts& argv = slurm_.steps.at(0);
    return std::find(argv.begin(), argv.end(), word) != argv.end();
  }
};

TEST_F(SlurmAgentsTest, EachNodeIsAskedOnceBesideTheRanks) {
  slurm_.nodes = "n[1-3]";
  slurm_.step = FakeSlurm::says(" 1: [" + rows("n2", 1) + "]\n 0: [" + rows("n1", 0) + "]\n");
  const auto nodes = job().ranks();
  ASSERT_TRUE(nodes) << nodes.error().message;
  ASSERT_EQ(nodes->size(), 2U);
  EXPECT_EQ(nodes->at(0).node, "n1");
  EXPECT_EQ(asked(), (Texts{place_.folder + "/lockstep", "slurm-ask", "ranks", "aaaa1111"}));
  for (const char* word : {"--jobid=7", "--nodes=3", "--ntasks=3", "--overlap", "--mem=0"})
    EXPECT_TRUE(has(word)) << word;
}

TEST_F(SlurmAgentsTest, ARankAndTheLastEventAreNamed) {
  ASSERT_TRUE(job().looks({.rank = 3}));
  EXPECT_EQ(asked(),
            (Texts{place_.folder + "/lockstep", "slurm-ask", "looks", "aaaa1111", "rank=3"}));
  slurm_.steps.clear();
  ASSERT_TRUE(job().events(17));
  EXPECT_EQ(asked(), (Texts{place_.folder + "/lockstep", "slurm-ask", "events", "aaaa1111", "17"}));
}

TEST_F(SlurmAgentsTest, ACommandIsRunOnEachNodeWithoutValuesInTheWords) {
  slurm_.nodes = "n[1-2]";
  const auto command = enter_on_nodes(
      known(), place_, {.job = {}, .named = {"A", "B"}, .command = {"ls", "-l"}}, world());
  ASSERT_TRUE(command) << command.error().message;
  const Texts& argv = command->argv;
  const Texts step = {std::find(argv.begin(), argv.end(), place_.folder + "/lockstep"), argv.end()};
  EXPECT_EQ(step, (Texts{place_.folder + "/lockstep", "host-enter", "--in-step", "aaaa1111", "",
                         "A,B", "ls", "-l"}));
  for (const char* word : {"--jobid=7", "--nodes=2", "--label", "--overlap", "--export=A,B"})
    EXPECT_NE(std::find(argv.begin(), argv.end(), word), argv.end()) << word;
  slurm_.nodes = "n1";
  const auto alone = enter_on_nodes(known(), place_, {.job = {}, .command = {"ls"}}, world());
  ASSERT_TRUE(alone);
  EXPECT_EQ(std::find(alone->argv.begin(), alone->argv.end(), "--label"), alone->argv.end());
}

TEST_F(SlurmAgentsTest, ThePageOfANodeIsReachedThroughAStepOnIt) {
  slurm_.nodes = "n[1-3]";
  const page::PageAnswer other{.node = "n1", .group_rank = 1};
  const page::PageAnswer serves{.node = "n3",
                                .place = 2,
                                .group_rank = 0,
                                .host = "127.0.0.1",
                                .port = 4007,
                                .token = "0123456789abcdef"};
  slurm_.step = FakeSlurm::says("0: [" + page_answer_json(other) + "]\n2: [" +
                                page_answer_json(serves) + "]\n");
  setenv("SLURM_NTASKS", "7", 1);
  setenv("SLURM_CONF", "/etc/there", 1);
  const auto found = job().page(0);
  unsetenv("SLURM_NTASKS");
  unsetenv("SLURM_CONF");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(asked(), (Texts{place_.folder + "/lockstep", "slurm-ask", "page", "aaaa1111", "0"}));
  ASSERT_EQ(found->size(), 2U);
  const PageThere& there = found->at(1);
  EXPECT_EQ(there.page, serves);
  EXPECT_FALSE(there.is_here());
  const Texts& argv = there.link->argv;
  for (const char* word : {"--jobid=7", "--nodes=1", "--ntasks=1", "--relative=2", "--overlap",
                           "--mem=0", "--gres=none", "--unbuffered"})
    EXPECT_NE(std::find(argv.begin(), argv.end(), word), argv.end()) << word;
  EXPECT_EQ(Texts(argv.end() - 3, argv.end()),
            (Texts{place_.folder + "/lockstep", "link", "--in-step"}));
  const Texts& env = there.link->env;
  EXPECT_EQ(std::find(env.begin(), env.end(), "SLURM_NTASKS=7"), env.end());
  EXPECT_NE(std::find(env.begin(), env.end(), "SLURM_CONF=/etc/there"), env.end());
}

TEST_F(SlurmAgentsTest, AJobThatDoesNotRunIsNotAsked) {
  for (const char* state : {"PENDING", "COMPLETED", "CONFIGURING"}) {
    slurm_.state = state;
    EXPECT_TRUE(job().looks({})->empty()) << state;
  }
  slurm_.state = "RUNNING";
  keep(ended("success", 0));
  EXPECT_TRUE(job().ranks()->empty());
  slurm_.knows = false;
  EXPECT_TRUE(job().ranks()->empty());
  slurm_.knows = true;
  std::filesystem::remove(place_.folder + "/state.json");
  jobs::KnownJob later = known();
  later.created_ms += 3'600'000;
  EXPECT_TRUE(SlurmJob(later, place_, world()).ranks()->empty())
      << "Slurm counts from 1 again after the loss of its state: this is another job";
  slurm_.answers = false;
  place_.folder.clear();
  EXPECT_TRUE(job().ranks()->empty()) << "a job of plain sbatch has no agents";
  EXPECT_TRUE(slurm_.steps.empty());
}

TEST_F(SlurmAgentsTest, TheEventsOfAnEndedJobAreInItsReports) {
  slurm_.state = "FAILED";
  keep(ended("worker", 3));
  const slurm::JobFolder folder(place_.folder);
  status::EventRing ring;
  ring.add({.time_ms = 5, .kind = status::JobEventKind::ended, .agent = "a", .node = "n1"});
  const std::string events = "[" + ring.latest(1, 1000).at(0) + "]";
  ASSERT_TRUE(io::write_file(folder.report(0, "n1"), "{\"events\": " + events + "}"));
  const auto answers = job().events(0);
  ASSERT_TRUE(answers) << answers.error().message;
  ASSERT_EQ(answers->size(), 1U);
  EXPECT_EQ(answers->at(0).events.size(), 1U);
  EXPECT_TRUE(job().looks({})->empty());
}

TEST_F(SlurmAgentsTest, WithoutAnyAnswerSrunSaysWhy) {
  const auto message = [this] { return job().looks({}).error().message; };
  slurm_.step = FakeSlurm::fails("srun: error: Unable to create step for job 7: Access denied\n");
  EXPECT_EQ(code_of(job().looks({})), Errc::unavailable);
  EXPECT_EQ(message(),
            "ask the nodes of job 7: srun: Unable to create step for job 7: Access denied");
  slurm_.step = FakeSlurm::fails("srun: unrecognized option '--overlap'\n");
  EXPECT_EQ(job().looks({}).error().hint, "srun has --overlap since Slurm 20.11");
  slurm_.step =
      proc::ToolOutput{.out = "", .err = "srun: killed", .exit = {.code = 1}, .late = true};
  EXPECT_EQ(message(), "ask the nodes of job 7: srun: no answer in 10 s");
  slurm_.step = fail(Errc::not_found, "srun is missing");
  EXPECT_EQ(code_of(job().looks({})), Errc::unavailable);
  EXPECT_EQ(message(), "ask the nodes of job 7: srun is missing");
}

TEST_F(SlurmAgentsTest, ASilentNodeDoesNotHideTheOthers) {
  slurm_.step = proc::ToolOutput{
      .out = "0: [" + rows("n1", 0) + "]\n1: [{\"rows\"", .err = "", .exit = {}, .late = true};
  const auto nodes = job().ranks();
  ASSERT_TRUE(nodes) << nodes.error().message;
  ASSERT_EQ(nodes->size(), 1U);
  EXPECT_EQ(nodes->at(0).node, "n1");
}

TEST_F(SlurmAgentsTest, TheAgentsAnswerAboutAProfile) {
  slurm_.nodes = "n[1-2]";
  const auto answer = [](const std::string& node, int rank) {
    return "[" + status::profile_answer_json({.node = node, .id = 7, .ranks = {{.rank = rank}}}) +
           "]\n";
  };
  slurm_.step = FakeSlurm::says("0: " + answer("n1", 0) + "1: " + answer("n2", 1));
  auto said = job().profile({.query = {.id = 7}});
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(asked(), (Texts{place_.folder + "/lockstep", "slurm-ask", "profile", "aaaa1111",
                            "do=look&id=7"}));
  ASSERT_EQ(said->agents.size(), 2U);
  EXPECT_EQ(said->agents[1].says.ranks.at(0).rank, 1);
  EXPECT_TRUE(said->silent.empty());

  slurm_.step =
      proc::ToolOutput{.out = "0: " + answer("n1", 0), .err = "", .exit = {}, .late = true};
  said = job().profile({.query = {.id = 7}});
  EXPECT_EQ(said->agents.size(), 1U);
  EXPECT_EQ(said->silent.at(0),
            "1 of 2 nodes have answered: ask the nodes of job 7: srun: no answer in 10 s");
  slurm_.step = FakeSlurm::fails("srun: error: Busy\n");
  said = job().profile({.query = {.id = 7}});
  EXPECT_EQ(said->silent.at(0), "ask the nodes of job 7: srun: Busy");
}

TEST_F(SlurmAgentsTest, ATraceIsTakenFromTheFolderOfTheJob) {
  const std::string folder = place_.folder + "/lockstep-profile-x";
  const std::string file = folder + "/profile-7-rank-3_99.json";
  const std::string to = place_.folder + "/to";
  std::filesystem::create_directory(folder);
  at(std::chrono::seconds(5), [&] { ASSERT_TRUE(io::write_file(file, "trace")); });
  const TraceThere trace{.folder = folder, .profile = 7, .rank = 3};
  ASSERT_TRUE(bring(trace, to)) << "a network file system shows it late";
  EXPECT_EQ(io::read_file(to).value(), "trace");
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_EQ(code_of(bring(trace, to)), Errc::not_found);
  patience_ = time_ + std::chrono::seconds(5);
  EXPECT_EQ(bring(trace, to).error().sys, SIGINT);
}

TEST_F(SlurmAgentsTest, NoTraceIsTakenFromElsewhere) {
  const std::string name = "/profile-7-rank-3_99.json";
  const auto make = [&](const std::string& folder) {
    std::filesystem::create_directories(folder);
    ASSERT_TRUE(io::write_file(folder + name, "trace"));
  };
  const auto find = [this](const std::string& folder) {
    return job().find_trace({.folder = folder, .profile = 7, .rank = 3});
  };
  const std::string launch = place_.folder + "/launches/2/lockstep-profile-y";
  make(launch);
  EXPECT_EQ(find(launch).value_or(""), launch + name) << "a launch of a script has its own folder";
  const std::string elsewhere = top_ + "/elsewhere";
  make(elsewhere);
  const std::string link = place_.folder + "/lockstep-profile-link";
  std::filesystem::create_directory_symlink(elsewhere, link);
  for (const std::string& odd :
       {std::string("/etc"), elsewhere, link, place_.folder + "x", place_.folder + "/../elsewhere",
        launch + "/../../../../elsewhere", place_.folder + "/..", launch + name})
    EXPECT_EQ(code_of(find(odd)), Errc::denied) << odd;
}

TEST_F(SlurmAgentsTest, MissingTracesShareOneMinute) {
  SlurmJob one = job();
  const auto seconds_for = [&](int rank) {
    const Ms began = time_;
    const TraceThere trace{
        .folder = place_.folder + "/lockstep-profile-x", .profile = 7, .rank = rank};
    EXPECT_EQ(code_of(one.find_trace(trace)), Errc::not_found);
    return (time_ - began).count() / 1000;
  };
  EXPECT_EQ(seconds_for(3), 60);
  EXPECT_EQ(seconds_for(4), 0);
}

TEST_F(SlurmAgentsTest, AHostileNodeIsNotPrintedAsItIs) {
  slurm_.step = FakeSlurm::says("0: [" + look("n\x1b[2J", "a\nb\x1b[2J", true) + "]\n1: [7, {}]\n");
  const auto said = job().why();
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(said->text.find('\x1b'), std::string::npos);
  slurm_.step = FakeSlurm::says("0: welcome\n1: \"[\"\n");
  EXPECT_TRUE(job().ranks()->empty());
}

TEST_F(SlurmAgentsTest, WhyShowsWhatTheRanksDo) {
  slurm_.step = FakeSlurm::says("0: [" + look("n1", "training: step 7", true) + "]\n");
  const auto said = job().why();
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(said->text.find("job 7 "), 0U) << "Slurm's words stand first: " << said->text;
  EXPECT_NE(said->text.find("training: step 7\n"), std::string::npos) << said->text;
  EXPECT_EQ(said->json["looks"][0]["node"], "n1");
  EXPECT_EQ(said->json["jobs"][0]["ids"][0], "7");
}

TEST_F(SlurmAgentsTest, WhyOfAJobWhoseNodesAreNotReachedIsStillSlurms) {
  slurm_.step = FakeSlurm::fails("srun: error: Unable to create step for job 7: Busy\n");
  const auto said = job().why();
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(said->text.find("job 7 "), 0U) << said->text;
  EXPECT_TRUE(said->text.ends_with(
      "  ranks   not known: ask the nodes of job 7: srun: Unable to create step for job 7: Busy\n"))
      << said->text;
  EXPECT_FALSE(said->json.contains("looks"));
}

}  // namespace
}  // namespace lockstep::jobs::on_slurm
