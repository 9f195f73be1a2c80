#include "slurm/sacct_command.h"

#include "base/text.h"
#include "slurm/fields.h"
#include "slurm/times.h"

#include <utility>

namespace lockstep::slurm {
namespace {

// The name is the last field, because it may contain the separator.
constexpr const char* kFormat =
    "JobID,State,ExitCode,User,Partition,Account,QOS,Submit,Eligible,Start,End,Timelimit,NNodes,"
    "NodeList,Reason,JobName";
constexpr std::size_t kFields = 16;

}  // namespace

std::vector<std::string> sacct_command(std::span<const std::string> ids) {
  return {"sacct",
          "--noheader",
          "--parsable2",
          "--allocations",
          "--allusers",
          std::string("--format=") + kFormat,
          "--jobs=" + join(ids, ",")};
}

std::vector<JobReport> parse_sacct(std::string_view text) {
  std::vector<JobReport> jobs;
  for (const std::string& line : split(text, '\n')) {
    const auto fields = split_fields(line, kFields);
    if (fields.size() != kFields) continue;
    JobReport job;
    job.id = strip(fields[0]);
    job.job = whole_job(job.id);
    if (!is_job_id(job.job)) continue;
    job.state = parse_job_state(fields[1]);
    const std::size_t colon = fields[2].find(':');
    // sacct prints 0:0 for jobs that still run.
    if (job.state.ended() && colon != std::string::npos) {
      job.exit_code = small_number(fields[2].substr(0, colon));
      job.signal = small_number(fields[2].substr(colon + 1));
    }
    job.user = fields[3];
    job.partition = fields[4];
    job.account = known_text(fields[5]);
    job.qos = known_text(fields[6]);
    job.submitted = parse_moment(fields[7]);
    job.eligible = parse_moment(fields[8]);
    job.start = parse_moment(fields[9]);
    job.end = parse_moment(fields[10]);
    job.time_limit = parse_duration(fields[11]);
    job.node_count = small_number(fields[12]);
    job.nodes = known_text(fields[13]);
    job.reason = known_text(fields[14]);
    job.name = fields[15];
    jobs.push_back(std::move(job));
  }
  return jobs;
}

}  // namespace lockstep::slurm
