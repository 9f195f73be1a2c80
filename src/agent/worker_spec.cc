// Builds the command line and the environment of each worker.
#include "agent/worker_spec.h"

#include "base/text.h"
#include "codec/python_template.h"
#include "io/place_text.h"
#include "proc/leftovers.h"

namespace lockstep::agent {

namespace {

// Variables that DeepSpeed's launcher sets beside PyTorch's own.
void add_deepspeed(const launch::LaunchConfig& config, const Round& round, Environment& env) {
  env["CUDA_VISIBLE_DEVICES"] = *config.slots;
  env["CROSS_RANK"] = std::to_string(round.group_rank);
  env["CROSS_SIZE"] = std::to_string(round.group_world_size);
  env["LOCAL_SIZE"] = std::to_string(config.nproc);
}

// Variables for jax.distributed.initialize() (jax/_src/distributed.py). JAX gives all devices of a
// node to each process unless local_device_ids says otherwise.
void add_jax(const launch::LaunchConfig& config, const Round& round, WorkerSpec& spec) {
  spec.env["JAX_COORDINATOR_ADDRESS"] = io::place_text(round.master_addr, round.master_port);
  spec.env["JAX_NUM_PROCESSES"] = std::to_string(round.world_size);
  spec.env["JAX_PROCESS_ID"] = std::to_string(spec.rank);
  if (config.nproc > 1)
    spec.env.try_emplace("JAX_LOCAL_DEVICE_IDS",
                         config.virtual_local_rank ? "0" : std::to_string(spec.local_rank));
}

// Slurm counts a job's spares, too, and numbers nodes by their place in the job. Rewrite Slurm's
// variables so that ranks see only training nodes. Applies only if Slurm started one agent on each
// node and the step has more nodes than this round.
void count_as_slurm(const Round& round, Environment& env) {
  const auto number = [&](const char* name) {
    const auto found = env.find(name);
    return found == env.end() ? std::nullopt : parse_int(found->second);
  };
  const auto nodes = number("SLURM_STEP_NUM_NODES");
  const auto tasks = number("SLURM_STEP_NUM_TASKS");
  if (!nodes || !tasks || *nodes != *tasks || *nodes <= round.group_world_size) return;
  const std::string count = std::to_string(round.group_world_size);
  const auto replace = [&](const char* name, const std::string& value) {
    if (const auto found = env.find(name); found != env.end()) found->second = value;
  };
  for (const char* name : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES", "SLURM_NTASKS", "SLURM_NPROCS"})
    replace(name, count);
  replace("SLURM_TASKS_PER_NODE", round.group_world_size == 1 ? "1" : "1(x" + count + ")");
  for (const char* name : {"SLURM_NODEID", "SLURM_PROCID", "SLURM_GTIDS"})
    replace(name, std::to_string(round.group_rank));
}

// Variables that are the same for all workers of the attempt.
Environment shared_environment(const launch::LaunchConfig& config, const Round& round,
                               const AttemptFacts& facts, const Environment& inherited) {
  Environment env = inherited;
  count_as_slurm(round, env);
  env["GROUP_RANK"] = std::to_string(round.group_rank);
  env["ROLE_NAME"] = config.role;
  env["LOCAL_WORLD_SIZE"] = std::to_string(config.nproc);
  env["WORLD_SIZE"] = std::to_string(round.world_size);
  env["GROUP_WORLD_SIZE"] = std::to_string(round.group_world_size);
  env["ROLE_WORLD_SIZE"] = std::to_string(round.role_world_size);
  env["MASTER_ADDR"] = round.master_addr;
  env["MASTER_PORT"] = std::to_string(round.master_port);
  env["TORCHELASTIC_RESTART_COUNT"] = std::to_string(round.restarts);
  env["TORCHELASTIC_MAX_RESTARTS"] = std::to_string(config.max_restarts);
  env["TORCHELASTIC_RUN_ID"] = config.run_id;
  // Workers compare with Python's spelling of the booleans.
  const bool store = round.use_agent_store && config.framework == launch::Framework::torch;
  env["TORCHELASTIC_USE_AGENT_STORE"] = store ? "True" : "False";
  env["TORCHELASTIC_SIGNALS_TO_HANDLE"] = config.signals_text;
  // torchrun sets these two only if the user has not.
  env.try_emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  if (config.omp_num_threads) env.try_emplace("OMP_NUM_THREADS", *config.omp_num_threads);
  if (config.slots) add_deepspeed(config, round, env);
  if (!facts.recorder_folder.empty())
    for (const auto& [name, value, in_folder] : config.recorder.variables)
      env.try_emplace(name, in_folder ? facts.recorder_folder + "/" + value : value);
  if (!facts.aid_folder.empty()) {
    const std::string users = env["PYTHONPATH"];
    env["PYTHONPATH"] = users.empty() ? facts.aid_folder : facts.aid_folder + ":" + users;
  }
  if (!facts.agent_tag.empty()) env[proc::kAgentTag] = facts.agent_tag;
  return env;
}

// Implements --virtual-local-rank: every worker sees LOCAL_RANK 0 and a single device.
void virtualise(Environment& env, int local_rank) {
  env["LOCAL_RANK"] = "0";
  const auto visible = env.find("CUDA_VISIBLE_DEVICES");
  if (visible == env.end()) {
    env["CUDA_VISIBLE_DEVICES"] = std::to_string(local_rank);
    return;
  }
  const auto devices = split(visible->second, ',');  // long enough: launch_config has checked
  const auto index = static_cast<std::size_t>(local_rank);
  if (index < devices.size()) visible->second = std::string(strip(devices[index]));
}

std::vector<std::string> worker_argv(const launch::LaunchConfig& config, int local_rank) {
  const std::string rank = std::to_string(local_rank);
  std::vector<std::string> argv = config.command;
  if (config.substitute)
    // argv[0] stays untouched: torchrun substitutes in arguments only.
    for (std::size_t i = 1; i < argv.size(); ++i)
      argv[i] = codec::substitute(argv[i], {{"local_rank", rank}});
  // torch.distributed.launch inserts the rank right after the script, spelled with a dash since
  // PyTorch 2.0 and with an underscore before.
  const auto at = argv.begin() + static_cast<std::ptrdiff_t>(config.local_rank_argument_at);
  if (config.local_rank_argument == launch::LocalRankArgument::dash)
    argv.insert(at, "--local-rank=" + rank);
  if (config.local_rank_argument == launch::LocalRankArgument::underscore)
    argv.insert(at, "--local_rank=" + rank);
  return argv;
}

}  // namespace

std::vector<WorkerSpec> make_worker_specs(const launch::LaunchConfig& config, const Round& round,
                                          const AttemptFacts& facts, const Environment& inherited) {
  const Environment shared = shared_environment(config, round, facts, inherited);
  std::vector<WorkerSpec> specs;
  for (int local_rank = 0; local_rank < config.nproc; ++local_rank) {
    WorkerSpec spec;
    spec.local_rank = local_rank;
    spec.rank = round.base_rank + local_rank;
    spec.argv = worker_argv(config, local_rank);
    spec.env = shared;
    spec.env["LOCAL_RANK"] = std::to_string(local_rank);
    spec.env["RANK"] = std::to_string(spec.rank);
    spec.env["ROLE_RANK"] = std::to_string(round.role_base_rank + local_rank);
    spec.env["TORCHELASTIC_ERROR_FILE"] =
        facts.error_files.at(static_cast<std::size_t>(local_rank));
    if (config.virtual_local_rank) virtualise(spec.env, local_rank);
    if (config.framework == launch::Framework::jax) add_jax(config, round, spec);
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::vector<std::string> environment_block(const Environment& env) {
  std::vector<std::string> block;
  block.reserve(env.size());
  for (const auto& [name, value] : env)
    block.push_back(std::string(name).append("=").append(value));
  return block;
}

Environment environment_of(const char* const* environ) {
  Environment env;
  for (; *environ != nullptr; ++environ) {
    const std::string_view entry = *environ;
    const std::size_t equals = entry.find('=');
    // A broken entry without '=' cannot be passed on by name. A later duplicate of a name loses, as
    // with getenv().
    if (equals == std::string_view::npos) continue;
    env.try_emplace(std::string(entry.substr(0, equals)), entry.substr(equals + 1));
  }
  return env;
}

}  // namespace lockstep::agent
