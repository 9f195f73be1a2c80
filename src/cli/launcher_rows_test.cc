// Compares two lists of torchrun's options. The room launchers may not use the option table,
// because cli is above launchers, and keeps a list of its own.
#include "cli/run_options.h"
#include "launchers/launcher_words.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

namespace lockstep::cli {
namespace {

using Words = std::vector<std::string>;
using Rows = std::map<std::string, std::tuple<bool, char, bool>, std::less<>>;

TEST(LauncherRows, TorchrunsAreThoseOfTheTable) {
  Rows ours;
  for (const Option* option : options_of(torchrun_table()))
    if (!option->own)
      ours[std::string(option->name)] = {option->kind != Kind::flag, option->letter,
                                         option->ends_parsing};
  Rows theirs;
  for (const launchers::ArgumentRow& row : launchers::torchrun_rows())
    theirs[std::string(row.name)] = {row.takes_value, row.letter, row.ends};
  EXPECT_EQ(ours, theirs);
}

TEST(LauncherRows, WordsAreSplitAsTheTableSplitsThem) {
  const std::vector<Words> lines = {
      {"train.py"},
      {"-r", "9:1", "-t", "9:1", "train.py", "-r"},
      {"-mt3", "pkg", "--"},
      {"-m", "pkg", "--", "a", "--"},
      {"--", "t", "--", "a"},
      {"--nproc_per_node=4", "--rdzv_conf", "a=1,b=2", "t"},
      {"--nproc", "4", "--rdzv-ba=c10d", "--max_r", "3", "t", "--tee", "1"},
      {"--rdzv_id", "-5", "t"},
      {"--rdzv-id=", "t"},
      {"-t=3", "t"},
      {"-5", "a"},
      {"- x", "a"},
      {"-", "a"},
      {"", "a"},
      {"--standalone", "--no_python", "echo", "--standalone"},
      {"-x", "t"},
      {"--rdzv", "t"},
      {"--tee"},
      {"--tee", "--", "t"},
      {"--module=1", "t"},
      {"-m=1", "t"},
      {"-mx", "t"},
  };
  for (const Words& words : lines) {
    const std::string shown = testing::PrintToString(words);
    const auto table = parse_options(torchrun_table(), words, [](auto) { return std::nullopt; });
    const auto split = launchers::split_arguments("torchrun", launchers::torchrun_rows(), words);
    ASSERT_EQ(table.has_value(), split.has_value()) << shown;
    if (!table) continue;
    EXPECT_EQ(table->script.value_or("none"), split->rest.empty() ? "none" : split->rest[0])
        << shown;
    EXPECT_EQ(table->script_args, Words(split->rest.begin() + 1, split->rest.end())) << shown;
    for (const auto& [name, value] : table->values) {
      EXPECT_TRUE(split->has(name)) << shown << name;
      if (value != "1" || !split->text(name).empty()) {
        EXPECT_EQ(split->text(name), value) << shown;
      }
    }
    EXPECT_EQ(table->values.size(), split->options.size()) << shown;
  }
}

}  // namespace
}  // namespace lockstep::cli
