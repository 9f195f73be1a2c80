#include "agent/worker_spec.h"

#include <gtest/gtest.h>

#include <signal.h>

namespace lockstep::agent {
namespace {

launch::LaunchConfig two_workers() {
  launch::LaunchConfig config;
  config.nproc = 2;
  config.role = "trainer";
  config.run_id = "job7";
  config.max_restarts = 3;
  config.signals_text = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";
  config.command = {"/usr/bin/python3", "-u", "train.py", "--rank=${local_rank}", "$$x", "${rank}"};
  config.local_rank_argument_at = 3;
  return config;
}

AttemptFacts facts() {
  AttemptFacts out;
  out.error_files = {"/logs/0/error.json", "/logs/1/error.json"};
  return out;
}

Round one_node() {
  Round round;
  round.restarts = 1;
  round.world_size = 2;
  round.role_world_size = 2;
  round.master_addr = "h";
  round.master_port = 1;
  return round;
}

TEST(WorkerSpec, FlightRecordersHaveAFolderOrNoVariables) {
  launch::LaunchConfig config = two_workers();
  config.recorder.variables = {{"PIPE", "rank_", true}, {"SIZE", "2000"}};
  AttemptFacts with = facts();
  with.recorder_folder = "/logs/recorder";
  const auto specs = make_worker_specs(config, one_node(), with, {{"SIZE", "7"}});
  EXPECT_EQ(specs[1].env.at("PIPE"), "/logs/recorder/rank_");
  EXPECT_EQ(specs[1].env.at("SIZE"), "7");
  EXPECT_FALSE(make_worker_specs(config, one_node(), facts(), {})[1].env.contains("PIPE"));
}

TEST(WorkerSpec, JaxGetsItsOwnVariables) {
  launch::LaunchConfig config = two_workers();
  config.framework = launch::Framework::jax;
  Round round = one_node();
  round.base_rank = 2;
  round.world_size = 4;
  round.master_addr = "fe80::1";
  const auto specs = make_worker_specs(config, round, facts(), {});
  EXPECT_EQ(specs[1].env.at("JAX_COORDINATOR_ADDRESS"), "[fe80::1]:1");
  EXPECT_EQ(specs[1].env.at("JAX_NUM_PROCESSES"), "4");
  EXPECT_EQ(specs[1].env.at("JAX_PROCESS_ID"), "3");
  EXPECT_EQ(specs[1].env.at("JAX_LOCAL_DEVICE_IDS"), "1");
  EXPECT_EQ(specs[1].env.at("TORCHELASTIC_USE_AGENT_STORE"), "False");
  EXPECT_EQ(make_worker_specs(config, round, facts(), {{"JAX_LOCAL_DEVICE_IDS", "5"}})[1].env.at(
                "JAX_LOCAL_DEVICE_IDS"),
            "5")
      << "the user's own";
  config.virtual_local_rank = true;
  EXPECT_EQ(make_worker_specs(config, round, facts(), {})[1].env.at("JAX_LOCAL_DEVICE_IDS"), "0");
  config.virtual_local_rank = false;
  config.nproc = 1;
  EXPECT_FALSE(
      make_worker_specs(config, round, facts(), {})[0].env.contains("JAX_LOCAL_DEVICE_IDS"))
      << "one process has all devices of its node";
}

TEST(WorkerSpec, TheAidStandsFirstOnPythonsPath) {
  AttemptFacts with = facts();
  with.aid_folder = "/tmp/aid";
  const auto path = [](const AttemptFacts& given, const Environment& inherited) {
    const Environment env = make_worker_specs(two_workers(), one_node(), given, inherited)[1].env;
    const auto found = env.find("PYTHONPATH");
    return found == env.end() ? "none" : found->second;
  };
  EXPECT_EQ(path(with, {{"PYTHONPATH", "/a:/b"}}), "/tmp/aid:/a:/b");
  // An empty entry would be the current folder.
  EXPECT_EQ(path(with, {{"PYTHONPATH", ""}}), "/tmp/aid");
  EXPECT_EQ(path(with, {}), "/tmp/aid");
  EXPECT_EQ(path(facts(), {{"PYTHONPATH", "/a"}}), "/a");
  EXPECT_EQ(path(facts(), {}), "none");
}

TEST(WorkerSpec, SlotsBringDeepspeedsVariables) {
  launch::LaunchConfig config = two_workers();
  config.slots = "1,3";
  Round round = one_node();
  round.group_rank = 2;
  round.group_world_size = 3;
  const auto specs = make_worker_specs(config, round, facts(), {{"CUDA_VISIBLE_DEVICES", "7"}});
  ASSERT_EQ(specs.size(), 2U);
  for (const WorkerSpec& spec : specs) {
    EXPECT_EQ(spec.env.at("CUDA_VISIBLE_DEVICES"), "1,3");
    EXPECT_EQ(spec.env.at("CROSS_RANK"), "2");
    EXPECT_EQ(spec.env.at("CROSS_SIZE"), "3");
    EXPECT_EQ(spec.env.at("LOCAL_SIZE"), "2");
  }
}

// Slurm's node 2 of three trains as the second node of two.
TEST(WorkerSpec, SlurmsSparesAreNotCounted) {
  Round round = one_node();
  round.group_rank = 1;
  round.group_world_size = 2;
  Environment job = {{"SLURM_NNODES", "3"},         {"SLURM_JOB_NUM_NODES", "3"},
                     {"SLURM_NTASKS", "3"},         {"SLURM_TASKS_PER_NODE", "1(x3)"},
                     {"SLURM_NODEID", "2"},         {"SLURM_PROCID", "2"},
                     {"SLURM_STEP_NUM_NODES", "3"}, {"SLURM_STEP_NUM_TASKS", "3"}};
  const Environment env = make_worker_specs(two_workers(), round, facts(), job).at(0).env;
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"SLURM_NNODES", "2"},
                                          {"SLURM_JOB_NUM_NODES", "2"},
                                          {"SLURM_NTASKS", "2"},
                                          {"SLURM_TASKS_PER_NODE", "1(x2)"},
                                          {"SLURM_NODEID", "1"},
                                          {"SLURM_PROCID", "1"},
                                          {"SLURM_STEP_NUM_NODES", "3"}})
    EXPECT_EQ(env.at(name), value) << name;
  EXPECT_FALSE(env.contains("SLURM_NPROCS"));
  // Nothing is rewritten if all nodes of the step train, or if the step's tasks are not agents.
  for (const auto& [name, value] :
       {std::pair{"SLURM_STEP_NUM_NODES", "2"}, {"SLURM_STEP_NUM_TASKS", "6"}}) {
    Environment other = job;
    other[name] = value;
    EXPECT_EQ(make_worker_specs(two_workers(), round, facts(), other).at(0).env.at("SLURM_NODEID"),
              "2");
  }
}

