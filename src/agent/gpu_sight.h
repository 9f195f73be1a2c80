// Watches the GPUs of this node's ranks: their use (gpu_reader.h), and their faults by the
// kernel's log. A node without NVIDIA's or AMD's GPUs starts and reads nothing.
#pragma once

#include "agent/dcgm_job_files.h"
#include "agent/gpu_reader.h"
#include "agent/node.h"
#include "agent/worker_spec.h"
#include "host/gpu_use.h"
#include "host/gpus.h"
#include "host/kernel_log.h"
#include "host/xid.h"
#include "io/loop.h"
#include "looks/row.h"
#include "proc/containment.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::agent {

class GpuSight {
 public:
  // What the workers of the current attempt were started with.
  using Workers = std::function<std::vector<const WorkerSpec*>()>;

  // on_fault: called once for each GPU and code of an attempt, with a line about it. reaped: see
  // GpuReader.
  GpuSight(io::Loop& loop, const Node& node, proc::Containment& containment, Workers workers,
           std::function<void()> reaped, std::function<void(const std::string&)> on_fault)
      : loop_(loop),
        node_(node),
        containment_(containment),
        workers_(std::move(workers)),
        reaped_(std::move(reaped)),
        on_fault_(std::move(on_fault)) {}

  // Opens the folder of --dcgm-job-dir, if one is given.
  Status open_job_dir();
  // Notes where the kernel's log ends. Call before workers start: the first fault may come at once.
  void open();
  void attempt_started();

  // ask() and read_faults() find the GPUs at the first call, so that a short job need not wait for
  // that. With --dcgm-job-dir attempt_started() finds the GPUs.

  // Requests figures of the GPUs for the next minute. The first figures take about a second.
  void ask();
  // Reads what the kernel has logged. Call once a second, and when a rank has failed.
  void read_faults();

  // Adds what is known to the rows of ranks.
  void add_to(looks::NodeRows& rows);
  // Returns the index of the GPU of each rank of this node, as far as it is known (rank_gpu.h).
  const std::map<int, int>& gpu_of() const { return gpu_of_; }
  // Returns a line for each rank whose GPU has told something: "rank 3, GPU 3: 100 %, ...". Then
  // the faults of this attempt, and why there are no figures.
  std::vector<std::string> lines() const;
  // Returns the faults of this attempt, a line each.
  const std::vector<std::string>& faults() const { return faults_; }

  // Ends the child, and takes the job out of the folder of --dcgm-job-dir.
  void close();

 private:
  struct Told {
    host::GpuUse use = {};
    io::TimePoint at = {};
  };

  void find();
  void find_gpus();
  void find_ranks();
  void show_job();
  void on_use(host::GpuUse use);
  void on_log_line(std::string_view line);
  const host::GpuUse* use_of(int rank) const;

  io::Loop& loop_;
  const Node& node_;
  proc::Containment& containment_;
  Workers workers_;
  std::function<void()> reaped_;
  std::function<void(const std::string&)> on_fault_;
  std::optional<std::vector<host::Gpu>> gpus_;  // nullopt: not looked for yet
  std::unique_ptr<GpuReader> reader_;           // nullptr: no GPU
  std::optional<host::KernelLog> log_;
  std::map<int, int> gpu_of_;  // by rank; an index in gpus_
  std::vector<bool> seen_;     // by any rank; for each of gpus_
  std::map<int, Told> told_;   // by the GPU's index
  std::vector<host::Xid> xids_;
  std::vector<std::string> faults_;
  std::optional<DcgmJobFiles> job_files_;
};

}  // namespace lockstep::agent
