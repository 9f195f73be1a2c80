#include "slurm/lints.h"

#include "slurm/lint_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::slurm {
namespace {

constexpr Severity kError = Severity::error;
constexpr Severity kWarning = Severity::warning;
constexpr DecidedAt kHere = DecidedAt::script;
constexpr DecidedAt kPartly = DecidedAt::partly;
constexpr DecidedAt kNodes = DecidedAt::allocation;

constexpr Concerns kAll = Concerns::every_job;
constexpr Concerns kScript = Concerns::own_script;
constexpr Concerns kLaunch = Concerns::own_launch;

constexpr Lint kLints[] = {
    {0, "refused", "sbatch would refuse the script, or does not know an option", kError, kHere,
     kAll, look_refused},
    {1, "build-variables",
     "variables on a line of their own in front of a build: it never sees them", kError, kHere,
     kAll, look_build_assignments},
    {2, "rank-too-early", "$SLURM_PROCID and the like expanded before srun starts the tasks",
     kError, kHere, kScript, look_rank_too_early},
    {3, "ignored-directive", "#SBATCH behind the first command, or written as a comment", kError,
     kHere, kAll, look_ignored_directive},
    {4, "tasks-and-launcher", "several tasks on a node, each of which starts all ranks", kError,
     kHere, kLaunch, look_tasks_and_launcher},
    {5, "gpu-count", "ranks per node and GPUs per node differ", kError, kHere, kAll,
     look_gpu_count},
    {6, "fixed-port", "a fixed port on nodes that other jobs share", kWarning, kHere, kLaunch,
     look_fixed_port},
    {7, "ephemeral-port", "a port that the kernel gives to any program", kWarning, kHere, kLaunch,
     look_ephemeral_port},
    {8, "gpus-per-task", "each task sees one GPU only, as number 0", kWarning, kHere, kLaunch,
     look_gpus_per_task},
    {9, "srun-cpus", "srun of 22.05 to 23.02 does not inherit --cpus-per-task", kWarning, kHere,
     kLaunch, look_srun_cpus},
    {10, "torn-logs", "srun --unbuffered: lines of several tasks are torn", kWarning, kHere,
     kLaunch, look_torn_logs},
    {11, "requeue-truncates", "a requeued job empties its log", kWarning, kHere, kAll,
     look_requeue_truncates},
    {12, "output-folder", "the folder of --output is not there, or only on one node", kError, kHere,
     kAll, look_output_folder},
    {13, "time-limit", "no time limit", kWarning, kHere, kAll, look_time_limit},
    {14, "signal-lead", "the signal before the time limit comes too late", kWarning, kHere, kAll,
     look_signal_lead},
    {15, "trap-wait", "a trap that does not run while srun does", kWarning, kHere, kScript,
     look_trap_wait},
    {16, "pipe-status", "the exit code of a pipe is tee's, not srun's", kWarning, kHere, kScript,
     look_pipe_status},
    {17, "kill-on-bad-exit", "a dead rank leaves the others waiting", kWarning, kHere, kLaunch,
     look_kill_on_bad_exit},
    {18, "node-rank", "torchrun's node rank or rendezvous does not fit", kError, kHere, kScript,
     look_node_rank},
    {19, "machine-rank", "accelerate launch on several nodes without its rank", kError, kHere,
     kLaunch, look_machine_rank},
    {20, "process-count", "accelerate's processes do not divide by its machines", kError, kHere,
     kAll, look_process_count},
    {21, "accelerate-config", "leftovers in accelerate's YAML", kWarning, kHere, kLaunch,
     look_accelerate_config},
    {22, "deepspeed-env", "a stale or broken .deepspeed_env", kWarning, kHere, kAll,
     look_deepspeed_env},
    {23, "hostfile-missing", "the hostfile is not there: DeepSpeed trains on one node", kError,
     kHere, kAll, look_hostfile_missing},
    {24, "hostfile-grammar", "ranges, commas, no slots in a hostfile", kError, kHere, kAll,
     look_hostfile_grammar},
    {25, "include-host", "a whole host in --include, which DeepSpeed drops", kError, kHere, kLaunch,
     look_include_host},
    {26, "utils-for-nvme", "DS_BUILD_UTILS taken for NVMe offload", kWarning, kHere, kAll,
     look_utils_for_nvme},
    {27, "compiler", "a gcc that CUDA or PyTorch does not take", kError, kHere, kAll,
     look_compiler},
    {28, "arch-list", "TORCH_CUDA_ARCH_LIST without the job's GPU", kError, kHere, kAll,
     look_arch_list},
    {29, "cuda13-arch-list", "CUDA 13 without TORCH_CUDA_ARCH_LIST", kError, kHere, kAll,
     look_cuda13_arch_list},
    {30, "wheel-isa", "a wheel built on a host with more CPU instructions than a node", kError,
     kNodes, kAll, nullptr},
    {31, "ds-auto", "\"auto\" in ds_config without Hugging Face's Trainer", kError, kHere, kAll,
     look_ds_auto},
    {32, "ds-batch", "batch sizes of ds_config that do not fit the ranks or the arguments", kError,
     kHere, kAll, look_ds_batch},
    {33, "zero-world-size", "a ZeRO checkpoint of another number of ranks", kError, kHere, kAll,
     look_zero_world_size},
    {34, "offline-model", "a model that is not in the cache while offline", kWarning, kPartly, kAll,
     look_offline_model},
    {35, "conda-activate", "conda activate in a shell that does not know it", kWarning, kHere, kAll,
     look_conda_activate},
    {36, "export-none", "--export without ALL: the tasks have no PATH", kWarning, kHere, kAll,
     look_export_none},
    {37, "memory-default", "no --mem: the site's default", kWarning, kHere, kAll,
     look_memory_default},
    {38, "interface-name", "a network interface that is not on every node", kWarning, kPartly, kAll,
     look_interface_name},
    {39, "unset-variable", "set -u and a SLURM_ variable that may be unset", kError, kHere, kAll,
     look_unset_variable},
    {40, "overwrite-output", "--overwrite_output_dir in a job that is requeued", kError, kHere,
     kAll, look_overwrite_output},
    {41, "script-missing", "the training script or its ds_config is not there", kError, kHere, kAll,
     look_script_missing},
    {42, "placeholder", "<...> of an example, which the shell takes for redirections", kError,
     kHere, kAll, look_placeholder},
    {43, "unwatched", "python -m or mpirun in the script itself, which Lockstep does not see",
     kWarning, kHere, kScript, look_unwatched},
};

}  // namespace

