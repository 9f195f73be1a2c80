// Reads the variables of Slurm, Open MPI, PMI (Hydra) and Kubernetes operators.
#include "launch/scheduler_rule.h"

#include "base/text.h"
#include "codec/nodelist.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace lockstep::launch {
namespace {

constexpr std::int64_t kMostNodes = 1'000'000;
constexpr int kDefaultPort = 29400;

// Reads a count or index; nullopt: unset.
Result<std::optional<int>> number_in(const Facts& facts, const char* name) {
  const auto text = facts.env(name);
  if (!text) return std::nullopt;
  const auto number = parse_int(*text);
  if (!number || *number < 0 || *number > kMostNodes)
    return fail(Errc::invalid_input,
                fmt::format("{}={} must be a number of nodes or tasks", name, printable(*text, 40)),
                "give --nnodes, --node-rank and --rdzv-endpoint, or --standalone");
  return static_cast<int>(*number);
}

Status check_range(const Placement& found) {
  if (found.nodes >= 1 && found.node_rank < found.nodes) return {};
  return fail(Errc::invalid_input,
              fmt::format("{} says node {} of {}: {} and {} do not fit together", found.scheduler,
                          found.node_rank, found.nodes, found.node_rank_from, found.nodes_from),
              "give --nnodes, --node-rank and --rdzv-endpoint, or --standalone");
}

// Derives a port from job and step. Schedulers number jobs and steps consecutively, so two jobs on
// the same node get different ports. All ports are below the kernel's ephemeral ports (from 32768
// on) and below the well-known 29400 and 29500.
int derived_port(std::int64_t job, std::int64_t step) {
  constexpr std::int64_t kPorts = 8999;  // a prime, so steps spread over all ports
  return static_cast<int>(20000 + (job % kPorts + 4001 * (step % kPorts)) % kPorts);
}

// Returns the names of the nodes if the list has one for each node, else nothing.
std::vector<std::string> hosts_in(const Facts& facts, const char* name, int nodes) {
  const auto list = facts.env(name);
  if (!list) return {};
  const auto hosts = codec::expand_nodelist(*list);
  if (!hosts || hosts->size() != static_cast<std::size_t>(nodes)) return {};
  return *hosts;
}

bool take_hosts(const Facts& facts, const char* name, Placement& found) {
  found.hosts = hosts_in(facts, name, found.nodes);
  found.host_from = name;
  if (found.hosts.empty()) return false;
  found.host = found.hosts.front();
  return true;
}

std::optional<std::int64_t> slurm_job(const Facts& facts) {
  const auto text = facts.env("SLURM_JOB_ID");
  const auto job = text ? parse_int(*text) : std::nullopt;
  return job && *job >= 0 ? job : std::nullopt;
}

// Returns the step's number if srun started this process as a task. A batch script has no step. An
// interactive shell (salloc, srun --pty) has a special step, or a terminal.
std::optional<std::int64_t> slurm_step(const Facts& facts) {
  constexpr std::int64_t kSpecialSteps = 0xFFFFFFF0;
  const auto text = facts.env("SLURM_STEP_ID");
  const auto step = text ? parse_int(*text) : std::nullopt;
  if (!step || *step < 0 || *step >= kSpecialSteps) return std::nullopt;
  if (facts.env("SLURM_PTY_PORT") || !facts.env("SLURM_PROCID")) return std::nullopt;
  return step;
}

void place_slurm_endpoint(const Facts& facts, std::int64_t step, Placement& found) {
  const auto job = slurm_job(facts);
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}) {
    if (take_hosts(facts, name, found)) break;
  }
  found.port = job ? derived_port(*job, step) : kDefaultPort;
  if (!job) return;
  found.job = fmt::format("step {}.{}", *job, step);
  found.run_id = fmt::format("{}.{}", *job, step);
  // A requeued job numbers its steps from 0 again. The number of the requeue keeps run ids apart.
  const auto restarts = parse_int(facts.env("SLURM_RESTART_COUNT").value_or("0"));
  if (restarts && *restarts > 0) found.run_id += fmt::format(".r{}", *restarts);
}

