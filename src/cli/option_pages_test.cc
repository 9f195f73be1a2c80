// Tests the text of the pages. tests/integration/test_package.py has groff check the roff.
#include "cli/option_pages.h"

#include "base/text.h"
#include "cli/commands.h"
#include "cli/run_options.h"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

std::string page(std::string_view name) {
  for (const ManPage& each : man_pages(lockstep_program(), "1.2.3", "2026-11-22")) {
    if (each.name == name) return each.text;
  }
  return {};
}

std::string roff_word(std::string_view word) {
  std::string out;
  for (const char c : word)
    out += c == '-' ? std::string("\\-") : std::string(1, c);
  return out;
}

std::string roff_dashes(std::string_view name) {
  return "\\-\\-" + roff_word(name);
}

TEST(OptionPages, EveryOptionIsOnItsManPageAndInTheMarkdown) {
  const std::string markdown = options_markdown(lockstep_program());
  std::string all_pages;
  for (const ManPage& each : man_pages(lockstep_program(), "1.2.3", "2026-11-22"))
    all_pages += each.text;
  for (const Node& node : listed_rows(lockstep_program())) {
    EXPECT_TRUE(holds(page("lockstep"), roff_word(node.path))) << node.path;
    if (node.row->table == nullptr) continue;
    const Table& table = node.row->table();
    EXPECT_TRUE(holds(markdown, "\n## " + std::string(table.program) + "\n"));
    std::string name = "lockstep " + node.path;
    replace_all(name, " ", "-");
    EXPECT_NE(page(name), "") << node.path;
    for (const Group& group : table.groups) {
      for (const Option& option : group.options) {
        EXPECT_TRUE(holds(markdown, "`--" + std::string(option.name))) << option.name;
        EXPECT_TRUE(holds(all_pages, roff_dashes(option.name))) << option.name;
      }
    }
  }
}

TEST(OptionPages, AManPageNamesVersionDateAndExitCodes) {
  const std::string run = page("lockstep-run");
  EXPECT_TRUE(
      run.starts_with(".TH LOCKSTEP\\-RUN 1 2026-11-22 \"lockstep 1.2.3\" \"User Commands\"\n"));
  EXPECT_TRUE(holds(run, ".SH EXIT STATUS\n"));
  EXPECT_FALSE(holds(page("lockstep-store"), ".SH EXIT STATUS\n"));
}

TEST(OptionPages, AnOptionHasItsDefaultChoicesAndVariable) {
  EXPECT_TRUE(holds(page("lockstep-run"),
                    ".TP\n\\fB\\-\\-start\\-method\\fR \\fIHOW\\fR\naccepted, without effect.\n"
                    "One of spawn, fork, forkserver.\nDefault: spawn.\n"
                    "Environment: PET_START_METHOD.\n"));
  EXPECT_TRUE(holds(options_markdown(lockstep_program()),
                    "\n| `--start-method HOW` | `spawn` | `PET_START_METHOD` | accepted, without "
                    "effect; one of spawn, fork, forkserver |\n"));
  EXPECT_TRUE(holds(options_markdown(lockstep_program()), "\n| `--nnodes N\\|MIN:MAX` |"));
}

TEST(OptionPages, VariablesAreOnTheMainPageAndInHelp) {
  for (const Variable& variable : run_table().variables) {
    const std::string name(variable.name);
    EXPECT_TRUE(holds(page("lockstep-run"), ".TP\n\\fB" + name + "\\fR=")) << name;
    EXPECT_FALSE(holds(page("lockstep-launch"), "\\fB" + name + "\\fR=")) << name;
    EXPECT_TRUE(holds(options_markdown(lockstep_program()), "\n| `" + name + "=")) << name;
    EXPECT_TRUE(holds(help_text(torchrun_table()), "\n  " + name + "=")) << name;
  }
  EXPECT_TRUE(holds(help_text(run_table()), "\n  TORCHELASTIC_HEALTH_CHECK_PORT=PORT\n"));
}

TEST(OptionPages, ThePageOfLaunchDoesNotRepeatThoseOfRun) {
  const std::string launch = page("lockstep-launch");
  EXPECT_TRUE(holds(launch, "All options of\n.BR lockstep\\-run (1),\nand:\n"));
  EXPECT_TRUE(holds(launch, "\\-\\-use\\-env"));
  EXPECT_FALSE(holds(launch, "\\-\\-nnodes"));
}

}  // namespace
}  // namespace lockstep::cli