bool is_known(const std::string& text) {
  return !text.empty() && text.find(kExpandedHere) == std::string::npos &&
         text.find('$') == std::string::npos;
}

std::span<const Lint> lints() {
  return kLints;
}

void Findings::add(int line, std::string what, std::string why, std::string fix) {
  add(lint_->severity, line, std::move(what), std::move(why), std::move(fix));
}

void Findings::add(Severity severity, int line, std::string what, std::string why,
                   std::string fix) {
  all_.push_back({severity, std::string(lint_->name), script_.name, line, std::move(what),
                  std::move(why), std::move(fix)});
}

void Findings::add_in(std::string file, int line, std::string what, std::string why,
                      std::string fix) {
  all_.push_back({lint_->severity, std::string(lint_->name), std::move(file), line, std::move(what),
                  std::move(why), std::move(fix)});
}

std::string text_of(const Finding& finding) {
  std::string text = finding.file;
  if (finding.line > 0) text += fmt::format(":{}", finding.line);
  text += fmt::format(": {}: {}", finding.severity == Severity::error ? "error" : "warning",
                      finding.what);
  if (!finding.why.empty()) text += ": " + finding.why;
  if (!finding.fix.empty()) text += "; " + finding.fix;
  return text + fmt::format(" [{}]", finding.lint);
}

std::vector<Finding> check_job(const JobScript& script, const CheckFacts& facts,
                               const CheckOptions& options) {
  std::vector<Finding> all;
  Findings found(script, all);
  for (const Lint& each : kLints) {
    // Lockstep starts the ranks itself, so mistakes in launching cannot happen.
    const bool cannot_be =
        options.lockstep_launches &&
        (each.concerns == kLaunch || (each.concerns == kScript && !options.is_script));
    if (each.look == nullptr || cannot_be) continue;
    found.begin(each);
    each.look(script, facts, found);
  }
  // Findings of a line stay in the order of the table. Other files come last.
  std::stable_sort(all.begin(), all.end(), [&script](const Finding& a, const Finding& b) {
    return std::pair(a.file != script.name, a.line) < std::pair(b.file != script.name, b.line);
  });
  return all;
}

}  // namespace lockstep::slurm
