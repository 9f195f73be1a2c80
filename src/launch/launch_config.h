// The complete, validated and immutable configuration of a `lockstep run`. cli fills RawOptions
// from argv and environment. make_launch_config() (launch_config.cc) normalises and checks them as
// torchrun 2.14 does (docs/command-line.md). No later code looks at argv.
#pragma once

#include "base/error.h"
#include "codec/rdzv_endpoint.h"
#include "launch/conf_values.h"
#include "logs/std_spec.h"
#include "logs/step_line.h"
#include "rendezvous/rank_order.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::launch {

struct BackendRow;

enum class NumaBinding { none, node, socket, exclusive, core_complex };
enum class Isolation { automatic, pidns, cgroup, guardian, none };
enum class ExitCodeMode { torchrun, worker };  // --exit-code
enum class ReportTails { first, all, none };   // --report-tails
enum class EventHandler { null, console };
// How the workers find each other: by the store at MASTER_ADDR, or by JAX's own service, which the
// worker with rank 0 opens there.
enum class Framework { torch, jax };
// `lockstep launch` passes the local rank to workers: as --local-rank= or as --local_rank=.
enum class LocalRankArgument { none, dash, underscore };

// Rules that set a value other than the default. --explain names the rule.
enum class Rule {
  none,
  standalone,      // --standalone
  one_node,        // one node, and no endpoint given
  torchrun,        // called as torchrun or `lockstep launch`
  master_options,  // --master-addr, --master-port or --node-rank given
  master_place,    // the endpoint is --master-addr and --master-port
  several_nodes,   // several nodes, and none of the rules above
  node_rank,       // a node rank is given
  random,          // generated
  own_venv,        // the virtual environment that lockstep is installed in
};
// Where a value comes from.
struct Origin {
  enum class Kind { option, variable, scheduler, rule };
  Kind kind = Kind::option;
  std::string name;  // of the environment variable, or of the scheduler's variables
  Rule rule = Rule::none;
};

// PyTorch's environment variables. Three of them switch a watchdog on: the health port, the file
// timer and the stuck limit. The timer file is the path of the timer's FIFO. The error file is
// where a launcher above this one looks for this job's failure.
inline constexpr std::string_view kHealthPortVariable = "TORCHELASTIC_HEALTH_CHECK_PORT";
inline constexpr std::string_view kFileTimerVariable = "TORCHELASTIC_ENABLE_FILE_TIMER";
inline constexpr std::string_view kTimerFileVariable = "TORCHELASTIC_TIMER_FILE";
inline constexpr std::string_view kStuckLimitVariable =
    "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT";
inline constexpr std::string_view kErrorFileVariable = "TORCHELASTIC_ERROR_FILE";

struct WatchConfig {
  std::optional<std::uint16_t> health_port;  // serve /health and /metrics there; 0: any free port
  bool file_timer = false;                   // the fifo of torch.distributed.elastic.timer
  std::optional<std::string> timer_file;     // path of the fifo; nullopt: a fresh one in /tmp
  // A worker stuck in the kernel for longer ends the job.
  std::optional<std::chrono::duration<double>> stuck_limit;
};

// When a job whose ranks all stand still counts as hung, and what then happens.
struct HangConfig {
  // automatic: the larger of 30 s and five times the longest quiet time so far.
  enum class After { automatic, given, never };
  enum class Then { report, restart, end };

  After after = After::automatic;
  std::chrono::milliseconds limit{0};  // with After::given
  Then then = Then::report;
};

// Who is told about the events of the job.
struct EventConfig {
  std::optional<std::string> file;  // --events: gets a line of JSON for each event
  // --notify: a webhook. The URL may hold a secret, so no message shows it.
  std::optional<std::string> url;
  bool slack = false;                // the webhook wants Slack's form
  std::vector<std::string> program;  // --notify-exec, split into words; empty: none

  bool notifies() const { return url || !program.empty(); }
};

// An address to serve HTTP on.
struct ServePlace {
  std::string host = "localhost";  // see io::open_listener(); "": every address of this machine
  std::uint16_t port = 0;          // 0: any free port
};

