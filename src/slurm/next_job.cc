#include "slurm/next_job.h"

#include "base/text.h"
#include "codec/json_fields.h"
#include "slurm/job_report.h"

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::slurm {

NextJob next_job_of(const std::vector<Setting>& settings, std::vector<std::string> arguments) {
  NextJob job{.words = {}, .arguments = std::move(arguments)};
  // Drop --hold: the user released the first job, and would have to release each next job, too.
  for (const Setting& setting : settings)
    // Settings with a line are in the script, which sbatch reads again.
    if (setting.line == 0 && setting.name != "hold") job.words.push_back(word_of(setting));
  return job;
}

static void fields(codec::JsonFields& io, NextJob& job) {
  io("words", job.words);
  io("arguments", job.arguments);
}

std::string next_job_text(const NextJob& job) {
  return codec::print_json(codec::write_fields(job)) + "\n";
}

Result<NextJob> next_job_from_text(std::string_view text) {
  NextJob job;
  // Arguments may be many.
  if (!codec::read_fields(codec::parse_json(text, {.bytes = 8U << 20}), job, codec::kTolerantJson))
    return fail(Errc::corrupt, "the job's next.json is damaged");
  return job;
}

std::vector<std::string> next_job_command(const NextJob& job, const NextFacts& facts) {
  std::vector<std::string> argv = {"sbatch", "--parsable"};
  argv.insert(argv.end(), job.words.begin(), job.words.end());
  // sbatch takes the last of two equal options, so these override the user's.
  argv.insert(argv.end(), {"--dependency=afterany:" + facts.job, "--begin=now",
                           "--open-mode=append", "--chdir=" + facts.folder});
  // sbatch expands '%' and '\' in file names, so such a name cannot be passed unchanged.
  if (!facts.output.empty() && facts.output.find_first_of("%\\") == std::string::npos)
    argv.push_back("--output=" + facts.output);
  if (!facts.left_out.empty()) argv.push_back("--exclude=" + facts.left_out);
  argv.push_back(facts.script);
  argv.insert(argv.end(), job.arguments.begin(), job.arguments.end());
  return argv;
}

std::vector<std::string> environment_of_next(const std::vector<std::string>& own) {
  // sbatch and the new job would read some of these variables as their own.
  constexpr std::array<std::string_view, 4> kOfTheJob = {"SLURM_", "SLURMD_",
                                                         "LOCKSTEP_JOB_ID=", "LOCKSTEP_SLURM_"};
  std::vector<std::string> kept;
  for (const std::string& entry : own) {
    const auto begins = [&](std::string_view start) { return entry.starts_with(start); };
    // SLURM_CONF is the site's, not the job's.
    if (begins("SLURM_CONF=") || std::none_of(kOfTheJob.begin(), kOfTheJob.end(), begins))
      kept.push_back(entry);
  }
  return kept;
}

std::string submitted_job(std::string_view printed) {
  std::string job;
  for (const std::string& line : split(printed, '\n')) {
    const std::string id = split(strip(line), ';').front();
    if (!id.empty() && id.find_first_not_of("0123456789") == std::string::npos) job = id;
  }
  return job;
}

}  // namespace lockstep::slurm
