#include "cli/run_options.h"

#include "cli/on_demand_options.h"
#include "cli/remote_options.h"
#include "cli/run_groups.h"
#include "cli/sweep_options.h"

#include <utility>

namespace lockstep::cli {
namespace {

Group other() {
  return {"Other",
          {
              help_option(),
              {.name = "version", .help = "the version", .own = true, .ends_parsing = true},
              {.name = "explain",
               .field = into<&RunRequest::explain>,
               .help = "print every value and the origin; start nothing",
               .own = true},
              {.name = "print-completion",
               .field = into<&RunRequest::print_completion>,
               .metavar = "SHELL",
               .help = "completion script; tcsh is refused",
               .choices = {"bash", "zsh", "fish", "tcsh"},
               .ends_parsing = true},
          }};
}

std::vector<Variable> variables() {
  return {
      {"PYTHON_EXEC", "PROGRAM", "the Python for the script"},
      {"TORCHELASTIC_HEALTH_CHECK_PORT", "PORT",
       "serve /health and /metrics (Prometheus text) there"},
      {"TORCHELASTIC_ENABLE_FILE_TIMER", "1",
       "end the job when a timer of torch.distributed.elastic.timer in a worker expires"},
      {"TORCHELASTIC_TIMER_FILE", "FILE", "the fifo of these timers [/tmp/watchdog_timer_*]"},
      {"TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT", "SECONDS",
       "end the job when a worker is stuck in the kernel for so long"},
      {"TORCHELASTIC_ERROR_FILE", "FILE", "the job's first failure is written there, too"},
      {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "TEXT",
       "the default of --log-line-prefix-template"},
      {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "SECONDS", "the default of --shutdown-timeout"},
      {"TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT", "SECONDS", "the default of --exit-barrier-timeout"},
      {"LOCKSTEP_RDZV_TOKEN", "TOKEN", "the job's secret, in place of --rdzv-token-file"},
      {"LOCKSTEP_NOTIFY", "URL", "the webhook, in place of --notify, which ps shows to all users"},
      {"LOCKSTEP_PAGE_TOKEN", "TOKEN",
       "the token of --status-page and --metrics, in place of a random one"},
      {"LOGLEVEL", "LEVEL", "the launcher's log level: DEBUG, INFO, WARNING or ERROR [WARNING]"},
  };
}

constexpr std::string_view kRunDetails =
    "Every worker gets the environment that torch.distributed reads. When a worker\n"
    "fails, all workers are started again; after the last of --max-restarts, all are\n"
    "stopped and the job fails.";

constexpr std::string_view kRunEpilog =
    "Long names may be shortened; - and _ are the same there. Options of\n"
    "torchrun's, but logs-specs, numa-binding and those under Other, can be set in\n"
    "the environment: --max-restarts is PET_MAX_RESTARTS; flags take 0 or 1 there.\n"
    "Started once a node by Slurm's srun, by mpirun or as a Kubernetes job, lockstep\n"
    "run knows nodes, node rank and endpoint by itself; --explain shows them.\n"
    "Python is $PYTHON_EXEC, else the Python of the virtual environment around\n"
    "lockstep, else $VIRTUAL_ENV/bin/python, else python3 or python from PATH.\n"
    "Script arguments may contain ${local_rank}.";

Table make_run_table(std::string_view program, std::string_view examples) {
  return {.program = program,
          .summary = "Runs a training script in several worker processes, as torchrun does.",
          .examples = examples,
          .details = kRunDetails,
          .epilog = kRunEpilog,
          .operands = Operands::script,
          .groups = {topology_group(), rendezvous_group(), command_group(), restarts_group(),
                     supervision_group(), hang_group(), events_group(), page_group(), logs_group(),
                     placement_group(), container_group(), other()},
          .variables = variables()};
}

Table make_launch_table() {
  Table table = make_run_table("lockstep launch",
                               "lockstep launch --nproc-per-node 4 train.py\n"
                               "lockstep launch --use-env --nproc-per-node 4 train.py");
  table.summary = "Runs a script written for torch.distributed.launch.";
  table.details =
      "Does the same as lockstep run, but without --use-env the script gets the\n"
      "local rank as the first argument, --local-rank=N. PyTorch has deprecated\n"
      "torch.distributed.launch.";
  Group group{"Local rank",
              {
                  {.name = "use-env",
                   .field = into<&Raw::use_env>,
                   .help = "no argument; the script reads LOCAL_RANK"},
                  {.name = "local-rank-spelling",
                   .field = into<&Raw::local_rank_spelling>,
                   .metavar = "HOW",
                   .help = "--local-rank=N or --local_rank=N (before PyTorch 2.0)",
                   .shown_default = "dash",
                   .choices = {"dash", "underscore"},
                   .own = true},
              }};
  table.groups.insert(table.groups.begin() + 3, std::move(group));
  return table;
}

}  // namespace

const Table& run_table() {
  static const Table table = [] {
    Table made = make_run_table("lockstep run",
                                "lockstep run --nproc-per-node 8 train.py --lr 0.1\n"
                                "lockstep run --nnodes 2 --rdzv-endpoint node0:29400 train.py\n"
                                "lockstep run --on gpus --nproc-per-node gpu train.py");
    std::vector<Group> remote = remote_groups();
    remote.push_back(sweep_group());
    for (Group& group : on_demand_groups())
      remote.push_back(std::move(group));
    made.groups.insert(made.groups.end() - 1, remote.begin(), remote.end());
    return made;
  }();
  return table;
}

const Table& torchrun_table() {
  static const Table table =
      make_run_table("torchrun",
                     "torchrun --nproc-per-node 8 train.py --lr 0.1\n"
                     "torchrun --nnodes 2 --rdzv-backend c10d --rdzv-endpoint node0 train.py");
  return table;
}

const Table& launch_table() {
  static const Table table = make_launch_table();
  return table;
}

launch::RawOptions raw_options(const Table& table, const Parsed& parsed) {
  launch::RawOptions raw;
  fill(table, parsed, raw);
  // --explain and error messages name the origin of a value: an option, or a variable.
  for (const auto& [name, value] : parsed.values) {
    const auto variable = parsed.variables.find(name);
    raw.given[name] = variable == parsed.variables.end() ? "" : variable->second;
  }
  raw.script = parsed.script.value_or("");
  raw.script_args = parsed.script_args;
  return raw;
}

}  // namespace lockstep::cli
