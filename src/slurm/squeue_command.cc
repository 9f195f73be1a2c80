#include "slurm/squeue_command.h"

#include "base/text.h"
#include "slurm/fields.h"
#include "slurm/times.h"

#include <utility>

namespace lockstep::slurm {
namespace {

// All releases since 2012 agree on these letters. The name is the last field, because it may
// contain the separator.
constexpr const char* kFormat = "%i|%F|%T|%u|%P|%V|%S|%e|%l|%D|%N|%Q|%q|%a|%E|%Y|%r|%j";
constexpr std::size_t kFields = 18;

std::vector<std::string> command_with(std::string selection) {
  return {"squeue",
          "--noheader",
          "--all",
          "--states=all",
          std::string("--format=") + kFormat,
          std::move(selection)};
}

}  // namespace

std::vector<std::string> squeue_command(std::span<const std::string> ids) {
  return command_with("--jobs=" + join(ids, ","));
}

std::vector<std::string> squeue_scripts_command(const std::string& user) {
  return {"squeue", "--noheader", "--all", "--states=all", "--format=%F|%o", "--user=" + user};
}

std::string job_of_script(std::string_view text, std::string_view command) {
  std::string newest;
  for (const std::string& line : split(text, '\n')) {
    const auto fields = split_fields(line, 2);
    if (fields.size() != 2 || !is_job_id(fields[0])) continue;
    // Slurm lists the script with its arguments.
    const std::string listed = std::string(strip(fields[1])) + " ";
    if (!listed.starts_with(std::string(command) + " ")) continue;
    if (parse_int(fields[0]).value_or(0) > parse_int(newest).value_or(-1)) newest = fields[0];
  }
  return newest;
}

std::vector<JobReport> parse_squeue(std::string_view text) {
  std::vector<JobReport> jobs;
  for (const std::string& line : split(text, '\n')) {
    const auto fields = split_fields(line, kFields);
    if (fields.size() != kFields) continue;
    JobReport job;
    job.id = strip(fields[0]);
    job.job = fields[1];
    if (!is_job_id(job.job)) continue;
    job.state = parse_job_state(fields[2]);
    job.user = fields[3];
    job.partition = fields[4];
    job.submitted = parse_moment(fields[5]);
    job.start = parse_moment(fields[6]);
    job.end = parse_moment(fields[7]);
    job.time_limit = parse_duration(fields[8]);
    job.node_count = small_number(fields[9]);
    job.nodes = known_text(fields[10]);
    job.priority = parse_int(fields[11]);
    job.qos = known_text(fields[12]);
    job.account = known_text(fields[13]);
    job.dependency = known_text(fields[14]);
    job.held_nodes = known_text(fields[15]);
    job.reason = known_text(fields[16]);
    job.name = fields[17];
    jobs.push_back(std::move(job));
  }
  return jobs;
}

}  // namespace lockstep::slurm