struct PageConfig {
  std::optional<ServePlace> status_page;  // --status-page
  std::optional<ServePlace> metrics;      // --metrics
  std::optional<std::string> token;       // LOCKSTEP_PAGE_TOKEN; nullopt: a random one
};

// The variables by which workers of PyTorch's NCCL backend dump their flight recorder on request
// (agent/collectives.h). Each attempt has a folder of its own.
struct RecorderConfig {
  struct Variable {
    std::string name;
    std::string value;
    bool in_folder = false;  // the value is the beginning of file names in that folder

    friend bool operator==(const Variable&, const Variable&) = default;
  };
  std::vector<Variable> variables;  // empty: recorders are not asked
  std::string off;                  // why not: "TORCH_FR_DUMP_TEMP_FILE is set"
  bool aid = false;                 // --aid: workers without NCCL are asked, too
};

// Stands for the folder of traces in ProfileConfig::variables.
inline constexpr std::string_view kProfileTraces = "traces";

// The variables by which PyTorch's profiler asks the agent for orders (--profile).
struct ProfileConfig {
  bool wanted = false;
  // Names and values. "": the folder of the job's profiles. kProfileTraces: that of their traces.
  std::vector<std::pair<std::string, std::string>> variables = {};
  // A folder that the agent makes the folder of traces in, as all nodes of a Slurm job see it.
  // "": traces lie beside the socket.
  std::string place = {};
  std::string off = {};  // why the option has no effect: "KINETO_USE_DAEMON is set"
};

struct LogConfig {
  std::optional<std::string> base_dir;  // --log-dir; nullopt: a fresh /tmp/torchelastic_XXXXXXXX
  bool disabled = false;                // --log-dir /dev/null
  logs::StdSpec redirects;
  logs::StdSpec tee;
  // Set by the option, else by the environment, else "[${role_name}${local_rank}]:".
  std::string prefix_template;
  // Ranks whose output is shown on the console; nullopt: all. Local ranks are in local_ranks,
  // global ranks ("rank:3") in global_ranks. Either match is enough.
  struct Filter {
    std::set<int> local_ranks;
    std::set<int> global_ranks;
  };
  std::optional<Filter> filter;
  std::vector<std::string> duplicate_stdout_filters;
  std::vector<std::string> duplicate_stderr_filters;
  std::uint64_t max_size = 0;  // --log-max-size; 0: files grow for ever
  // Merge equal lines of several workers on the console. automatic: only tee'd lines, and only on a
  // terminal. always: everything on the console.
  enum class Fold { automatic, always, never };
  Fold fold = Fold::automatic;
};

struct LaunchConfig {
  // Topology
  int min_nodes = 1;
  int max_nodes = 1;
  int spares = 0;  // nodes beyond max_nodes, announced with --spares
  int nproc = 1;
  Framework framework = Framework::torch;
  // --slots: devices visible to all workers of this node, one device per worker. Workers also get
  // the variables of DeepSpeed's launcher.
  std::optional<std::string> slots;
  std::string role = "default";
  std::string run_id;
  // --rdzv-id as given, even if a job of one node gets another run id; empty: not given. Leftovers
  // of an earlier run with the same name belong to this job.
  std::string job_name;
  const BackendRow* backend = nullptr;  // never null in a finished configuration
  std::string rdzv_endpoint;            // after normalisation: host[:port], may be empty
  // The parsed endpoint. Empty with a private store or c10d's file. Several entries only for
  // backends with most_endpoints > 1.
  std::vector<codec::RdzvEndpoint> rdzv_endpoints;
  std::optional<bool> rdzv_https;  // set if the endpoints begin with http:// or https://
  ConfValues conf;                 // --rdzv-conf as read by the backend
  int node_rank = 0;
  std::string master_addr = "127.0.0.1";
  int master_port = 29500;
  std::optional<std::string> local_addr;
  // True for one node with a dynamic backend: the store takes a free port on loopback.
  bool private_store = true;
  bool node_rank_given = false;
  // --rank-order, else the backend's own.
  rendezvous::RankOrder rank_order = rendezvous::RankOrder::host;
  std::chrono::seconds exit_barrier_timeout{300};
  std::chrono::seconds leave_timeout{30};  // close_timeout
  std::optional<std::string> rdzv_token;   // the job's secret, stripped of white space

