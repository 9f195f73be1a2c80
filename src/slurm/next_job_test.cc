#include "slurm/next_job.h"

#include "slurm/job_folder.h"

#include <gtest/gtest.h>

namespace lockstep::slurm {
namespace {

using Words = std::vector<std::string>;

TEST(NextJob, IsCalledAsTheFirstOneWas) {
  const NextJob job = next_job_of({{.name = "nodes", .value = "2", .has_value = true},
                                   {.name = "time", .value = "5", .has_value = true, .line = 3},
                                   {.name = "hold"},
                                   {.name = "no-kill"}},
                                  {"a b", ""});
  EXPECT_EQ(job.words, (Words{"--nodes=2", "--no-kill"}));
  // A running job's next.json may be of an older or newer version.
  EXPECT_EQ(next_job_text({{"--time=1"}, {"a b"}}),
            "{\"words\":[\"--time=1\"],\"arguments\":[\"a b\"]}\n");
  EXPECT_EQ(next_job_from_text(R"({"arguments":["x"],"later":1})"), (NextJob{{}, {"x"}}));
  EXPECT_EQ(next_job_from_text(next_job_text(job)), job);
  EXPECT_FALSE(next_job_from_text("{"));
  NextFacts facts{.job = "12", .script = "/f/script", .folder = "/w"};
  EXPECT_EQ(next_job_command(job, facts),
            (Words{"sbatch", "--parsable", "--nodes=2", "--no-kill", "--dependency=afterany:12",
                   "--begin=now", "--open-mode=append", "--chdir=/w", "/f/script", "a b", ""}));
  facts.output = "/w/12.out";
  facts.left_out = "n3,n4";
  const Words words = next_job_command(job, facts);
  EXPECT_EQ(Words(words.begin() + 8, words.end()),
            (Words{"--output=/w/12.out", "--exclude=n3,n4", "/f/script", "a b", ""}));
  // sbatch expands patterns, so the option is left out.
  facts.output = "/w/100%.out";
  EXPECT_EQ(next_job_command(job, facts)[8], "--exclude=n3,n4");
}

TEST(NextJob, InheritsNothingOfTheJobBefore) {
  EXPECT_EQ(environment_of_next({"A=1", "SLURM_JOB_ID=7", "SLURM_CONF=/c", "SLURMD_NODENAME=n",
                                 "SBATCH_PARTITION=p", "LOCKSTEP_SLURM_FOLDER=/f",
                                 "LOCKSTEP_JOB_ID=x", "LOCKSTEP_PREFLIGHT=off"}),
            (Words{"A=1", "SLURM_CONF=/c", "SBATCH_PARTITION=p", "LOCKSTEP_PREFLIGHT=off"}));
}

TEST(NextJob, TheNumberIsWhatSbatchPrints) {
  EXPECT_EQ(submitted_job("13\n"), "13");
  EXPECT_EQ(submitted_job("a site says hello\n13;hpc\n"), "13");
  EXPECT_EQ(submitted_job("no job 13\n"), "");
  EXPECT_EQ(submitted_job(""), "");
}

TEST(NextJob, TheStateSaysWhichJobItIsNow) {
  BatchState state;
  state.job = "12";
  state.chain = 0;
  state.jobs = {"11", "12"};
  const auto read = [&] { return *state_from_text(state_text(state)); };
  EXPECT_EQ(job_now(read()), "12");
  EXPECT_EQ(read().chain, 0);
  EXPECT_EQ(read().jobs, state.jobs);
  state.next = "13";
  state.chain.reset();
  EXPECT_EQ(job_now(read()), "13");
  EXPECT_FALSE(read().chain);
}

}  // namespace
}  // namespace lockstep::slurm
