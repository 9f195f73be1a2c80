#include "slurm/tools.h"

#include "base/error_testing.h"
#include "base/text.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::slurm {
namespace {

proc::ToolOutput failed(const std::string& words) {
  return {.out = "", .err = words, .exit = {.code = 1}};
}

TEST(SlurmTools, WhatAFailureMeans) {
  EXPECT_EQ(trouble_of({}), Trouble::none);
  for (const char* words :
       {"slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
        "slurm_load_jobs error: Zero Bytes were transmitted or received\n",
        "slurm_load_jobs error: Connection reset by peer\n",
        "scontrol: error: Munge encode failed: Failed to access \"/run/munge/munge.socket.2\": No "
        "such file\n",
        "squeue: error: ClusterName needs to be specified\nsqueue: fatal: Unable to process "
        "configuration file\n",
        "sbatch: fatal: Could not establish a configuration source\n",
        "slurm_load_jobs error: Socket timed out on send/recv operation\n"})
    EXPECT_EQ(trouble_of(failed(words)), Trouble::unreachable) << words;
  EXPECT_EQ(trouble_of(failed("slurm_load_jobs error: Invalid job id specified\n")),
            Trouble::unknown_job);
  EXPECT_EQ(trouble_of({.out = "Job 1_9 not found\n", .err = "", .exit = {.code = 1}}),
            Trouble::unknown_job);
  EXPECT_EQ(trouble_of(failed("scontrol: error: Job 1_9 not found\n")), Trouble::unknown_job);
  EXPECT_EQ(trouble_of(failed("Job 1_9 not found\n")), Trouble::unknown_job);
  EXPECT_EQ(trouble_of(failed("scontrol: command not found\n")), Trouble::refused);
  EXPECT_EQ(trouble_of(failed("Slurm accounting storage is disabled\n")), Trouble::refused);
}

TEST(SlurmTools, AnErrorSaysWhatWasWantedAndWhatSlurmSaid) {
  const Error down = tool_error(
      "job 7", "squeue",
      failed("slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"));
  EXPECT_EQ(down.code, Errc::unavailable);
  EXPECT_EQ(down.message,
            "job 7: Slurm does not answer: Unable to contact slurm controller (connect failure)");
  EXPECT_NE(down.hint, "");
  const Error other =
      tool_error("job 7", "scancel",
                 failed("scancel: error: Kill job error on job id 7: Access/permission denied\n"));
  EXPECT_EQ(other.code, Errc::invalid_input);
  EXPECT_EQ(other.message, "job 7: scancel: Kill job error on job id 7: Access/permission denied");
  EXPECT_EQ(tool_error("job 7", "squeue", failed("")).message,
            "job 7: squeue: it ended with code 1");
  EXPECT_EQ(
      tool_error(
          "x", "squeue",
          failed(
              "squeue: error: s_p_parse_file: cannot stat file\nsqueue: fatal: Unable to process "
              "configuration file\n"))
          .message,
      "x: Slurm does not answer: Unable to process configuration file");
}

TEST(SlurmTools, VariablesThatChangeTheOutputAreLeftOut) {
  const auto kept =
      environment_for_tools({"SQUEUE_FORMAT=%i", "SLURM_CONF=/etc/slurm.conf",
                             "SLURM_TIME_FORMAT=relative", "SACCT_FORMAT=x", "PATH=/bin"});
  EXPECT_EQ(kept, (std::vector<std::string>{"SLURM_CONF=/etc/slurm.conf", "PATH=/bin",
                                            "SLURM_TIME_FORMAT=%s"}));
}

TEST(SlurmTools, VariablesOfALoginHostThatChangeTheOutputAreLeftOut) {
  const auto said = proc::tool_output(
      command_for_tools({"env"}),
      {"SQUEUE_STATES=all", "SINFO_PARTITION=gpu", "SACCT_FORMAT=a b\nSCONTROL_X=y",
       "SCONTROL_FEDERATION=1", "SLURM_TIME_FORMAT=relative", "SLURM_CONF=/etc/slurm.conf",
       "MY_SQUEUE_STATES=kept", "PATH=/usr/bin:/bin"});
  ASSERT_TRUE(said) << said.error().message;
  std::vector<std::string> kept;
  for (const std::string& line : split(said->out, '\n'))
    if (line.find('S') != std::string::npos && !line.starts_with("PWD=")) kept.push_back(line);
  std::sort(kept.begin(), kept.end());
  EXPECT_EQ(kept, (std::vector<std::string>{"MY_SQUEUE_STATES=kept", "SLURM_CONF=/etc/slurm.conf",
                                            "SLURM_TIME_FORMAT=%s"}));
  const std::vector<std::string> path = {"PATH=/usr/bin:/bin"};
  EXPECT_EQ(proc::tool_output(command_for_tools({"sh", "-c", "exit $1", "", "3"}), path)->exit.code,
            3);
  EXPECT_EQ(proc::tool_output(command_for_tools({"lockstep-no-squeue"}), path)->exit.code, 127);
}

TEST(SlurmTools, AProgramThatIsNotThereIsNamedWithWhatWasWanted) {
  const auto asked = ask_tool(run_here, {"lockstep-no-squeue"}, "job 7");
  ASSERT_FALSE(asked);
  EXPECT_EQ(code_of(asked), Errc::not_found);
  EXPECT_TRUE(asked.error().message.starts_with("job 7: ")) << asked.error().message;
}

TEST(SlurmTools, AStepOfAnotherJobKnowsNothingOfTheOwnAllocation) {
  EXPECT_EQ(environment_for_steps({"PATH=/bin", "SLURM_JOB_ID=7", "SLURM_CONF=/etc/slurm.conf",
                                   "SLURMD_NODENAME=n1", "SLURM_NTASKS=4", "HOME=/h"}),
            (std::vector<std::string>{"PATH=/bin", "SLURM_CONF=/etc/slurm.conf", "HOME=/h"}));
}

}  // namespace
}  // namespace lockstep::slurm
