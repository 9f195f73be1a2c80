// The options of `lockstep run` or `lockstep launch` before any rule: text as given, with the
// defaults of torchrun 2.14. A member is optional if a rule needs to know whether the user gave the
// option.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::launch {

struct RawOptions {
  std::optional<std::string> nnodes;   // 1:1
  std::optional<std::int64_t> spares;  // 0
  std::string nproc_per_node = "1";
  std::string role = "default";
  std::optional<std::int64_t> node_rank;   // 0
  std::optional<std::string> master_addr;  // 127.0.0.1
  std::optional<std::int64_t> master_port;
  std::optional<std::string> local_addr;

  std::optional<std::string> rdzv_backend;  // docs/command-line.md has the table
  std::string rdzv_endpoint;
  std::optional<std::string> rdzv_id;  // none
  std::string rdzv_conf;
  bool standalone = false;
  std::optional<std::string> rank_order;
  std::optional<std::int64_t> exit_barrier_timeout;
  std::optional<std::string> rdzv_token_file;
  std::optional<std::string> rdzv_token;  // from the environment, never from argv

  std::string script;
  std::vector<std::string> script_args;
  bool module = false;
  bool no_python = false;
  bool run_path = false;
  std::string framework = "torch";

  std::int64_t max_restarts = 0;
  double restart_backoff = 30;
  bool no_replacement = false;
  double monitor_interval = 0.1;
  std::optional<std::string> signals_to_handle;
  std::optional<std::int64_t> shutdown_timeout;
  std::string event_log_handler = "null";
  std::string isolation = "auto";
  std::string exit_code = "torchrun";
  std::optional<std::string> report;
  std::string report_tails = "first";
  std::string hang_after = "auto";
  std::string on_hang = "report";
  std::optional<std::string> progress;
  std::optional<std::string> dcgm_job_dir;
  std::optional<std::string> events;
  std::optional<std::string> notify;  // the option, else LOCKSTEP_NOTIFY
  std::optional<std::string> notify_exec;
  bool profile = false;
  bool aid = false;
  std::optional<std::string> status_page;
  std::optional<std::string> metrics;
  std::optional<std::string> page_token;  // from the environment, never from argv

  std::optional<std::string> container;
  std::optional<std::string> container_mounts;
  std::optional<std::string> container_workdir;
  std::optional<std::string> container_env;
  std::string container_runtime;      // set inside the container: "podman"
  std::string container_runtime_why;  // why this runtime, for --explain

  bool virtual_local_rank = false;
  std::optional<std::string> slots;  // "0,2", "gpu"
  std::optional<std::string> numa_binding;

  std::optional<std::string> log_dir;
  std::string redirects = "0";
  std::string tee = "0";
  std::string log_line_prefix_template;
  std::string log_prefix = "torchrun";
  std::string fold = "auto";
  std::string local_ranks_filter;
  std::string duplicate_stdout_filters;
  std::string duplicate_stderr_filters;
  std::optional<std::string> logs_specs;
  std::optional<std::string> log_max_size;

  // `lockstep launch` only: pass the script the local rank as an argument, in which spelling.
  bool legacy_launch = false;
  bool use_env = false;
  std::string local_rank_spelling = "dash";

  bool called_torchrun =
      false;  // called by a link named torchrun: torchrun's defaults and nothing else

  // Options that were given, by long name, with the variable as value; "": on the command line.
  std::map<std::string, std::string, std::less<>> given;
};

}  // namespace lockstep::launch
