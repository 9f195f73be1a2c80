// What one `lockstep run` was asked to do: immutable, complete and validated. cli fills RawOptions
// from argv and environment; make_launch_config() (launch_config.cc) normalises and checks them as
// torchrun 2.14 does (docs/command-line.md) and nothing downstream looks at argv again.
#pragma once

#include "base/error.h"
#include "codec/rdzv_endpoint.h"
#include "launch/conf_values.h"
#include "logs/std_spec.h"
#include "rendezvous/rank_order.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::launch {

struct BackendRow;

enum class NumaBinding { none, node, socket, exclusive, core_complex };
enum class Isolation { automatic, pidns, cgroup, guardian, none };
enum class ExitCodeMode { torchrun, worker };  // --exit-code
enum class ReportTails { first, all, none };   // --report-tails
enum class EventHandler { null, console };
enum class LocalRankArgument {
  none,
  dash,
  underscore
};  // lockstep launch: --local-rank= / --local_rank=

// Where a value comes from that is not the default.
enum class Rule {
  none,
  standalone,      // --standalone
  one_node,        // one node, and nothing said about where to meet
  torchrun,        // called as torchrun or `lockstep launch`
  master_options,  // --master-addr, --master-port or --node-rank given
  master_place,    // the endpoint is --master-addr and --master-port
  several_nodes,   // none of these
  node_rank,       // a node rank is given
  random,          // made up
  own_venv,        // the virtual environment that this program is in
};
struct Origin {
  enum class Kind { option, variable, scheduler, rule };
  Kind kind = Kind::option;
  std::string name;  // the variable; for a scheduler those that it was read from
  Rule rule = Rule::none;
};

// PyTorch's variables: three that switch watchdogs on, a place, and what a launcher that started
// this one reads.
inline constexpr std::string_view kHealthPortVariable = "TORCHELASTIC_HEALTH_CHECK_PORT";
inline constexpr std::string_view kFileTimerVariable = "TORCHELASTIC_ENABLE_FILE_TIMER";
inline constexpr std::string_view kTimerFileVariable = "TORCHELASTIC_TIMER_FILE";
inline constexpr std::string_view kStuckLimitVariable =
    "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT";
inline constexpr std::string_view kErrorFileVariable = "TORCHELASTIC_ERROR_FILE";

struct WatchConfig {
  std::optional<std::uint16_t> health_port;  // /health and /metrics are served there; 0: any port
  bool file_timer = false;                   // the fifo of torch.distributed.elastic.timer
  std::optional<std::string> timer_file;     // where it is; nullopt: a fresh one in /tmp
  // A worker that is stuck in the kernel for longer ends the job.
  std::optional<std::chrono::duration<double>> stuck_limit;
};

struct LogConfig {
  std::optional<std::string> base_dir;  // --log-dir; nullopt: a fresh /tmp/torchelastic_XXXXXXXX
  bool disabled = false;                // --log-dir /dev/null
  logs::StdSpec redirects;
  logs::StdSpec tee;
  std::string
      prefix_template;  // option, else environment, else default "[${role_name}${local_rank}]:"
  // Ranks whose output reaches the console; nullopt: all. A rank passes if its local rank is in
  // local_ranks or its global rank in global_ranks ("rank:3").
  struct Filter {
    std::set<int> local_ranks;
    std::set<int> global_ranks;
  };
  std::optional<Filter> filter;
  std::vector<std::string> duplicate_stdout_filters;
  std::vector<std::string> duplicate_stderr_filters;
  std::uint64_t max_size = 0;  // --log-max-size; 0: files grow for ever
  // Whether equal lines of several workers become one on the console. automatic: of those that are
  // tee'd, on a terminal. always: of all that the console shows.
  enum class Fold { automatic, always, never };
  Fold fold = Fold::automatic;
};

