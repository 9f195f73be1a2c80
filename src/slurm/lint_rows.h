// The lint functions of the table in lints.cc, by file.
#pragma once

#include "slurm/lints.h"

#include <string>

namespace lockstep::slurm {

// Returns whether a word has a value without expansions, which only the shell could replace.
bool is_known(const std::string& text);

// lints_script.cc: settings and the shell
void look_refused(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_ignored_directive(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_requeue_truncates(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_output_folder(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_time_limit(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_signal_lead(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_trap_wait(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_pipe_status(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_conda_activate(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_export_none(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_memory_default(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_placeholder(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_unset_variable(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_overwrite_output(const JobScript& script, const CheckFacts& facts, Findings& found);

// lints_launch.cc: how the ranks are started
void look_rank_too_early(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_tasks_and_launcher(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_gpu_count(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_gpus_per_task(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_srun_cpus(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_torn_logs(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_kill_on_bad_exit(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_node_rank(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_script_missing(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_unwatched(const JobScript& script, const CheckFacts& facts, Findings& found);

// lints_network.cc: ports and interfaces
void look_fixed_port(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_ephemeral_port(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_interface_name(const JobScript& script, const CheckFacts& facts, Findings& found);

// lints_accelerate.cc
void look_machine_rank(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_process_count(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_accelerate_config(const JobScript& script, const CheckFacts& facts, Findings& found);

// lints_build.cc: extensions and compilers
void look_build_assignments(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_utils_for_nvme(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_compiler(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_arch_list(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_cuda13_arch_list(const JobScript& script, const CheckFacts& facts, Findings& found);

// lints_deepspeed.cc: DeepSpeed's files and arguments
void check_hostfile(const std::string& path, std::string_view text, Findings& found);
struct DsArguments;
void check_ds_text(const std::string& path, std::string_view text, const DsArguments& arguments,
                   Findings& found);
void look_deepspeed_env(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_hostfile_missing(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_hostfile_grammar(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_include_host(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_ds_auto(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_ds_batch(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_zero_world_size(const JobScript& script, const CheckFacts& facts, Findings& found);
void look_offline_model(const JobScript& script, const CheckFacts& facts, Findings& found);

}  // namespace lockstep::slurm
