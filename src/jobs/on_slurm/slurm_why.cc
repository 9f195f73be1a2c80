#include "jobs/on_slurm/slurm_why.h"

#include "codec/json.h"
#include "jobs/on_slurm/slurm_submit.h"
#include "slurm/ask_cluster.h"
#include "slurm/ask_jobs.h"
#include "slurm/own_ending.h"

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace lockstep::jobs::on_slurm {
namespace {

constexpr std::size_t kMostReport = 8UL << 20;
// A job may have thousands of nodes.
constexpr std::size_t kMostEvidence = 16;

// Adds the last hang of an ended job. Each node has noted the hang, and kept evidence of its own.
void add_hang(const slurm::JobFolder& folder, slurm::Explained& job) {
  bool first = true;
  std::size_t nodes = 0;
  for (const std::string& report : folder.last_reports()) {
    const Hang hang = hang_in(codec::parse_json(report, {.bytes = kMostReport}));
    if (hang.words.empty()) continue;
    if (std::exchange(first, false)) job.facts.push_back({"hang", hang.words});
    if (!hang.evidence.empty() && nodes++ < kMostEvidence)
      job.facts.push_back({"hang", hang.evidence});
  }
  if (nodes > kMostEvidence)
    job.facts.push_back({"hang", fmt::format("evidence on {} more nodes", nodes - kMostEvidence)});
}

Result<std::vector<slurm::Explained>> explained(const std::string& number, const KnownJob* known,
                                                const slurm::RunTool& run, std::int64_t now) {
  LOCKSTEP_TRY_ASSIGN(const auto jobs, slurm::ask_jobs({{number}}, slurm::Detail::all, run));
  auto all = slurm::explain_all(jobs, slurm::ask_surroundings(run, now));
  if (known == nullptr) return all;
  const slurm::JobFolder folder(slurm_place(*known)->folder);
  const auto own = slurm::read_own_ending(folder);
  if (!own || slurm::job_now(own->state) != number) return all;
  // Slurm forgets ended jobs. The job's folder still knows how the job ended.
  if (all.empty()) {
    if (auto forgotten = slurm::explain_forgotten(*own, known->name))
      add_hang(folder, all.emplace_back(std::move(*forgotten)));
    return all;
  }
  // Slurm may have given this number to another job since. Compare name and time of submission.
  const slurm::JobAsked ours{
      .id = number, .name = known->name, .user = {}, .since = known->created_ms / 1000};
  for (slurm::Explained& each : all) {
    if (!slurm::is_of(each.job, ours)) continue;
    slurm::add_own_words(*own, each);
    if (slurm::has_ended(*own, each.job)) add_hang(folder, each);
  }
  return all;
}

}  // namespace

Result<Explanation> explain_slurm_job(const std::string& number, const KnownJob* known,
                                      const SlurmWorld& world) {
  const std::int64_t now = world.unix_ms() / 1000;
  LOCKSTEP_TRY_ASSIGN(const auto all, explained(number, known, world.run, now));
  if (all.empty())
    return fail(
        Errc::not_found, fmt::format("Slurm knows no job {}", number),
        "Slurm forgets jobs some minutes after their end, unless the cluster keeps accounts");
  return Explanation{.text = slurm::why_text(all, now), .json = slurm::why_json(all)};
}

}  // namespace lockstep::jobs::on_slurm
