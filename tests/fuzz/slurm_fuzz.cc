// What Slurm's programs print: a job's name is any user's to choose, and a login host may say
// anything.
#include "base/error.h"
#include "slurm/ask_cluster.h"
#include "slurm/bad_nodes.h"
#include "slurm/cluster_text.h"
#include "slurm/sacct_command.h"
#include "slurm/scontrol_command.h"
#include "slurm/squeue_command.h"
#include "slurm/times.h"
#include "slurm/why_text.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  slurm::ClusterFacts facts;
  std::vector<slurm::JobReport> jobs;
  switch (data[0] % 8) {
    case 0:
      jobs = slurm::parse_squeue(text);
      break;
    case 1:
      jobs = slurm::parse_scontrol_jobs(text);
      break;
    case 2:
      jobs = slurm::parse_sacct(text);
      break;
    case 3:
      facts.groups = slurm::parse_sinfo(text);
      break;
    case 4:
      facts.out = slurm::parse_sinfo_reasons(text);
      break;
    case 5:
      facts.partitions = slurm::parse_partitions(text);
      break;
    case 6:
      facts.config = slurm::parse_config(text);
      break;
    default: {
      const auto failures = slurm::parse_failures(text);
      for (const slurm::BadNode& bad : slurm::bad_nodes(failures, "c", 1'000'000))
        LOCKSTEP_CHECK(bad.weight > slurm::kThreshold);
      // What is written is read back.
      for (const slurm::NodeFailure& each : failures)
        LOCKSTEP_CHECK(slurm::parse_failures(slurm::failure_line(each)).size() == 1 ||
                       each.weight < 0.001);
      return 0;
    }
  }
  for (const slurm::JobReport& job : jobs)
    LOCKSTEP_CHECK(slurm::is_job_id(job.job));
  const slurm::Surroundings around{facts.partitions, facts.out, 1'000'000};
  const auto explained = slurm::explain_all(jobs, around);
  for (const char c : slurm::why_text(explained, around.now))
    LOCKSTEP_CHECK(c == '\n' || static_cast<unsigned char>(c) >= ' ');  // no escape of a terminal
  codec::print_json(slurm::why_json(explained));
  for (const char c : slurm::cluster_text(facts))
    LOCKSTEP_CHECK(c == '\n' || static_cast<unsigned char>(c) >= ' ');
  codec::print_json(slurm::cluster_json(facts));
  return 0;
}
