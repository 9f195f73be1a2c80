// Tests the dispatch and the listing of rows, also of rows in rows. completion_test.cc and
// option_pages_test.cc test the other readers of rows.
#include "cli/subcommand.h"

#include "base/text.h"
#include "cli/commands.h"
#include "cli/program_testing.h"
#include "proc/signals.h"
#include "setup/spec.h"

#include <gtest/gtest.h>

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <set>

namespace lockstep::cli {
namespace {

struct Outcome {
  int code = 0;
  std::string call;
  std::string out;
  std::string err;
};

Outcome outcome(const Args& words, const Program& program = sample::kProgram,
                std::string_view called_as = "tool") {
  sample::last_call().clear();
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome found;
  found.code = number(dispatch(program, called_as, words));
  found.call = sample::last_call();
  found.out = testing::internal::GetCapturedStdout();
  found.err = testing::internal::GetCapturedStderr();
  return found;
}

TEST(Subcommand, RowsAndRowsInRowsAreCalledWithTheirOptions) {
  EXPECT_EQ(outcome({"go", "--how-far", "3", "cluster"}).call, "11 how-far=3 script=cluster");
  EXPECT_EQ(outcome({"cluster", "add", "--node=n1"}).call, "12 node=n1");
  EXPECT_EQ(outcome({"cluster", "list"}).code, 13);
  EXPECT_EQ(outcome({"secret"}).code, 14);
}

TEST(SubcommandDeathTest, ARowWithBlockedSignalsOutlivesALostConnection) {
  const auto write_to_nobody = [] {
    take_signals(Signals::blocked);
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) exit(1);
    close(ends[0]);
    const bool failed = write(ends[1], "x", 1) < 0 && errno == EPIPE;
    // A pending SIGPIPE would end the process here.
    const sigset_t handled = proc::handled_signals();
    sigprocmask(SIG_UNBLOCK, &handled, nullptr);
    exit(failed ? 0 : 2);
  };
  EXPECT_EXIT(write_to_nobody(), testing::ExitedWithCode(0), "");
}

TEST(Subcommand, ALinkIsItsRowWhateverFollows) {
  EXPECT_EQ(outcome({"cluster"}, sample::kProgram, "alias").call, "15 script=cluster");
  EXPECT_EQ(outcome({"alias"}).code, 2);  // no subcommand
}

TEST(Subcommand, OptionsThatAreRefusedOrAskForHelpCallNothing) {
  const Outcome refused = outcome({"cluster", "add", "--node"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err, "tool cluster add: error: argument --node: expected one argument\n");
  const Outcome help = outcome({"cluster", "add", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_TRUE(help.out.starts_with("usage: tool cluster add [options]\n")) << help.out;
  EXPECT_EQ(refused.call + help.call, "");
}

TEST(Subcommand, EveryLevelHasItsOverview) {
  const Outcome all = outcome({"--help"});
  EXPECT_EQ(all.code, 0);
  EXPECT_EQ(all.out,
            "usage: tool COMMAND [options]\n\nDoes things.\n\ncommands:\n"
            "  go        go somewhere\n  cluster   nodes under a name\n\n"
            "'tool COMMAND --help' tells more. 'tool --version' prints the version.\n");
  const Outcome verbs = outcome({"cluster", "-h"});
  EXPECT_EQ(verbs.code, 0);
  EXPECT_EQ(verbs.out,
            "usage: tool cluster COMMAND [options]\n\nnodes under a name.\n\ncommands:\n"
            "  add       add a node\n  list      list nodes\n\n"
            "'tool cluster COMMAND --help' tells more.\n");
  EXPECT_EQ(outcome({"cluster"}).code, 2);
  EXPECT_EQ(outcome({"cluster"}).err, verbs.out);
  EXPECT_EQ(outcome({}).err, all.out);
}

TEST(Subcommand, AnUnknownWordIsToldWhereItStands) {
  EXPECT_EQ(outcome({"cluster", "lits"}).err,
            "tool cluster: error: unknown command 'lits'; did you mean 'tool cluster list'?\n");
  EXPECT_EQ(outcome({"cluster", "x.py"}).err,
            "tool cluster: error: unknown command 'x.py'; the commands are: add, list\n");
  EXPECT_EQ(outcome({"bogus"}).err,
            "tool: error: unknown command 'bogus'; the commands are: go, cluster\n");
  EXPECT_EQ(outcome({"x.py"}).err,
            "tool: error: unknown command 'x.py'; did you mean 'tool go x.py'?\n");
  EXPECT_EQ(outcome({"bogus"}).code, 2);
}

TEST(Subcommand, ListedRowsComeInOrderWithTheirPaths) {
  std::vector<std::string> paths;
  for (const Node& node : listed_rows(sample::kProgram))
    paths.push_back(node.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"", "go", "cluster", "cluster add", "cluster list"}));
}

TEST(Subcommand, AnErrorGivesTheCodeOfItsRow) {
  const Error wrong{Errc::invalid_input, "wrong", {}, 0};
  const Error missing{Errc::not_found, "missing", {}, 0};
  const Error away{Errc::unavailable, "away", {}, 0};
  EXPECT_EQ(code_of(wrong), ExitCode::usage);
  EXPECT_EQ(code_of(missing), ExitCode::failed);
  EXPECT_EQ(code_of(away), ExitCode::failed);
  EXPECT_EQ(code_of(wrong, kAsSsh), ExitCode::usage);
  EXPECT_EQ(code_of(away, kAsSsh), ExitCode::not_reached);
  EXPECT_EQ(code_of(wrong, always(ExitCode::failed)), ExitCode::failed);
  const ErrorCodes of_jobs{.other = ExitCode::not_reached, .missing_is_usage = true};
  EXPECT_EQ(code_of(missing, of_jobs), ExitCode::usage);
  EXPECT_EQ(code_of(away, of_jobs), ExitCode::not_reached);
}

TEST(Subcommand, ASignalThatStoppedACommandIsItsCode) {
  const Error stopped{Errc::canceled, "SIGINT came", {}, 2};
  EXPECT_EQ(number(code_of(stopped)), 130);
  EXPECT_EQ(number(code_of(stopped, kAsSsh)), 130);
  EXPECT_EQ(code_of({Errc::canceled, "closed", {}, 0}, kAsSsh), ExitCode::not_reached);
}

TEST(Subcommand, AnErrorOfARowIsPrintedUnderTheNameOfItsTableOrItsRow) {
  const Outcome failed = outcome({"fails"});
  EXPECT_EQ(failed.code, 255);
  EXPECT_EQ(failed.err, "tool fails: error: it is away; try later\n");
}

TEST(Commands, OtherProgramsAreToldTheirCommand) {
  const auto told = [](const std::string& word) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(dispatch(lockstep_program(), "lockstep", {word, "x"}), ExitCode::usage);
    return testing::internal::GetCapturedStderr();
  };
  for (const auto& [word, command] :
       std::initializer_list<std::pair<const char*, const char*>>{{"torchrun", "run torchrun"},
                                                                  {"deepspeed", "run deepspeed"},
                                                                  {"accelerate", "run accelerate"},
                                                                  {"sbatch", "submit"},
                                                                  {"srun", "submit"},
                                                                  {"squeue", "jobs"},
                                                                  {"scancel", "cancel"}})
    EXPECT_EQ(told(word), std::string("lockstep: error: unknown command '") + word +
                              "'; did you mean 'lockstep " + command + "'?\n");
}

TEST(Commands, RowsAreWellFormed) {
  std::set<std::string> paths;
  for (const Node& node : listed_rows(lockstep_program())) {
    EXPECT_TRUE(paths.insert(node.path).second) << node.path;
    EXPECT_NE(node.row->rows.empty(), node.row->run == nullptr) << node.path;
    EXPECT_FALSE(node.row->summary.empty() || node.row->summary.ends_with('.')) << node.path;
    EXPECT_LE(node.row->summary.size(), 64U) << node.path;  // a line of the overview
    if (node.row->table != nullptr) {
      EXPECT_EQ(node.row->table().program, "lockstep " + node.path);
    }
  }
  for (const Subcommand* row : lockstep_program().links)
    if (row->table != nullptr) {
      EXPECT_EQ(row->table().program, row->name);
    }
}

TEST(Commands, HelpBeginsWithASentenceAndExamplesThatParse) {
  for (const Node& node : listed_rows(lockstep_program())) {
    if (node.row->table == nullptr) continue;
    const Table& table = node.row->table();
    EXPECT_TRUE(table.summary.ends_with('.')) << node.path;
    EXPECT_EQ(table.summary.find('\n'), table.summary.npos) << node.path;
    EXPECT_LE(table.summary.size(), 80U) << node.path;
    const auto examples = split(std::string(table.examples), '\n');
    EXPECT_TRUE(examples.size() == 2 || examples.size() == 3) << node.path;
    for (const std::string& example : examples) {
      ASSERT_TRUE(example == table.program || example.starts_with(std::string(table.program) + " "))
          << example;
      EXPECT_LE(example.size(), 84U) << example;
      const auto words = setup::split_words(example.substr(table.program.size()));
      ASSERT_TRUE(words) << example;
      const GetEnv none = [](std::string_view) { return std::nullopt; };
      const auto parsed = node.row->read != nullptr ? node.row->read(*words, none)
                                                    : parse_options(table, *words, none);
      ASSERT_TRUE(parsed) << example << ": " << parsed.error().error.message;
      EXPECT_EQ(parsed->ended_by, "") << example;
    }
  }
}

TEST(Commands, HelpIsTheSubcommandsOwn) {
  const auto help = [](const Args& words) {
    return outcome(words, lockstep_program(), "lockstep");
  };
  EXPECT_EQ(help({"help"}).out, help({"--help"}).out);
  EXPECT_EQ(help({"help", "store"}).out, help({"store", "--help"}).out);
  EXPECT_EQ(help({"help", "run", "train.py"}).out, help({"run", "--help"}).out);
  EXPECT_EQ(help({"help", "help"}).out, help({"--help"}).out);
  EXPECT_EQ(help({"help", "rnu"}).code, 2);
  EXPECT_EQ(help({"version"}).out, help({"--version"}).out);
}

}  // namespace
}  // namespace lockstep::cli
