// Rows of `lockstep run`: every option of torchrun 2.14, and our own.
#include "cli/run_options.h"

#include "base/text.h"
#include "launch/backend_row.h"

namespace lockstep::cli {
namespace {

std::string_view backend_help() {
  static const std::string kText = [] {
    const auto views = launch::backend_names();
    return join(std::vector<std::string>(views.begin(), views.end()), ", ") +
           "; without it one node needs none, several use " +
           std::string(launch::static_backend().name) +
           " where --master-addr, --master-port or --node-rank is given, else " +
           std::string(launch::lockstep_backend().name);
  }();
  return kText;
}

Group topology() {
  return {
      "Nodes and workers",
      {
          {.name = "nnodes",
           .kind = Kind::text,
           .metavar = "N|MIN:MAX",
           .help = "nodes of the job",
           .shown_default = "1:1",
           .env = "PET_NNODES"},
          {.name = "nproc-per-node",
           .kind = Kind::text,
           .metavar = "N",
           .help = "workers on this node: a number, cpu, gpu, xpu, or auto (GPUs, else CPUs)",
           .shown_default = "1",
           .env = "PET_NPROC_PER_NODE"},
          {.name = "node-rank",
           .kind = Kind::integer,
           .metavar = "N",
           .help = "place of this node: static backend, or with --rank-order node-rank",
           .shown_default = "0",
           .env = "PET_NODE_RANK"},
          {.name = "role",
           .kind = Kind::text,
           .metavar = "NAME",
           .help = "role of the workers, shown in log prefixes",
           .shown_default = "default",
           .env = "PET_ROLE"},
          {.name = "master-addr",
           .kind = Kind::text,
           .metavar = "HOST",
           .help = "address of node 0, static backend; IPv6 in brackets",
           .shown_default = "127.0.0.1",
           .env = "PET_MASTER_ADDR"},
          {.name = "master-port",
           .kind = Kind::integer,
           .metavar = "PORT",
           .help = "port of the store, static backend; on one node without it a free port is taken",
           .env = "PET_MASTER_PORT"},
          {.name = "local-addr",
           .kind = Kind::text,
           .metavar = "HOST",
           .help = "address under which other nodes reach this one",
           .env = "PET_LOCAL_ADDR"},
      }};
}

Group rendezvous() {
  return {"Rendezvous",
          {
              {.name = "standalone",
               .help = "one node, free port, fresh run id",
               .env = "PET_STANDALONE"},
              {.name = "rdzv-backend",
               .kind = Kind::text,
               .metavar = "NAME",
               .help = backend_help(),
               .env = "PET_RDZV_BACKEND"},
              {.name = "rdzv-endpoint",
               .kind = Kind::text,
               .metavar = "HOST[:PORT]",
               .help = "where nodes meet",
               .env = "PET_RDZV_ENDPOINT"},
              {.name = "rdzv-id",
               .kind = Kind::text,
               .metavar = "ID",
               .help = "run id of the job",
               .shown_default = "none",
               .env = "PET_RDZV_ID"},
              {.name = "rdzv-conf",
               .kind = Kind::text,
               .metavar = "K=V,...",
               .help = "settings of the backend, times in seconds: join_timeout [600], "
                       "last_call_timeout [30], close_timeout [30], read_timeout [60], ...",
               .env = "PET_RDZV_CONF"},
              {.name = "rdzv-token-file",
               .kind = Kind::text,
               .metavar = "FILE",
               .help = "the job's secret, lockstep backend; else $LOCKSTEP_RDZV_TOKEN",
               .own = true},
              {.name = "rank-order",
               .kind = Kind::text,
               .metavar = "HOW",
               .help = "which nodes get the lowest ranks, where all agents are Lockstep's",
               .choices = {"host", "node-rank", "address"},
               .own = true},
          }};
}

Group command() {
  return {"What runs",
          {
              {.name = "module",
               .kind = Kind::flag,
               .help = "script is a module name: python -m",
               .env = "PET_MODULE",
               .letter = 'm'},
              {.name = "no-python",
               .help = "run script itself, found in PATH, without Python",
               .env = "PET_NO_PYTHON"},
              {.name = "run-path",
               .help = "run script with Python's runpy.run_path",
               .env = "PET_RUN_PATH"},
              {.name = "start-method",
               .kind = Kind::text,
               .metavar = "HOW",
               .help = "accepted, without effect",
               .shown_default = "spawn",
               .env = "PET_START_METHOD",
               .choices = {"spawn", "fork", "forkserver"}},
          }};
}

Group restarts() {
  return {"Restarts",
          {
              {.name = "max-restarts",
               .kind = Kind::integer,
               .metavar = "N",
               .help = "restarts of all workers before the job fails",
               .shown_default = "0",
               .env = "PET_MAX_RESTARTS"},
              {.name = "restart-backoff",
               .kind = Kind::number,
               .metavar = "SECONDS",
               .help = "after attempts that lived less than 10 s restarts wait 0.5 s, 1 s, 2 s ... "
                       "up to this; the first one does not wait; 0: none does",
               .shown_default = "30",
               .own = true},
              {.name = "no-replacement",
               .kind = Kind::flag,
               .help = "no other node takes a lost one's place, the job ends",
               .own = true},
          }};
}

Group supervision() {
  return {"Failure and stop",
          {
              {.name = "monitor-interval",
               .kind = Kind::number,
               .metavar = "SECONDS",
               .help = "accepted; ends of workers are seen at once",
               .shown_default = "0.1",
               .env = "PET_MONITOR_INTERVAL"},
              {.name = "signals-to-handle",
               .kind = Kind::text,
               .metavar = "LIST",
               .help = "signals that end the job",
               .shown_default = "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
               .env = "PET_SIGNALS_TO_HANDLE"},
              {.name = "shutdown-timeout",
               .kind = Kind::integer,
               .metavar = "SECONDS",
               .help = "from the first signal to SIGKILL; else TORCH_ELASTIC_SHUTDOWN_TIMEOUT",
               .shown_default = "30",
               .env = "PET_SHUTDOWN_TIMEOUT"},
              {.name = "exit-barrier-timeout",
               .kind = Kind::integer,
               .metavar = "SECONDS",
               .help = "how long a node that is done waits for the others; 0: not at all",
               .shown_default = "300",
               .own = true},
              {.name = "event-log-handler",
               .kind = Kind::text,
               .metavar = "NAME",
               .help = "null, or console: events as JSON lines on stderr",
               .shown_default = "null",
               .env = "PET_EVENT_LOG_HANDLER"},
              {.name = "isolation",
               .kind = Kind::text,
               .metavar = "HOW",
               .help = "how no process of a worker outlives the job",
               .shown_default = "auto",
               .choices = {"auto", "pidns", "cgroup", "guardian", "none"},
               .own = true},
              {.name = "exit-code",
               .kind = Kind::text,
               .metavar = "WHOSE",
               .help = "on failure 1, or the first failed worker's own code",
               .shown_default = "torchrun",
               .choices = {"torchrun", "worker"},
               .own = true},
              {.name = "report",
               .kind = Kind::text,
               .metavar = "FILE",
               .help = "write what happened as JSON at the end",
               .own = true},
              {.name = "report-tails",
               .kind = Kind::text,
               .metavar = "WHICH",
               .help = "failed workers shown in full at the end",
               .shown_default = "first",
               .choices = {"first", "all"},
               .own = true},
          }};
}

Group logs() {
  return {
      "Output and logs",
      {
          {.name = "log-dir",
           .kind = Kind::text,
           .metavar = "DIR",
           .help = "where log files go; /dev/null: none",
           .shown_default = "/tmp/torchelastic_*",
           .env = "PET_LOG_DIR"},
          {.name = "redirects",
           .kind = Kind::text,
           .metavar = "WHAT",
           .help = "to files only: 0 none, 1 stdout, 2 stderr, 3 both; or by local rank 0:3,1:2",
           .shown_default = "0",
           .env = "PET_REDIRECTS",
           .letter = 'r'},
          {.name = "tee",
           .kind = Kind::text,
           .metavar = "WHAT",
           .help = "to files and console, like --redirects",
           .shown_default = "0",
           .env = "PET_TEE",
           .letter = 't'},
          {.name = "log-line-prefix-template",
           .kind = Kind::text,
           .metavar = "TEXT",
           .help =
               "prefix of tee'd lines: ${role_name}, ${local_rank}, ${rank}, ${hostname}, ${time}",
           .env = "PET_LOG_LINE_PREFIX_TEMPLATE"},
          {.name = "log-prefix",
           .kind = Kind::text,
           .metavar = "STYLE",
           .help = "[default0]: or [default 0], or the latter after the time",
           .shown_default = "torchrun",
           .choices = {"torchrun", "readable", "time"},
           .own = true},
          {.name = "log-max-size",
           .kind = Kind::text,
           .metavar = "SIZE",
           .help = "as 100M: where stdout.log becomes stdout.log.1 and so on; 5 are kept",
           .shown_default = "no limit",
           .own = true},
          {.name = "local-ranks-filter",
           .kind = Kind::text,
           .metavar = "LIST",
           .help = "local ranks shown on the console, as 0,1; rank:3 is a global rank",
           .shown_default = "all",
           .env = "PET_LOCAL_RANKS_FILTER"},
          {.name = "duplicate-stdout-filters",
           .kind = Kind::text,
           .metavar = "LIST",
           .help =
               "tee'd lines with one of these texts also go to filtered_stdout.log; ,, is a comma",
           .env = "PET_DUPLICATE_STDOUT_FILTERS"},
          {.name = "duplicate-stderr-filters",
           .kind = Kind::text,
           .metavar = "LIST",
           .help = "same, for stderr",
           .env = "PET_DUPLICATE_STDERR_FILTERS"},
          {.name = "logs-specs",
           .kind = Kind::text,
           .metavar = "NAME",
           .help = "default; others are refused: they are Python plug-ins"},
      }};
}

Group placement() {
  return {"Devices",
          {
              {.name = "virtual-local-rank",
               .help = "every worker sees one GPU, as LOCAL_RANK 0",
               .env = "PET_VIRTUAL_LOCAL_RANK"},
              {.name = "numa-binding",
               .kind = Kind::text,
               .metavar = "HOW",
               .help = "bind workers to the CPUs near their GPU",
               .choices = {"node", "socket", "exclusive", "core-complex"}},
          }};
}

Group other() {
  return {"Other",
          {
              {.name = "help", .help = "this text", .letter = 'h', .ends_parsing = true},
              {.name = "version", .help = "the version", .own = true, .ends_parsing = true},
              {.name = "explain",
               .help = "print every value and where it comes from; start nothing",
               .own = true},
              {.name = "print-completion",
               .kind = Kind::text,
               .metavar = "SHELL",
               .help = "completion script; tcsh is refused",
               .choices = {"bash", "zsh", "fish", "tcsh"},
               .ends_parsing = true},
          }};
}

constexpr std::string_view kRunSummary =
    "Runs a training script in several worker processes, as torchrun does: starts\n"
    "them, restarts all when one fails, stops all when one cannot be helped, and\n"
    "gives every worker the environment that torch.distributed reads.";

constexpr std::string_view kRunEpilog =
    "Long names may be shortened; - and _ are the same in them. Options of\n"
    "torchrun's, but logs-specs, numa-binding and those under Other, can be set in\n"
    "the environment: --max-restarts is PET_MAX_RESTARTS; flags take 0 or 1 there.\n"
    "Started once a node by Slurm's srun, by mpirun or as a Kubernetes job, lockstep\n"
    "run knows nodes, node rank and endpoint by itself; --explain shows them.\n"
    "Python is $PYTHON_EXEC, else $VIRTUAL_ENV/bin/python, else python3 or python\n"
    "from PATH. Script arguments may contain ${local_rank}.";

Table make_run_table(std::string_view program) {
  return {program,
          kRunSummary,
          kRunEpilog,
          true,
          {topology(), rendezvous(), command(), restarts(), supervision(), logs(), placement(),
           other()}};
}

Table make_launch_table() {
  Table table = make_run_table("lockstep launch");
  table.summary =
      "As `lockstep run`, for scripts written for torch.distributed.launch, which is\n"
      "deprecated: without --use-env the script gets its local rank as its first\n"
      "argument, --local-rank=N.";
  Group group{"Local rank",
              {
                  {.name = "use-env", .help = "no argument; the script reads LOCAL_RANK"},
                  {.name = "local-rank-spelling",
                   .kind = Kind::text,
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
  static const Table table = make_run_table("lockstep run");
  return table;
}

const Table& torchrun_table() {
  static const Table table = make_run_table("torchrun");
  return table;
}

const Table& launch_table() {
  static const Table table = make_launch_table();
  return table;
}

}  // namespace lockstep::cli
