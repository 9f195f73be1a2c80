#include "slurm/check_run.h"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <utility>

namespace lockstep::slurm {
namespace {

struct Scratch {
  std::string folder = "/tmp/check_run_test.XXXXXX";
  Scratch() { LOCKSTEP_CHECK(mkdtemp(folder.data()) != nullptr); }
  ~Scratch() {
    unlink(file().c_str());
    rmdir(folder.c_str());
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string file() const { return folder + "/job.sh"; }
  std::string write(std::string_view text) const {
    std::ofstream(file()) << text;
    return file();
  }
};

RunTool says(int code, std::string err) {
  return [code, err = std::move(err)](const std::vector<std::string>&) -> Result<proc::ToolOutput> {
    proc::ToolOutput said;
    said.err = err;
    said.exit.code = code;
    return said;
  };
}

TEST(CheckRun, ReadsWhatTestOnlySays) {
  const auto taken = read_test_only(true,
                                    "sbatch: Job 3 to start at 2026-11-22T19:11:45 using 1 "
                                    "processors on nodes n[1-2] in partition gpu\n");
  EXPECT_TRUE(taken.asked && taken.accepted);
  EXPECT_EQ(taken.start, "2026-11-22T19:11:45");
  EXPECT_EQ(taken.nodes, "n[1-2]");
  EXPECT_EQ(
      read_test_only(
          false, "sbatch: error: invalid partition specified: nope\nallocation failure: Invalid\n")
          .why_not,
      "invalid partition specified: nope");
  EXPECT_EQ(
      read_test_only(false, "allocation failure: Requested node configuration is not available\n")
          .why_not,
      "Requested node configuration is not available");
  EXPECT_EQ(read_test_only(false, "").why_not, "");
}

TEST(CheckRun, WhatSlurmRefusesIsAnError) {
  const Scratch scratch;
  const CheckRequest request{.script = scratch.write("#!/bin/bash\n#SBATCH -t 1 --mem=1G\ntrue\n")};
  const auto refused = run_check(request, says(1, "allocation failure: Invalid qos\n"));
  ASSERT_TRUE(refused);
  ASSERT_EQ(refused->findings.size(), 1U);
  EXPECT_EQ(text_of(refused->findings[0]),
            scratch.file() +
                ": error: Slurm would not take this job: Invalid qos; change the named option; "
                "'sinfo' shows the cluster's partitions and nodes [test-only]");
  EXPECT_TRUE(refused->has_errors());

  const auto away = run_check(
      request, says(1, "sbatch: error: Unable to contact slurm controller (connect failure)\n"));
  ASSERT_TRUE(away);
  EXPECT_TRUE(away->findings.empty());
  EXPECT_FALSE(away->test_only.asked);
  EXPECT_NE(away->test_only.why_not, "");
}

TEST(CheckRun, WhatIsSaidWithItsLineIsNotSaidTwice) {
  const Scratch scratch;
  const CheckRequest request{.script = scratch.write("#SBATCH -t 1 --mem=1G\ntrue\n")};
  const auto report =
      run_check(request, says(1, "sbatch: error: This does not look like a batch script.\n"));
  ASSERT_TRUE(report);
  ASSERT_EQ(report->findings.size(), 1U);
  EXPECT_EQ(report->findings[0].lint, "refused");
}

TEST(CheckRun, AFileThatIsNotThereIsBadInput) {
  EXPECT_FALSE(run_check({.script = "/nonexistent/job.sh"}, says(0, "")));
  EXPECT_FALSE(run_check({.script = "/tmp"}, says(0, "")));
  EXPECT_FALSE(run_check({.hostfiles = {"/nonexistent/hosts"}}, says(0, "")));
}

std::string request_of(const std::vector<std::string>& words) {
  CheckRequest request;
  if (const auto read = read_check_words(words, request); !read)
    return "refused: " + read.error().message;
  std::string text = request.script.value_or("-");
  for (const Setting& each : request.settings)
    text += " " + word_of(each);
  text += " |";
  for (const std::string& each : request.launch)
    text += " " + each;
  if (request.text) text += " <" + *request.text + ">";
  return text + (request.lockstep_launches ? " ours" : "");
}

TEST(CheckRun, WordsNameAScriptOrACommand) {
  EXPECT_EQ(request_of({"a.sh"}), "a.sh |");
  EXPECT_EQ(request_of({"a.sh", "-N", "2"}), "a.sh --nodes=2 |");
  EXPECT_EQ(request_of({"sbatch", "-N2", "a.sh", "-N3"}), "a.sh --nodes=2 |");
  EXPECT_EQ(request_of({"submit", "-N2", "--spare=1", "--", "train.py", "-x"}),
            "- --nodes=2 | train.py -x ours");
  EXPECT_EQ(request_of({"lockstep", "submit", "-N2", "torchrun", "t.py"}),
            "- --nodes=2 | torchrun t.py ours");
  EXPECT_EQ(request_of({"submit", "old.slurm"}), "old.slurm | ours");
  EXPECT_EQ(request_of({"srun", "-N2", "hostname"}), "- | srun -N2 hostname");
  EXPECT_EQ(request_of({"deepspeed", "t.py"}), "- | deepspeed t.py");
  EXPECT_EQ(request_of({"sbatch", "--wrap=x", "-n1"}),
            "--wrap --ntasks=1 | <#!/bin/sh\n# This script was created by sbatch --wrap.\n\nx\n>");
  EXPECT_EQ(request_of({"sbatch", "-N2"}), "refused: no script or command is named");
  EXPECT_EQ(request_of({"sbatch", "--nope=2", "a.sh"}), "refused: sbatch has no option --nope");
}

}  // namespace
}  // namespace lockstep::slurm
