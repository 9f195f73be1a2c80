#include "agent/gpu_sight.h"

#include "agent/rank_gpu.h"
#include "base/log.h"
#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace lockstep::agent {
namespace {

// Figures of a child that hangs say nothing about the present.
constexpr std::chrono::seconds kStale{15};
// A GPU in trouble may report a thousand faults of ten kinds.
constexpr std::size_t kMostFaults = 20;

// Returns the id by which the site knows the job, else that of Lockstep. Rows of a sweep may share
// a GPU, so each has a name of its own.
std::string job_name(const Node& node) {
  const auto value = [&](const char* name) {
    const auto at = node.environment.find(name);
    return at == node.environment.end() ? std::string() : at->second;
  };
  // Slurm has a number for each task of an array.
  std::string id = value("SLURM_JOB_ID");
  if (!id.empty() && !value("SLURM_ARRAY_TASK_ID").empty()) return id;
  if (id.empty()) id = value("LOCKSTEP_JOB_ID");
  if (id.empty()) id = node.config.run_id;
  const std::string row = value("LOCKSTEP_SWEEP_ROW");
  return row.empty() ? id : fmt::format("{}[{}]", id, row);
}

}  // namespace

Status GpuSight::open_job_dir() {
  const auto& folder = node_.config.dcgm_job_dir;
  if (!folder) return {};
  LOCKSTEP_TRY_ASSIGN(job_files_, DcgmJobFiles::open(*folder, printable(job_name(node_), 200)));
  return {};
}

void GpuSight::close() {
  reader_.reset();
  if (job_files_) job_files_->show({});
}

void GpuSight::open() {
  if (!gpus_) log_.emplace();
}

void GpuSight::attempt_started() {
  faults_.clear();
  xids_.clear();
  // The folder of --dcgm-job-dir must be right from the beginning.
  if (!gpus_ && !job_files_) return;
  if (gpus_) find_ranks();
  // Faults since the workers started, which need to know whose GPUs are meant.
  read_faults();
}

// Before open(), there is no rank whose GPU to find.
void GpuSight::find() {
  if (gpus_ || !log_) return;
  find_gpus();
  find_ranks();
}

// Asks only the driver's files: nvidia-smi may hang.
void GpuSight::find_gpus() {
  gpus_ = host::nvidia_gpus("", {}, false);
  if (gpus_->empty()) gpus_ = host::amd_gpus("");
  if (gpus_->empty() || gpus_->front().vendor != host::GpuVendor::nvidia) log_.reset();
  if (gpus_->empty()) return;
  const host::GpuVendor vendor = gpus_->front().vendor;
  reader_ = std::make_unique<GpuReader>(loop_, node_.environment, vendor, containment_, reaped_,
                                        [this](host::GpuUse use) { on_use(std::move(use)); });
}

void GpuSight::find_ranks() {
  gpu_of_.clear();
  seen_.assign(gpus_->size(), false);
  for (const WorkerSpec* worker : workers_()) {
    if (const auto gpu = gpu_of_rank(worker->env, *gpus_)) gpu_of_[worker->rank] = gpu->index;
    for (const host::Gpu& gpu : gpus_seen_by(worker->env, *gpus_))
      seen_[static_cast<std::size_t>(gpu.index)] = true;
  }
  show_job();
}

void GpuSight::show_job() {
  if (!job_files_) return;
  std::set<int> used;
  for (const auto& [rank, gpu] : gpu_of_)
    used.insert(gpu);
  job_files_->show(used);
}

void GpuSight::on_use(host::GpuUse use) {
  // nvidia-smi may count GPUs that this process may not open.
  const auto same = std::find_if(gpus_->begin(), gpus_->end(), [&](const host::Gpu& gpu) {
    return gpu.uuid.empty() || use.uuid.empty() ? gpu.index == use.index : gpu.uuid == use.uuid;
  });
  if (same == gpus_->end()) return;
  if (same->uuid.empty() && !use.uuid.empty()) {
    same->uuid = use.uuid;
    find_ranks();
  }
  use.index = same->index;
  told_[same->index] = {std::move(use), io::Clock::now()};
}

const host::GpuUse* GpuSight::use_of(int rank) const {
  const auto gpu = gpu_of_.find(rank);
  if (gpu == gpu_of_.end()) return nullptr;
  const auto told = told_.find(gpu->second);
  const bool is_known = told != told_.end() && io::Clock::now() - told->second.at < kStale;
  return is_known ? &told->second.use : nullptr;
}

void GpuSight::ask() {
  find();
  if (reader_) reader_->ask();
}

void GpuSight::add_to(looks::NodeRows& rows) {
  if (!reader_) return;
  rows.gpus_pending = reader_->is_pending();
  for (looks::RankRow& row : rows.rows) {
    if (const auto gpu = gpu_of_.find(row.rank); gpu != gpu_of_.end()) row.gpu = gpu->second;
    const host::GpuUse* use = use_of(row.rank);
    if (use == nullptr) continue;
    row.gpu_share = use->share;
    row.gpu_memory_bytes = use->memory;
    row.gpu_memory_total_bytes = use->memory_total;
    row.gpu_watts = use->watts;
  }
}

std::vector<std::string> GpuSight::lines() const {
  std::vector<std::string> lines;
  for (const auto& [rank, gpu] : gpu_of_)
    if (const host::GpuUse* use = use_of(rank))
      lines.push_back(fmt::format("rank {}, {}", rank, host::gpu_use_words(*use)));
  lines.insert(lines.end(), faults_.begin(), faults_.end());
  if (reader_ && !reader_->failure().empty()) lines.push_back("GPUs: " + reader_->failure());
  return lines;
}

void GpuSight::read_faults() {
  find();
  if (log_) log_->read([this](std::string_view line) { on_log_line(line); });
}

void GpuSight::on_log_line(std::string_view line) {
  const auto xid = host::parse_xid(line);
  if (!xid || faults_.size() == kMostFaults) return;
  const auto gpu = std::find_if(gpus_->begin(), gpus_->end(), [&](const host::Gpu& each) {
    return !each.pci.empty() && each.pci.starts_with(xid->pci);
  });
  // Skip a GPU of another job on this machine. If the driver's files name no bus, nothing tells
  // whose GPU it is: report the fault.
  if (gpu != gpus_->end() && !seen_[static_cast<std::size_t>(gpu->index)]) return;
  const bool names_known =
      std::all_of(gpus_->begin(), gpus_->end(), [](const auto& each) { return !each.pci.empty(); });
  if (gpu == gpus_->end() && names_known) return;
  if (std::any_of(xids_.begin(), xids_.end(), [&](const host::Xid& known) {
        return known.code == xid->code && known.pci == xid->pci;
      }))
    return;
  xids_.push_back(*xid);
  faults_.push_back(
      host::xid_words(*xid, gpu == gpus_->end() ? std::nullopt : std::optional(gpu->index)));
  on_fault_(faults_.back());
}

}  // namespace lockstep::agent
