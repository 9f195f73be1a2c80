// Rows of `lockstep run` about the workers: their program, their devices, their restarts, their
// end.
#include "cli/run_groups.h"

namespace lockstep::cli {

Group command_group() {
  return {"What runs",
          {
              {.name = "module",
               .field = into<&Raw::module>,
               .help = "script is a module name: python -m",
               .env = "PET_MODULE",
               .letter = 'm'},
              {.name = "no-python",
               .field = into<&Raw::no_python>,
               .help = "run script itself, found in PATH, without Python",
               .env = "PET_NO_PYTHON"},
              {.name = "run-path",
               .field = into<&Raw::run_path>,
               .help = "run script with Python's runpy.run_path",
               .env = "PET_RUN_PATH"},
              {.name = "framework",
               .field = into<&Raw::framework>,
               .metavar = "NAME",
               .help = "jax: set JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID, "
                       "and with several workers a node JAX_LOCAL_DEVICE_IDS",
               .shown_default = "torch",
               .choices = {"torch", "jax"},
               .own = true},
              {.name = "start-method",
               .kind = Kind::text,
               .metavar = "HOW",
               .help = "accepted, without effect",
               .shown_default = "spawn",
               .env = "PET_START_METHOD",
               .choices = {"spawn", "fork", "forkserver"}},
          }};
}

Group placement_group() {
  return {"Devices",
          {
              {.name = "virtual-local-rank",
               .field = into<&Raw::virtual_local_rank>,
               .help = "every worker sees a single GPU, as LOCAL_RANK 0",
               .env = "PET_VIRTUAL_LOCAL_RANK"},
              {.name = "slots",
               .field = into<&Raw::slots>,
               .metavar = "LIST|gpu",
               .help = "a worker for each of these devices, as 0,2, and all workers see all of "
                       "them; with DeepSpeed's CROSS_RANK, CROSS_SIZE and LOCAL_SIZE",
               .own = true,
               .shapes_job = true},
              {.name = "numa-binding",
               .field = into<&Raw::numa_binding>,
               .metavar = "HOW",
               .help = "bind workers to the CPUs near their GPU",
               .choices = {"node", "socket", "exclusive", "core-complex"}},
          }};
}

Group container_group() {
  return {"Container",
          {
              {.name = "container",
               .field = into<&Raw::container>,
               .metavar = "IMAGE",
               .help = "run in this image: docker://HOST/NAME:TAG, an archive, a .sif or .sqsh "
                       "file, a folder, or the name of an image",
               .own = true,
               .shapes_job = true},
              {.name = "container-mounts",
               .field = into<&Raw::container_mounts>,
               .metavar = "LIST",
               .help = "what else the container sees of the node, as SRC:DST[:ro],...; the "
                       "working folder and /tmp are always there",
               .own = true},
              {.name = "container-workdir",
               .field = into<&Raw::container_workdir>,
               .metavar = "DIR",
               .help = "the working folder in the container",
               .shown_default = "the same as outside",
               .own = true},
              {.name = "container-env",
               .field = into<&Raw::container_env>,
               .metavar = "NAME,...",
               .help = "variables whose value here wins over the image's",
               .own = true},
          }};
}

Group restarts_group() {
  return {"Restarts",
          {
              {.name = "max-restarts",
               .field = into<&Raw::max_restarts>,
               .metavar = "N",
               .help = "restarts of all workers before the job fails",
               .shown_default = "0",
               .env = "PET_MAX_RESTARTS"},
              {.name = "restart-backoff",
               .field = into<&Raw::restart_backoff>,
               .metavar = "SECONDS",
               .help = "after attempts shorter than 10 s, restarts wait 0.5 s, 1 s, 2 s ... up to "
                       "this; the first restart does not wait; 0: no restart waits",
               .shown_default = "30",
               .own = true},
              {.name = "no-replacement",
               .field = into<&Raw::no_replacement>,
               .help = "no other node takes a lost one's place, the job ends",
               .own = true},
          }};
}

Group supervision_group() {
  return {"Failure and stop",
          {
              {.name = "monitor-interval",
               .field = into<&Raw::monitor_interval>,
               .metavar = "SECONDS",
               .help = "accepted; ends of workers are seen at once",
               .shown_default = "0.1",
               .env = "PET_MONITOR_INTERVAL"},
              {.name = "signals-to-handle",
               .field = into<&Raw::signals_to_handle>,
               .metavar = "LIST",
               .help = "signals that end the job",
               .shown_default = "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
               .env = "PET_SIGNALS_TO_HANDLE"},
              {.name = "shutdown-timeout",
               .field = into<&Raw::shutdown_timeout>,
               .metavar = "SECONDS",
               .help = "from the first signal to SIGKILL; else TORCH_ELASTIC_SHUTDOWN_TIMEOUT",
               .shown_default = "30",
               .env = "PET_SHUTDOWN_TIMEOUT"},
              {.name = "exit-barrier-timeout",
               .field = into<&Raw::exit_barrier_timeout>,
               .metavar = "SECONDS",
               .help = "how long a finished node waits for the other nodes; 0: not at all",
               .shown_default = "300",
               .own = true},
              {.name = "event-log-handler",
               .field = into<&Raw::event_log_handler>,
               .metavar = "NAME",
               .help = "null, or console: events as JSON lines on stderr",
               .shown_default = "null",
               .env = "PET_EVENT_LOG_HANDLER"},
              {.name = "isolation",
               .field = into<&Raw::isolation>,
               .metavar = "HOW",
               .help = "how no process of a worker outlives the job",
               .shown_default = "auto",
               .choices = {"auto", "pidns", "cgroup", "guardian", "none"},
               .own = true},
              {.name = "exit-code",
               .field = into<&Raw::exit_code>,
               .metavar = "WHOSE",
               .help = "on failure 1, or the first failed worker's own code",
               .shown_default = "torchrun",
               .choices = {"torchrun", "worker"},
               .own = true},
              {.name = "report",
               .field = into<&Raw::report>,
               .metavar = "FILE",
               .help = "write a report as JSON at the end",
               .own = true},
              {.name = "report-tails",
               .field = into<&Raw::report_tails>,
               .metavar = "WHICH",
               .help = "failed workers shown in full at the end; none: no report",
               .shown_default = "first",
               .choices = {"first", "all", "none"},
               .own = true},
          }};
}

Group hang_group() {
  return {"Hangs",
          {
              {.name = "hang-after",
               .field = into<&Raw::hang_after>,
               .metavar = "SECONDS",
               .help = "when a job counts as hung if no rank runs: auto (30 s, or five times the "
                       "longest quiet time so far), a number, or off",
               .shown_default = "auto",
               .own = true},
              {.name = "on-hang",
               .field = into<&Raw::on_hang>,
               .metavar = "WHAT",
               .help = "what a hang does: print it and wait on, restart all workers (counts "
                       "against --max-restarts), or end the job",
               .shown_default = "report",
               .choices = {"report", "restart", "end"},
               .own = true},
              {.name = "aid",
               .field = into<&Raw::aid>,
               .help = "name the collective of a hang with gloo, too (PyTorch 2.14 or later): a "
                       "sitecustomize.py starts PyTorch's control plane in each worker",
               .own = true},
              {.name = "progress",
               .field = into<&Raw::progress>,
               .metavar = "REGEX",
               .help = "what a line with the step looks like, such as 'step ([0-9]+)': the first "
                       "group is the step; without it, steps are guessed from the output",
               .own = true},
              {.name = "dcgm-job-dir",
               .field = into<&Raw::dcgm_job_dir>,
               .metavar = "DIR",
               .help = "name this job to DCGM's exporter as the user of its GPUs: the folder is "
                       "the exporter's --hpc-job-mapping-dir on each node",
               .own = true},
          }};
}

Group page_group() {
  return {"Status page",
          {
              {.name = "status-page",
               .field = into<&Raw::status_page>,
               .metavar = "[=[ADDR:]PORT]",
               .help = "serve a page for a browser that shows what every rank does; the address "
                       "is printed, with a token; without ADDR on loopback",
               .own = true,
               .implied = "localhost:0"},
              {.name = "metrics",
               .field = into<&Raw::metrics>,
               .metavar = "[=[ADDR:]PORT]",
               .help = "serve /metrics for Prometheus; without a token on loopback only",
               .own = true,
               .implied = "localhost:0"},
              {.name = "profile",
               .field = into<&Raw::profile>,
               .help = "let lockstep profile take profiles, with PyTorch 2.10 or later: a thread "
                       "of each rank asks for orders every 5 s",
               .own = true},
          }};
}

}  // namespace lockstep::cli
