// All that Slurm's sources can say of a waiting job, read from the branches
// slurm-22.05, 23.02, 23.11, 24.05, 24.11, 25.05, 25.11 and 26.05. A reason that is missing in our
// tables fails here.
#include "base/text.h"
#include "slurm/pending_reason.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>

namespace lockstep::slurm {
namespace {

// The names of job_reason_string() (src/common/slurm_protocol_defs.c up to 23.11) and of
// src/common/job_state_reason.c (since 24.05), without those of ended jobs: DeadLine,
// NonZeroExitCode, OutOfMemory, RaisedSignal, TimeLimit.
constexpr const char* kNames =
    "AccountNotAllowed AccountingPolicy AssocGrpBB AssocGrpBBMinutes AssocGrpBBRunMinutes "
    "AssocGrpBilling AssocGrpBillingMinutes AssocGrpBillingRunMinutes AssocGrpCPUMinutesLimit "
    "AssocGrpCPURunMinutesLimit AssocGrpCpuLimit AssocGrpEnergy AssocGrpEnergyMinutes "
    "AssocGrpEnergyRunMinutes AssocGrpGRES AssocGrpGRESMinutes AssocGrpGRESRunMinutes "
    "AssocGrpJobsLimit AssocGrpLicense AssocGrpLicenseMinutes AssocGrpLicenseRunMinutes "
    "AssocGrpMemLimit AssocGrpMemMinutes AssocGrpMemRunMinutes AssocGrpNodeLimit "
    "AssocGrpNodeMinutes AssocGrpNodeRunMinutes AssocGrpSubmitJobsLimit AssocGrpUnknown "
    "AssocGrpUnknownMinutes AssocGrpUnknownRunMinutes AssocGrpWallLimit "
    "AssocMaxBBMinutesPerJob AssocMaxBBPerJob AssocMaxBBPerNode AssocMaxBillingMinutesPerJob "
    "AssocMaxBillingPerJob AssocMaxBillingPerNode AssocMaxCpuMinutesPerJobLimit "
    "AssocMaxCpuPerJobLimit AssocMaxCpuPerNode AssocMaxEnergyMinutesPerJob "
    "AssocMaxEnergyPerJob AssocMaxEnergyPerNode AssocMaxGRESMinutesPerJob AssocMaxGRESPerJob "
    "AssocMaxGRESPerNode AssocMaxJobsLimit AssocMaxLicenseMinutesPerJob AssocMaxLicensePerJob "
    "AssocMaxMemMinutesPerJob AssocMaxMemPerJob AssocMaxMemPerNode AssocMaxNodeMinutesPerJob "
    "AssocMaxNodePerJobLimit AssocMaxSubmitJobLimit AssocMaxUnknownMinutesPerJob "
    "AssocMaxUnknownPerJob AssocMaxUnknownPerNode AssocMaxWallDurationPerJobLimit "
    "AssociationJobLimit AssociationResourceLimit AssociationTimeLimit BadConstraints "
    "BeginTime BlockFreeAction BlockMaxError BurstBufferOperation BurstBufferResources "
    "BurstBufferStageIn Cleaning Constraints Dependency DependencyNeverSatisfied FedJobLock "
    "FrontEndDown InactiveLimit InvalidAccount InvalidQOS JobArrayTaskLimit JobHeldAdmin "
    "JobHeldUser JobHoldMaxRequeue JobLaunchFailure Licenses MaxBBPerAccount "
    "MaxBBRunMinsPerAccount MaxBBRunMinsPerUser MaxBillingPerAccount "
    "MaxBillingRunMinsPerAccount MaxBillingRunMinsPerUser MaxCpuPerAccount "
    "MaxCpuRunMinsPerAccount MaxCpuRunMinsPerUser MaxEnergyPerAccount "
    "MaxEnergyRunMinsPerAccount MaxEnergyRunMinsPerUser MaxGRESPerAccount "
    "MaxGRESRunMinsPerAccount MaxGRESRunMinsPerUser MaxJobsPerAccount MaxLicensePerAccount "
    "MaxLicenseRunMinsPerAccount MaxLicenseRunMinsPerUser MaxMemPerLimit MaxMemoryPerAccount "
    "MaxMemoryRunMinsPerAccount MaxMemoryRunMinsPerUser MaxNodePerAccount "
    "MaxNodeRunMinsPerAccount MaxNodeRunMinsPerUser MaxPoweredUpNodes MaxSubmitJobsPerAccount "
    "MaxUnknownPerAccount MaxUnknownRunMinsPerAccount MaxUnknownRunMinsPerUser MpiPortsBusy "
    "NodeDown None NvidiaImexChannels PartitionConfig PartitionDown PartitionInactive "
    "PartitionNodeLimit PartitionTimeLimit PowerNotAvail PowerReserved Priority Prolog "
    "QOSGrpBB QOSGrpBBMinutes QOSGrpBBRunMinutes QOSGrpBilling QOSGrpBillingMinutes "
    "QOSGrpBillingRunMinutes QOSGrpCPUMinutesLimit QOSGrpCPURunMinutesLimit QOSGrpCpuLimit "
    "QOSGrpEnergy QOSGrpEnergyMinutes QOSGrpEnergyRunMinutes QOSGrpGRES QOSGrpGRESMinutes "
    "QOSGrpGRESRunMinutes QOSGrpJobsLimit QOSGrpLicense QOSGrpLicenseMinutes "
    "QOSGrpLicenseRunMinutes QOSGrpMemLimit QOSGrpMemoryMinutes QOSGrpMemoryRunMinutes "
    "QOSGrpNodeLimit QOSGrpNodeMinutes QOSGrpNodeRunMinutes QOSGrpSubmitJobsLimit "
    "QOSGrpUnknown QOSGrpUnknownMinutes QOSGrpUnknownRunMinutes QOSGrpWallLimit QOSJobLimit "
    "QOSMaxBBPerJob QOSMaxBBPerNode QOSMaxBBPerUser QOSMaxBillingMinutesPerJob "
    "QOSMaxBillingPerJob QOSMaxBillingPerNode QOSMaxBillingPerUser "
    "QOSMaxCpuMinutesPerJobLimit QOSMaxCpuPerJobLimit QOSMaxCpuPerNode QOSMaxCpuPerUserLimit "
    "QOSMaxEnergyMinutesPerJob QOSMaxEnergyPerJob QOSMaxEnergyPerNode QOSMaxEnergyPerUser "
    "QOSMaxGRESMinutesPerJob QOSMaxGRESPerJob QOSMaxGRESPerNode QOSMaxGRESPerUser "
    "QOSMaxJobsPerUserLimit QOSMaxLicenseMinutesPerJob QOSMaxLicensePerJob "
    "QOSMaxLicensePerUser QOSMaxMemoryMinutesPerJob QOSMaxMemoryPerJob QOSMaxMemoryPerNode "
    "QOSMaxMemoryPerUser QOSMaxNodeMinutesPerJob QOSMaxNodePerJobLimit QOSMaxNodePerUserLimit "
    "QOSMaxSubmitJobPerUserLimit QOSMaxUnknownMinutesPerJob QOSMaxUnknownPerJob "
    "QOSMaxUnknownPerNode QOSMaxUnknownPerUser QOSMaxWallDurationPerJobLimit QOSMinBB "
    "QOSMinBilling QOSMinCpuNotSatisfied QOSMinEnergy QOSMinGRES QOSMinLicense QOSMinMemory "
    "QOSMinNode QOSMinUnknown QOSNotAllowed QOSResourceLimit QOSTimeLimit QOSUsageThreshold "
    "ReqNodeNotAvail Reservation ReservationDeleted ReservationInvalid Resources SchedDefer "
    "SystemFailure";

struct Text {
  std::string_view text;  // scontrol prints underscores for its spaces, squeue prints the spaces
  Outlook outlook;
};

// Texts that Slurm prints in place of a name (job_ptr->state_desc).
constexpr std::array kTexts = {
    // node_scheduler.c and job_scheduler.c
    Text{"Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority "
         "partitions",
         Outlook::starts_by_itself},
    Text{"ReqNodeNotAvail, UnavailableNodes:n[2-3]", Outlook::needs_site},
    Text{"ReqNodeNotAvail, May be reserved for other job", Outlook::starts_by_itself},
    Text{"ReqNodeNotAvail, Reserved for maintenance", Outlook::starts_by_itself},
    Text{"uid 1000 not in group permitted to use this partition (gpu). groups allowed: ml",
         Outlook::never},
    // partition_mgr.c
    Text{"Job's account not known, so it can't use this partition (gpu allows a)", Outlook::never},
    Text{"Job's account not permitted to use this partition (gpu allows a not b)", Outlook::never},
    Text{"Job's QOS not known, so it can't use this partition (gpu allows a)", Outlook::never},
    Text{"Job's QOS not permitted to use this partition (gpu denies a including b)",
         Outlook::never},
    // job_mgr.c
    Text{"launch failed requeued held", Outlook::held},
    Text{"launch failure limit exceeded requeued held", Outlook::held},
    Text{"user env retrieval failed requeued held", Outlook::held},
    Text{"job requeued in special exit state", Outlook::held},
    Text{"job requeued in held state", Outlook::held},
    Text{"License request 'matlab:4' is no longer valid, holding job", Outlook::held},
    // reservation.c
    Text{"Reservation maint_1 was deleted", Outlook::held},
    Text{"Reservation maint_1 is invalid", Outlook::held},
    // slurm_errno.c, which node_scheduler.c of 26.05 prints where IS_TOPO_ERROR() says so
    Text{"Required nodes lack available resources", Outlook::unknown},
    Text{"Required nodes do not fit topology", Outlook::unknown},
    Text{"No suitable topology unit found", Outlook::unknown},
    Text{"No suitable topology unit found for segment", Outlook::unknown},
    Text{"Insufficient resources in topology unit", Outlook::unknown},
    Text{"Weight-based selection could not satisfy request within topology unit", Outlook::unknown},
    Text{"Exceeded maximum node limit during topology allocation", Outlook::unknown},
    Text{"No available nodes in topology", Outlook::unknown},
    // plugins/burst_buffer
    Text{"burst_buffer/lua: Stage-out in progress", Outlook::starts_by_itself},
    Text{"burst_buffer/lua: JobHeldAdmin: slurm_bb_data_in failed: x", Outlook::needs_site},
    Text{"burst_buffer/datawarp: Invalid burst buffer spec (x)", Outlook::needs_site},
    Text{"Burst buffer pre_run error", Outlook::needs_site},
    Text{"Burst buffer create_persistent error", Outlook::needs_site},
    Text{"Could not find burst buffer record", Outlook::needs_site},
    Text{"Error managing persistent burst buffers", Outlook::needs_site},
};

Explanation said(std::string_view reason) {
  JobReport job;
  job.id = job.job = "7";
  job.state = parse_job_state("PENDING");
  job.reason = reason;
  job.partition = "gpu";
  return explain_pending(job, {});
}

void expect_in_words(std::string_view reason, const Explanation& told) {
  EXPECT_FALSE(told.why.starts_with("Slurm says")) << reason;
  EXPECT_EQ(told.why.find('{'), std::string::npos) << told.why;
  for (const std::string& advice : told.advice)
    EXPECT_EQ(advice.find('{'), std::string::npos) << advice;
}

TEST(PendingReasonList, EveryNameOfEightReleasesIsInWords) {
  const auto names = split(kNames, ' ');
  EXPECT_EQ(names.size(), 216U);
  for (const std::string& name : names) {
    const Explanation told = said(name);
    expect_in_words(name, told);
    EXPECT_NE(told.outlook, Outlook::unknown) << name;
  }
}

TEST(PendingReasonList, EveryTextOfEightReleasesIsInWordsAndNoHoldLooksHarmless) {
  for (const Text& each : kTexts) {
    std::string underscores(each.text);
    replace_all(underscores, " ", "_");
    for (const std::string& form : {std::string(each.text), underscores}) {
      const Explanation told = said(form);
      expect_in_words(form, told);
      EXPECT_EQ(outlook_word(told.outlook), outlook_word(each.outlook)) << form;
    }
  }
}

TEST(PendingReasonList, AFailedBurstBufferIsNotTakenForOneThatIsBeingFilled) {
  EXPECT_EQ(outlook_word(said("BurstBufferOperation").outlook), "needs-site");
  EXPECT_EQ(outlook_word(said("BurstBufferStageIn").outlook), "starts-by-itself");
  EXPECT_EQ(outlook_word(said("BurstBufferResources").outlook), "starts-by-itself");
}

TEST(PendingReasonList, LimitsOnRunningMinutesAreRead) {
  EXPECT_EQ(said("MaxGRESRunMinsPerUser").why,
            "the QOS allows each user only so many GPUs (or other GRES), times the minutes that "
            "running jobs may still use");
  EXPECT_EQ(said("MaxCpuRunMinsPerAccount").why,
            "the QOS allows each account only so many CPUs, times the minutes that running jobs "
            "may still use");
}

}  // namespace
}  // namespace lockstep::slurm