TEST(WorkerSpec, EnvironmentIsPyTorchs) {
  launch::LaunchConfig config = two_workers();
  Round round = one_node();
  round.master_addr = "127.0.0.1";
  round.master_port = 41000;
  round.base_rank = 4;
  round.world_size = 6;
  round.group_rank = 2;
  round.group_world_size = 3;
  round.role_base_rank = 1;
  round.role_world_size = 4;
  const auto specs =
      make_worker_specs(config, round, facts(), {{"HOME", "/root"}, {"RANK", "stale"}});
  ASSERT_EQ(specs.size(), 2U);
  const Environment want = {
      {"HOME", "/root"},
      {"LOCAL_RANK", "1"},
      {"RANK", "5"},
      {"GROUP_RANK", "2"},
      {"ROLE_RANK", "2"},
      {"ROLE_NAME", "trainer"},
      {"LOCAL_WORLD_SIZE", "2"},
      {"WORLD_SIZE", "6"},
      {"GROUP_WORLD_SIZE", "3"},
      {"ROLE_WORLD_SIZE", "4"},
      {"MASTER_ADDR", "127.0.0.1"},
      {"MASTER_PORT", "41000"},
      {"TORCHELASTIC_RESTART_COUNT", "1"},
      {"TORCHELASTIC_MAX_RESTARTS", "3"},
      {"TORCHELASTIC_RUN_ID", "job7"},
      {"TORCHELASTIC_USE_AGENT_STORE", "True"},
      {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"},
      {"TORCHELASTIC_ERROR_FILE", "/logs/1/error.json"},
      {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
  };
  EXPECT_EQ(specs[1].env, want);
  EXPECT_EQ(specs[1].rank, 5);
}

TEST(WorkerSpec, WhatTheUserSetIsKept) {
  launch::LaunchConfig config = two_workers();
  config.omp_num_threads = "1";
  const auto specs =
      make_worker_specs(config, one_node(), facts(),
                        {{"OMP_NUM_THREADS", "3"}, {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"}});
  EXPECT_EQ(specs[0].env.at("OMP_NUM_THREADS"), "3");
  EXPECT_EQ(specs[0].env.at("TORCH_NCCL_ASYNC_ERROR_HANDLING"), "0");
}

TEST(WorkerSpec, ArgumentsAreTemplates) {
  const auto specs = make_worker_specs(two_workers(), one_node(), facts(), {});
  EXPECT_EQ(specs[1].argv, (std::vector<std::string>{"/usr/bin/python3", "-u", "train.py",
                                                     "--rank=1", "$x", "${rank}"}));
}

TEST(WorkerSpec, LegacyLaunchPassesTheLocalRank) {
  launch::LaunchConfig config = two_workers();
  config.local_rank_argument = launch::LocalRankArgument::dash;
  const Round round = one_node();
  EXPECT_EQ(make_worker_specs(config, round, facts(), {})[1].argv.at(3), "--local-rank=1");
  config.local_rank_argument = launch::LocalRankArgument::underscore;
  EXPECT_EQ(make_worker_specs(config, round, facts(), {})[0].argv.at(3), "--local_rank=0");
}

TEST(WorkerSpec, VirtualLocalRankGivesEachWorkerOneDevice) {
  launch::LaunchConfig config = two_workers();
  config.virtual_local_rank = true;
  const Round round = one_node();
  const auto listed = make_worker_specs(config, round, facts(), {{"CUDA_VISIBLE_DEVICES", "4, 7"}});
  EXPECT_EQ(listed[1].env.at("CUDA_VISIBLE_DEVICES"), "7");
  EXPECT_EQ(listed[1].env.at("LOCAL_RANK"), "0");
  EXPECT_EQ(make_worker_specs(config, round, facts(), {})[1].env.at("CUDA_VISIBLE_DEVICES"), "1");
}

}  // namespace
}  // namespace lockstep::agent
