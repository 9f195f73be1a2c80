#include "slurm/job_state.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace lockstep::slurm {
namespace {

TEST(SlurmState, EveryStateOfSlurmHasAPhase) {
  const std::map<std::string, JobPhase> all = {
      {"PENDING", JobPhase::waiting},      {"CONFIGURING", JobPhase::running},
      {"RUNNING", JobPhase::running},      {"COMPLETING", JobPhase::ending},
      {"SIGNALING", JobPhase::running},    {"STAGE_OUT", JobPhase::ending},
      {"SUSPENDED", JobPhase::running},    {"STOPPED", JobPhase::running},
      {"RESIZING", JobPhase::running},     {"REQUEUED", JobPhase::waiting},
      {"REQUEUE_FED", JobPhase::waiting},  {"REQUEUE_HOLD", JobPhase::waiting},
      {"EXPEDITING", JobPhase::waiting},   {"RESV_DEL_HOLD", JobPhase::waiting},
      {"SPECIAL_EXIT", JobPhase::waiting}, {"REVOKED", JobPhase::ended},
      {"COMPLETED", JobPhase::ended},      {"FAILED", JobPhase::ended},
      {"CANCELLED", JobPhase::ended},      {"TIMEOUT", JobPhase::ended},
      {"NODE_FAIL", JobPhase::ended},      {"PREEMPTED", JobPhase::ended},
      {"OUT_OF_MEMORY", JobPhase::ended},  {"DEADLINE", JobPhase::ended},
      {"BOOT_FAIL", JobPhase::ended},
  };
  for (const auto& [name, phase] : all) {
    const SlurmState state = parse_job_state(name);
    EXPECT_EQ(state.name, name);
    EXPECT_EQ(state.phase, phase) << name;
  }
  EXPECT_EQ(parse_job_state("OOM").name, "OUT_OF_MEMORY");
  EXPECT_EQ(parse_job_state("PD").name, "PENDING");
}

TEST(SlurmState, AFlagCountsForMoreThanTheStateBesideIt) {
  EXPECT_EQ(parse_job_state("RUNNING+SIGNALING").phase, JobPhase::running);
  EXPECT_EQ(parse_job_state("FAILED,COMPLETING").name, "COMPLETING");
  EXPECT_EQ(parse_job_state("CANCELLED+COMPLETING").phase, JobPhase::ending);
  EXPECT_EQ(parse_job_state("PENDING,REQUEUED").phase, JobPhase::waiting);
}

TEST(SlurmState, CutNamesAndMarksAreUnderstood) {
  EXPECT_EQ(parse_job_state("COMPLETI+").name, "COMPLETING");
  EXPECT_EQ(parse_job_state("OUT_OF_ME+").name, "OUT_OF_MEMORY");
  EXPECT_EQ(parse_job_state("CANCELLED+").name, "CANCELLED");
  EXPECT_EQ(parse_job_state(" running*").name, "RUNNING");
}

TEST(SlurmState, WhoCancelledIsTold) {
  const SlurmState state = parse_job_state("CANCELLED by 1000");
  EXPECT_EQ(state.name, "CANCELLED");
  EXPECT_EQ(state.cancelled_by, "1000");
  EXPECT_TRUE(state.ended());
}

TEST(SlurmState, AStateOfALaterReleaseIsKeptAndIsNoEnd) {
  const SlurmState state = parse_job_state("EVAPORATING");
  EXPECT_EQ(state.name, "EVAPORATING");
  EXPECT_EQ(state.phase, JobPhase::unknown);
  EXPECT_FALSE(state.ended());
  EXPECT_EQ(parse_job_state("RUNNING+EVAPORATING").phase, JobPhase::running);
  EXPECT_EQ(parse_job_state("").phase, JobPhase::unknown);
}

}  // namespace
}  // namespace lockstep::slurm
