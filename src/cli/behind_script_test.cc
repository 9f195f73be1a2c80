// Options of Lockstep behind the script cause a hint, options of the script do not.
#include "cli/behind_script.h"

#include "cli/run_options.h"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

using Words = std::vector<std::string>;

std::string hint(const Table& table, const Words& words) {
  const auto parsed = parse_options(
      table, words, [](std::string_view) -> std::optional<std::string> { return std::nullopt; });
  return parsed ? behind_script_hint(table, *parsed) : parsed.error().error.message;
}

TEST(BehindScript, NamesOptionsThatWouldShapeTheJob) {
  EXPECT_EQ(
      hint(run_table(), {"train.py", "--on", "gpus"}),
      "--on goes to train.py, as all words behind the script do; if lockstep run is meant, put "
      "--on in front of train.py; \"-- train.py ...\" ends this hint");
  for (const char* word : {"--nproc-per-node=8", "--nproc_per_node", "--nnodes=2", "--on-demand",
                           "--on_demand=A100:8", "--hostfile", "--spares", "--slots=0,1"})
    EXPECT_NE(hint(run_table(), {"train.py", "--lr", "1", word}), "") << word;
  EXPECT_EQ(hint(run_table(), {"t.py", "--nnodes=1", "--on=x", "--nnodes"})
                .find("--nnodes and --on go to t.py"),
            0U);
}

TEST(BehindScript, IsSilentWhereTheScriptIsMeant) {
  for (const Words& words :
       {Words{"train.py", "--lr", "1", "on", "--online", "-on", "--n"},
        Words{"--on", "gpus", "train.py", "--on", "x"},  // Lockstep's own --on is given, too
        Words{"--", "train.py", "--on", "gpus"}, Words{"train.py", "sub", "--", "--on", "gpus"},
        Words{"train.py", "--name", "x", "--master_port", "1", "--json"}})
    EXPECT_EQ(hint(run_table(), words), "");
  EXPECT_EQ(hint(torchrun_table(), {"train.py", "--on", "gpus"}), "");  // torchrun has no --on
  EXPECT_NE(hint(torchrun_table(), {"train.py", "--nnodes", "2"}), "");
}

std::string value_hint(const Words& words) {
  const auto parsed =
      parse_options(run_table(), words,
                    [](std::string_view) -> std::optional<std::string> { return std::nullopt; });
  return parsed ? value_as_script_hint(run_table(), *parsed) : parsed.error().error.message;
}

TEST(AValueInPlaceOfTheScript, IsNamed) {
  EXPECT_EQ(value_hint({"--status-page", "8000", "train.py"}),
            "--status-page takes a value only behind '=': write --status-page=8000");
  EXPECT_EQ(value_hint({"--nnodes", "1", "--metrics", "10.0.0.7:9400", "train.py"}),
            "--metrics takes a value only behind '=': write --metrics=10.0.0.7:9400");
  EXPECT_EQ(value_hint({"--spot", "prefer", "train.py"}),
            "--spot takes a value only behind '=': write --spot=prefer");
  for (const Words& words : {Words{"--status-page", "trian.py"}, Words{"--status-page=8000", "9"},
                             Words{"--status-page", "--nnodes", "1", "8000"}, Words{"8000"},
                             Words{"--status-page", "--", "8000"}, Words{"--nnodes", "1", "8000"}})
    EXPECT_EQ(value_hint(words), "");
}

}  // namespace
}  // namespace lockstep::cli