struct LaunchConfig {
  // Topology
  int min_nodes = 1;
  int max_nodes = 1;
  int spares = 0;  // nodes beyond max_nodes that the user announced: --spares
  int nproc = 1;
  // --slots: the devices that all workers of this node see, one for each; workers then have the
  // variables of DeepSpeed's launcher, too.
  std::optional<std::string> slots;
  std::string role = "default";
  std::string run_id;
  // --rdzv-id as the user gave it, also where a job of one node gets a run id of its own; empty:
  // not given. Leftovers of an earlier run with the same are ours.
  std::string job_name;
  const BackendRow* backend = nullptr;  // after normalisation; never null in what is made
  std::string rdzv_endpoint;            // after normalisation: host[:port], may be empty
  // The endpoint read: none with a private store or c10d's file, several only for etcd3.
  std::vector<codec::RdzvEndpoint> rdzv_endpoints;
  std::optional<bool> rdzv_https;  // where the endpoints say http:// or https://
  ConfValues conf;                 // --rdzv-conf, as far as the backend reads it
  int node_rank = 0;
  std::string master_addr = "127.0.0.1";
  int master_port = 29500;
  std::optional<std::string> local_addr;
  // True: one node, dynamic backend; the store takes a free port on loopback.
  bool private_store = true;
  bool node_rank_given = false;
  // --rank-order, else the backend's own.
  rendezvous::RankOrder rank_order = rendezvous::RankOrder::host;
  std::chrono::seconds exit_barrier_timeout{300};
  std::chrono::seconds leave_timeout{30};  // close_timeout
  std::optional<std::string> rdzv_token;   // the job's secret, without surrounding white space

  // The command: argv of every worker before substitution of ${local_rank}; argv[0] is resolved.
  std::vector<std::string> command;
  bool substitute = true;  // python string.Template on arguments (not argv[0])
  std::string entrypoint;  // file name for the report's title: script, module, or executable
  int entrypoint_arguments = 0;
  LocalRankArgument local_rank_argument = LocalRankArgument::none;
  std::size_t local_rank_argument_at = 0;  // index in command where it is inserted

  // Supervision
  int max_restarts = 0;
  std::chrono::milliseconds restart_backoff{30000};  // the longest pause before one; 0: none
  bool replacement = true;  // with restarts left another node may take a lost one's place
  std::chrono::duration<double> monitor_interval{0.1};
  std::vector<int> signals;    // that end the job, in the order given
  std::string signals_text;    // as given: TORCHELASTIC_SIGNALS_TO_HANDLE
  bool signals_given = false;  // the user listed them (then USR1/USR2 may be among them)
  std::vector<int>
      forwarded_signals;  // passed to workers without ending the job (default USR1, USR2)
  std::chrono::seconds shutdown_timeout{30};
  std::chrono::seconds stop_timeout{30};  // the same where a signal to the agent ends the job
  Isolation isolation = Isolation::automatic;
  ExitCodeMode exit_code = ExitCodeMode::torchrun;
  std::optional<std::string> report_file;       // --report
  std::optional<std::string> error_file_above;  // of a launcher that started this one
  ReportTails report_tails = ReportTails::first;
  EventHandler event_handler = EventHandler::null;

  WatchConfig watch;

  // Placement
  bool virtual_local_rank = false;
  NumaBinding numa_binding = NumaBinding::none;
  // Set by rule in the workers' environment, with the reason logged once; nullopt: leave as
  // inherited.
  std::optional<std::string> omp_num_threads;

  LogConfig logs;

  std::vector<std::string>
      scheduler_hosts;    // all nodes' names, as the scheduler has them, if known
  std::string scheduler;  // that some of it was taken from: "Slurm", or empty
  // By long option name, by the name of a watchdog's variable, or by "python" where the command
  // starts with one; not there: the default. For people (--explain).
  std::map<std::string, Origin, std::less<>> origins;

  std::vector<std::string> warnings;  // to be logged once, in this order
  // Holds for all nodes alike: to be logged by the first node of the job's first round alone.
  std::vector<std::string> job_warnings;

  // There is no other node to meet, not even a spare one.
  bool alone() const { return max_nodes == 1 && spares == 0; }
};

struct RawOptions;
struct Facts;
// The Python that scripts run with, and what it was found by.
Result<std::string> find_python(const Facts& facts, Origin& origin);
// Every failure is the user's to fix and ends with exit code 1.
Result<LaunchConfig> make_launch_config(const RawOptions& raw, const Facts& facts);

}  // namespace lockstep::launch
