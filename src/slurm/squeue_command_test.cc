#include "slurm/squeue_command.h"

#include <gtest/gtest.h>

namespace lockstep::slurm {
namespace {

// As Slurm 22.05 prints it.
constexpr const char* kQueue =
    "2|2|PENDING|root|gpu|1795374458|1795374466|1795375066|10:00|2||4294901758|(null)|(null)|(null)"
    "|n[2-3]|Nodes "
    "required for job are DOWN, DRAINED or reserved for jobs in higher priority "
    "partitions|wai\tt=ing "
    "Reason=None\n"
    "4|4|PENDING|ann|gpu,two|1795374458|N/A|N/"
    "A|UNLIMITED|1||4294901757|normal|lab|afterok:1(unfulfilled)|(null)|"
    "Dependency|wrap\n"
    "6_[1-5%2]|6|PENDING|root|gpu|1795374458|N/A|N/"
    "A|UNLIMITED|1||4294901755|(null)|(null)|(null)|n1|Priority|wrap\n"
    "7+1|7|PENDING|root|gpu|1795374458|N/A|N/"
    "A|UNLIMITED|1||4294901753|(null)|(null)|(null)|(null)|Resources|wrap\n"
    "1|1|RUNNING|root|gpu|1795374458|1795374458|1795374461|30:00|4|n[1-4]|4294901759|(null)|(null)|"
    "(null)|(null)|None|"
    "run|ner x=y\n";

TEST(Squeue, JobsAreRead) {
  const auto jobs = parse_squeue(kQueue);
  ASSERT_EQ(jobs.size(), 5U);
  EXPECT_EQ(jobs[0].name, "wai\tt=ing Reason=None");
  EXPECT_EQ(jobs[0].start, 1795374466);
  EXPECT_EQ(jobs[0].held_nodes, "n[2-3]");
  EXPECT_EQ(jobs[0].time_limit, 600);
  EXPECT_TRUE(jobs[0].reason.starts_with("Nodes required for job are DOWN"));
  EXPECT_EQ(jobs[1].user, "ann");
  EXPECT_EQ(jobs[1].partition, "gpu,two");
  EXPECT_EQ(jobs[1].qos, "normal");
  EXPECT_EQ(jobs[1].account, "lab");
  EXPECT_EQ(jobs[1].dependency, "afterok:1(unfulfilled)");
  EXPECT_EQ(jobs[1].start, std::nullopt);
  EXPECT_EQ(jobs[1].time_limit, std::nullopt);
  EXPECT_EQ(jobs[2].id, "6_[1-5%2]");
  EXPECT_EQ(jobs[2].job, "6");
  EXPECT_EQ(jobs[3].id, "7+1");
  EXPECT_EQ(jobs[3].job, "7");
  EXPECT_EQ(jobs[4].name, "run|ner x=y");
  EXPECT_EQ(jobs[4].nodes, "n[1-4]");
  EXPECT_EQ(jobs[4].node_count, 4);
  EXPECT_EQ(jobs[4].state.phase, JobPhase::running);
  EXPECT_EQ(jobs[4].reason, "");
}

TEST(Squeue, LinesThatMakeNoSenseAreLeftOut) {
  EXPECT_TRUE(parse_squeue("").empty());
  EXPECT_TRUE(parse_squeue("CLUSTER: testbed\n1|2|3\n\n").empty());
  EXPECT_TRUE(parse_squeue("x|x|RUNNING|r|g|1|1|1|1|1|n|1|q|a|e|y|r|name").empty());
}

TEST(Squeue, CommandsAsTheyAre) {
  const std::vector<std::string> ids = {"1", "6_2"};
  const auto argv = squeue_command(ids);
  EXPECT_EQ(argv.front(), "squeue");
  EXPECT_EQ(argv.back(), "--jobs=1,6_2");
  EXPECT_EQ(squeue_scripts_command("1000").back(), "--user=1000");
}

TEST(Squeue, TheNewestJobOfAScript) {
  const char* listed =
      "7|/home/a/x/script\n12|/home/a/x/script\n9|/home/a/x/script\n13|/home/a/x\n";
  EXPECT_EQ(job_of_script(listed, "/home/a/x/script"), "12");
  EXPECT_EQ(job_of_script(listed, "/home/a/y/script"), "");
  listed = "7|/x/script\n8|/x/script 0\n9|/x/script 1000 more\n";
  EXPECT_EQ(job_of_script(listed, "/x/script 0"), "8");
  EXPECT_EQ(job_of_script(listed, "/x/script 1000"), "9");
  EXPECT_EQ(job_of_script(listed, "/x/script 100"), "");
  EXPECT_EQ(job_of_script(listed, "/x/script"), "9") << "with any arguments";
  // A path containing the separator, and a line without a job id.
  EXPECT_EQ(job_of_script("x|/s\n14|/a|b/script \n", "/a|b/script"), "14");
  EXPECT_EQ(job_of_script("x|/s\n", "/s"), "");
  EXPECT_EQ(job_of_script("", ""), "");
}

}  // namespace
}  // namespace lockstep::slurm