// Reads Slurm's placement. Inside a step SLURM_NNODES and SLURM_NTASKS describe the step. In a
// heterogeneous job they cover all parts together, while the STEP variables may cover a single
// part.
Result<std::optional<Placement>> read_slurm(const Facts& facts) {
  const auto step = slurm_step(facts);
  if (!step) return std::nullopt;
  const bool parts = facts.env("SLURM_HET_SIZE").has_value();
  const bool has_own = !parts && facts.env("SLURM_STEP_NUM_NODES");
  Placement found;
  found.scheduler = "Slurm";
  found.nodes_from = has_own ? "SLURM_STEP_NUM_NODES" : "SLURM_NNODES";
  found.node_rank_from = "SLURM_NODEID";
  LOCKSTEP_TRY_ASSIGN(const auto nodes, number_in(facts, found.nodes_from.c_str()));
  LOCKSTEP_TRY_ASSIGN(const auto tasks,
                      number_in(facts, has_own ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS"));
  LOCKSTEP_TRY_ASSIGN(const auto rank, number_in(facts, "SLURM_NODEID"));
  if (!nodes || !rank) return std::nullopt;
  found.nodes = *nodes;
  found.node_rank = *rank;
  found.one_task_per_node = tasks.value_or(*nodes) <= *nodes;
  LOCKSTEP_TRY(check_range(found));
  place_slurm_endpoint(facts, *step, found);
  return found;
}

// Takes the ranks of an MPI launcher as nodes, if it started one per node.
Result<std::optional<Placement>> read_ranks(const Facts& facts, std::string scheduler,
                                            const char* size_name, const char* rank_name,
                                            const char* local_size_name) {
  LOCKSTEP_TRY_ASSIGN(const auto size, number_in(facts, size_name));
  LOCKSTEP_TRY_ASSIGN(const auto rank, number_in(facts, rank_name));
  LOCKSTEP_TRY_ASSIGN(const auto local, number_in(facts, local_size_name));
  if (!size || !rank || !local) return std::nullopt;
  Placement found;
  found.scheduler = std::move(scheduler);
  found.nodes = *size;
  found.node_rank = *rank;
  found.one_task_per_node = *local <= 1;
  found.nodes_from = size_name;
  found.node_rank_from = rank_name;
  LOCKSTEP_TRY(check_range(found));
  return found;
}

// Takes the first node of a Slurm job as the place to meet. If mpirun runs on all nodes of the job,
// that node takes part.
void borrow_slurm_host(const Facts& facts, Placement& found) {
  take_hosts(facts, "SLURM_JOB_NODELIST", found);
  const auto job = slurm_job(facts);
  found.port = job ? derived_port(*job, 0) : kDefaultPort;
}

// Reads RANK and WORLD_SIZE of Kubernetes operators. Volcano, and Kubeflow before it set PET_*,
// count pods there. Workers get variables of the same names, and later versions of Kubeflow count
// workers in WORLD_SIZE. The conditions tell these cases apart.
Result<std::optional<Placement>> read_kubernetes(const Facts& facts) {
  for (const char* other : {"LOCAL_RANK", "PET_NODE_RANK", "PET_NPROC_PER_NODE"})
    if (facts.env(other)) return std::nullopt;
  const auto addr = facts.env("MASTER_ADDR");
  const auto port = parse_int(facts.env("MASTER_PORT").value_or(""));
  if (!facts.env("KUBERNETES_SERVICE_HOST") || !addr || !port || *port < 1 || *port > 65535)
    return std::nullopt;
  LOCKSTEP_TRY_ASSIGN(const auto size, number_in(facts, "WORLD_SIZE"));
  LOCKSTEP_TRY_ASSIGN(const auto rank, number_in(facts, "RANK"));
  if (!size || !rank) return std::nullopt;
  Placement found;
  found.scheduler = "Kubernetes";
  found.nodes = *size;
  found.node_rank = *rank;
  found.nodes_from = "WORLD_SIZE";
  found.node_rank_from = "RANK";
  LOCKSTEP_TRY(check_range(found));
  // Some operators set "localhost" on the first pod. Other pods could not connect there.
  if (*addr != "localhost" && !addr->starts_with("127.")) found.host = *addr;
  found.host_from = "MASTER_ADDR, MASTER_PORT";
  found.port = static_cast<int>(*port);
  return found;
}

}  // namespace

Result<std::optional<Placement>> read_placement(const Facts& facts) {
  // Ask Open MPI first: mpirun's daemons may be tasks of a Slurm step, and their ranks see the
  // step's variables, too. For ranks of Hydra and of srun --mpi=pmi2, Slurm's own numbers are as
  // good.
  LOCKSTEP_TRY_ASSIGN(auto found, read_ranks(facts, "Open MPI", "OMPI_COMM_WORLD_SIZE",
                                             "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"));
  if (found) {
    borrow_slurm_host(facts, *found);
    return found;
  }
  LOCKSTEP_TRY_ASSIGN(auto slurm, read_slurm(facts));
  LOCKSTEP_TRY_ASSIGN(auto pmi,
                      read_ranks(facts, "PMI", "PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS"));
  if (slurm) {
    if (pmi && !pmi->one_task_per_node) slurm->one_task_per_node = false;
    return slurm;
  }
  if (pmi) {
    borrow_slurm_host(facts, *pmi);
    return pmi;
  }
  return read_kubernetes(facts);
}

int unused_slurm_nodes(const Facts& facts) {
  if (!facts.env("SLURM_JOB_ID") || facts.env("SLURM_STEP_ID")) return 1;
  const auto text = facts.env("SLURM_JOB_NUM_NODES");
  const auto nodes = text ? parse_int(*text) : std::nullopt;
  return nodes && *nodes > 1 && *nodes <= kMostNodes ? static_cast<int>(*nodes) : 1;
}

}  // namespace lockstep::launch