  // The command: argv of every worker before ${local_rank} is substituted. argv[0] is resolved.
  std::vector<std::string> command;
  bool substitute = true;  // python string.Template on arguments (not argv[0])
  std::string entrypoint;  // file name for the report's title: script, module, or executable
  int entrypoint_arguments = 0;
  LocalRankArgument local_rank_argument = LocalRankArgument::none;
  std::size_t local_rank_argument_at = 0;  // index in `command` of that argument

  // Supervision
  int max_restarts = 0;
  std::chrono::milliseconds restart_backoff{30000};  // longest pause before a restart; 0: none
  bool replacement = true;  // with restarts left, another node may replace a lost one
  std::chrono::duration<double> monitor_interval{0.1};
  std::vector<int> signals;    // signals that end the job, in the order given
  std::string signals_text;    // as given: TORCHELASTIC_SIGNALS_TO_HANDLE
  bool signals_given = false;  // the user gave the list, which may contain USR1 and USR2
  // Signals that are passed to workers without ending the job (default: USR1, USR2).
  std::vector<int> forwarded_signals;
  // Time that workers have between the signal to stop and SIGKILL. stop_timeout: if a signal to the
  // agent ends the job. shutdown_timeout: in all other cases.
  std::chrono::seconds shutdown_timeout{30};
  std::chrono::seconds stop_timeout{30};
  Isolation isolation = Isolation::automatic;
  ExitCodeMode exit_code = ExitCodeMode::torchrun;
  std::optional<std::string> report_file;  // --report
  // Path that the launcher above has set in TORCHELASTIC_ERROR_FILE.
  std::optional<std::string> error_file_above;
  ReportTails report_tails = ReportTails::first;
  EventHandler event_handler = EventHandler::null;

  WatchConfig watch;
  HangConfig hang;
  std::optional<logs::StepPattern> progress;  // --progress; nullopt: steps are guessed
  std::optional<std::string> dcgm_job_dir;    // --dcgm-job-dir
  EventConfig events;
  PageConfig page;
  RecorderConfig recorder;
  ProfileConfig profile;

  // Placement
  bool virtual_local_rank = false;
  NumaBinding numa_binding = NumaBinding::none;
  // Value of OMP_NUM_THREADS for workers, set by a rule and logged once; nullopt: inherit.
  std::optional<std::string> omp_num_threads;

  LogConfig logs;

  // --container, in which this process runs. image: as the user wrote it; empty: no container.
  struct Container {
    std::string image;
    std::string runtime;
    std::string why;  // why this runtime
  };
  Container container;

  std::vector<std::string> scheduler_hosts;  // names of all nodes; empty: unknown
  std::string scheduler;  // the scheduler that some values come from: "Slurm"; empty: none
  // Origins for --explain. Keys: long option names, names of watchdog variables, and "python" if
  // the command starts with Python. No entry: the default.
  std::map<std::string, Origin, std::less<>> origins;

  std::vector<std::string> warnings;  // logged once, in this order
  // Warnings equal on all nodes. Only the first node of the job's first round logs them.
  std::vector<std::string> job_warnings;

  // Returns whether no other node joins, not even a spare.
  bool alone() const { return max_nodes == 1 && spares == 0; }
};

struct RawOptions;
struct Facts;
// Finds the Python for scripts, and sets `origin` to the place where it was found. Errors:
// not_found.
Result<std::string> find_python(const Facts& facts, Origin& origin);
// Makes the configuration. All errors are the user's to fix and end with exit code 1.
Result<LaunchConfig> make_launch_config(const RawOptions& raw, const Facts& facts);

}  // namespace lockstep::launch
