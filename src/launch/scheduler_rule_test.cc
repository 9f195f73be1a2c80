// Values taken from a scheduler's variables, and cases where none are taken.
#include "launch/scheduler_rule.h"

#include "base/text.h"
#include "launch/backend_row.h"
#include "launch/launch_testing.h"

#include <gtest/gtest.h>

namespace lockstep::launch {
namespace {

using Env = std::map<std::string, std::string>;

// One task of `srun -N2 --exclude=n2` in a job of four nodes.
Env slurm(const char* node_id = "1") {
  return {{"SLURM_JOB_ID", "123"},
          {"SLURM_JOB_NUM_NODES", "4"},
          {"SLURM_JOB_NODELIST", "n[1-4]"},
          {"SLURM_NNODES", "2"},
          {"SLURM_NTASKS", "2"},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_STEP_NUM_NODES", "2"},
          {"SLURM_STEP_NUM_TASKS", "2"},
          {"SLURM_STEP_NODELIST", "n[1,3]"},
          {"SLURM_PROCID", node_id},
          {"SLURM_NODEID", node_id}};
}

Env open_mpi() {
  return {{"OMPI_COMM_WORLD_SIZE", "2"},
          {"OMPI_COMM_WORLD_RANK", "1"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}};
}

Env kubernetes() {
  return {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
          {"MASTER_ADDR", "job-master-0"},
          {"MASTER_PORT", "23456"},
          {"WORLD_SIZE", "3"},
          {"RANK", "2"}};
}

Env with(Env env, const Env& more) {
  for (const auto& [name, value] : more) {
    if (value == "-") env.erase(name);
    if (value != "-") env[name] = value;
  }
  return env;
}

Result<LaunchConfig> made(const Env& env, Change change = unchanged) {
  Machine machine;
  machine.env = env;
  return make(change, machine);
}

std::string warnings(const LaunchConfig& config) {
  return join(config.warnings, "|");
}

TEST(Scheduler, ATaskOfAStepKnowsItsNodes) {
  const auto config = made(slurm());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->min_nodes, 2);
  EXPECT_EQ(config->max_nodes, 2);
  EXPECT_EQ(config->node_rank, 1);
  EXPECT_TRUE(config->node_rank_given);
  EXPECT_EQ(config->rank_order, rendezvous::RankOrder::node_rank);
  EXPECT_EQ(config->backend->name, "lockstep");
  EXPECT_EQ(config->rdzv_endpoint, "n1:20123");
  EXPECT_EQ(config->run_id, "123.0");
  EXPECT_EQ(config->job_name, "");
  EXPECT_EQ(config->scheduler, "Slurm");
  EXPECT_EQ(config->scheduler_hosts, (Words{"n1", "n3"}));
  EXPECT_EQ(warnings(*config),
            "taken from Slurm (step 123.0): --nnodes 2 (SLURM_STEP_NUM_NODES), --node-rank 1 "
            "(SLURM_NODEID), --rdzv-endpoint n1:20123 (SLURM_STEP_NODELIST), --rdzv-id 123.0 "
            "(SLURM_JOB_ID, SLURM_STEP_ID)");
  EXPECT_EQ(config->origins.at("nnodes").kind, Origin::Kind::scheduler);
}

TEST(Scheduler, WhatIsGivenCounts) {
  const auto endpoint = made(slurm(), [](RawOptions& raw) {
    raw.rdzv_endpoint = "other:7";
    raw.rdzv_id = "mine";
  });
  ASSERT_TRUE(endpoint) << endpoint.error().message;
  EXPECT_EQ(endpoint->backend->name, "lockstep");
  EXPECT_EQ(endpoint->rdzv_endpoint, "other:7");
  EXPECT_EQ(endpoint->run_id, "mine");
  EXPECT_EQ(endpoint->max_nodes, 2);
  const auto elastic = made(slurm(), [](RawOptions& raw) { raw.nnodes = "1:2"; });
  ASSERT_TRUE(elastic) << elastic.error().message;
  EXPECT_EQ(elastic->min_nodes, 1);
  EXPECT_EQ(elastic->rdzv_endpoint, "n1:20123");
  const auto order = made(slurm(), [](RawOptions& raw) { raw.rank_order = "host"; });
  EXPECT_EQ(order->rank_order, rendezvous::RankOrder::host);
  const auto address = made(slurm(), [](RawOptions& raw) { raw.master_port = 99; });
  ASSERT_TRUE(address) << address.error().message;
  EXPECT_EQ(address->backend->name, "static");
  EXPECT_EQ(address->rdzv_endpoint, "n1:99");
  EXPECT_EQ(address->node_rank, 1);
}

TEST(Scheduler, AJobThatIsLargerThanItsStepHearsWhyItHasNoEndpoint) {
  const auto larger = made(slurm(), [](RawOptions& raw) { raw.nnodes = "3"; });
  ASSERT_FALSE(larger);
  EXPECT_EQ(larger.error().message,
            "3 nodes need a place to meet, and Slurm's step 123.0 has 2 (SLURM_STEP_NUM_NODES), so "
            "its own is not taken");
}

TEST(Scheduler, SparesAreNodesOfTheStepThatDoNotTrain) {
  const Env three = with(slurm("2"), {{"SLURM_STEP_NUM_NODES", "3"},
                                      {"SLURM_STEP_NUM_TASKS", "3"},
                                      {"SLURM_STEP_NODELIST", "n[1-3]"}});
  const auto config = made(three, [](RawOptions& raw) { raw.spares = 1; });
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->min_nodes, 2);
  EXPECT_EQ(config->max_nodes, 2);
  EXPECT_EQ(config->spares, 1);
  EXPECT_EQ(config->scheduler_hosts.size(), 3U);
  EXPECT_NE(warnings(*config).find("--nnodes 2 (SLURM_STEP_NUM_NODES less --spares 1)"),
            std::string::npos)
      << warnings(*config);
  const auto given = made(three, [](RawOptions& raw) {
    raw.spares = 2;
    raw.nnodes = "1";
  });
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_EQ(given->max_nodes, 1);
  EXPECT_FALSE(given->private_store);
  EXPECT_EQ(given->backend->name, "lockstep");
  EXPECT_EQ(given->rdzv_endpoint, "n1:20123");
  // More nodes than announced are spares without a word.
  const auto silent = made(three, [](RawOptions& raw) { raw.nnodes = "2"; });
  ASSERT_TRUE(silent) << silent.error().message;
  EXPECT_EQ(silent->max_nodes, 2);
  EXPECT_EQ(silent->node_rank, 2);
  EXPECT_EQ(silent->rdzv_endpoint, "n1:20123");
  const auto one_left = made(three, [](RawOptions& raw) { raw.spares = 2; });
  ASSERT_TRUE(one_left) << one_left.error().message;
  EXPECT_EQ(one_left->max_nodes, 1);
  EXPECT_FALSE(one_left->alone());
  EXPECT_EQ(one_left->backend->name, "lockstep");
}

TEST(Scheduler, SparesThatAreNotThereAreRefused) {
  const struct {
    Env env;
    Change change;
    const char* message;
  } rows[] = {
      {slurm(), [](RawOptions& raw) { raw.spares = 2; },
       "--spares 2 leaves too few nodes: Slurm's step 123.0 has 2 (SLURM_STEP_NUM_NODES), and the "
       "job needs at least 1"},
      {slurm(),
       [](RawOptions& raw) {
         raw.spares = 1;
         raw.nnodes = "2";
       },
       "--spares 1 leaves too few nodes: Slurm's step 123.0 has 2 (SLURM_STEP_NUM_NODES), and the "
       "job needs at least 2"},
      {{},
       [](RawOptions& raw) { raw.spares = 1; },
       "--spares 1: no scheduler says how many nodes there are"},
      {slurm(), [](RawOptions& raw) { raw.spares = -1; },
       "--spares must be a number of nodes from 0 to 32000, got -1"},
      {slurm(),
       [](RawOptions& raw) {
         raw.spares = 1;
         raw.rdzv_backend = "static";
       },
       "--spares: the static backend gives every node its rank beforehand and has no spares"},
      {slurm(),
       [](RawOptions& raw) {
         raw.spares = 1;
         raw.standalone = true;
       },
       "--standalone is for one node, which has no spares"},
  };
  for (const auto& row : rows) {
    const auto config = made(row.env, row.change);
    ASSERT_FALSE(config) << row.message;
    EXPECT_EQ(config.error().message, row.message);
  }
}

TEST(Scheduler, TorchrunsBackendsKeepTheRunIdOfTorchrun) {
  const auto config = made(slurm(), [](RawOptions& raw) { raw.rdzv_backend = "c10d"; });
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->run_id, "none");
  EXPECT_EQ(config->rdzv_endpoint, "n1:20123");
  EXPECT_FALSE(config->node_rank_given);
  const auto etcd = made(slurm(), [](RawOptions& raw) { raw.rdzv_backend = "etcd3"; });
  ASSERT_TRUE(etcd) << etcd.error().message;
  EXPECT_EQ(etcd->run_id, "123.0");
  EXPECT_EQ(etcd->rdzv_endpoints.at(0).host, "localhost");
}

TEST(Scheduler, IsNotAskedWhereOthersWouldNeverCome) {
  const struct {
    const char* what;
    Env env;
    Change change = unchanged;
    const char* warning = "";
  } rows[] = {
      {"no scheduler", {}},
      {"batch script",
       with(slurm("0"), {{"SLURM_STEP_ID", "-"},
                         {"SLURM_STEP_NUM_NODES", "-"},
                         {"SLURM_STEP_NUM_TASKS", "-"},
                         {"SLURM_STEP_NODELIST", "-"},
                         {"SLURM_NNODES", "4"}}),
       unchanged, "Slurm gave this job 4 nodes, but this is none of srun's tasks"},
      {"salloc's shell on a node",
       with(slurm("0"), {{"SLURM_STEP_ID", "4294967290"}, {"SLURM_STEP_NUM_NODES", "1"}})},
      {"srun --pty", with(slurm("0"), {{"SLURM_PTY_PORT", "4711"}})},
      {"one node",
       with(slurm("0"), {{"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_STEP_NUM_TASKS", "1"}})},
      {"inside a worker", with(slurm(), {{"TORCHELASTIC_RUN_ID", "x"}})},
      {"standalone", slurm(), [](RawOptions& raw) { raw.standalone = true; }},
      {"one node asked for", slurm(), [](RawOptions& raw) { raw.nnodes = "1"; }},
      {"called torchrun", slurm(), [](RawOptions& raw) { raw.called_torchrun = true; }},
      {"lockstep launch", slurm(),
       [](RawOptions& raw) {
         raw.legacy_launch = true;
         raw.use_env = true;
       },
       "lockstep launch stands in"},
      {"Open MPI's single process",
       with(open_mpi(), {{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}})},
      {"PMI without locality", {{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}}},
      {"a worker's RANK", with(kubernetes(), {{"LOCAL_RANK", "0"}})},
      {"RANK outside of Kubernetes", with(kubernetes(), {{"KUBERNETES_SERVICE_HOST", "-"}})},
      {"WORLD_SIZE may count workers", with(kubernetes(), {{"PET_NPROC_PER_NODE", "8"}})},
  };
  for (const auto& row : rows) {
    const auto config = made(row.env, row.change);
    ASSERT_TRUE(config) << row.what << ": " << config.error().message;
    EXPECT_EQ(config->max_nodes, 1) << row.what;
    EXPECT_TRUE(config->private_store) << row.what;
    EXPECT_TRUE(config->scheduler.empty()) << row.what;
    EXPECT_EQ(warnings(*config).substr(0, std::string_view(row.warning).size()), row.warning);
    EXPECT_EQ(config->warnings.empty(), *row.warning == '\0') << row.what << warnings(*config);
  }
}

TEST(Scheduler, SeveralTasksOnANodeAreRefused) {
  const Env rows[] = {
      with(slurm(), {{"SLURM_STEP_NUM_TASKS", "16"}}),
      with(slurm("0"), {{"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_STEP_NUM_TASKS", "8"}}),
      with(open_mpi(), {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}),
      {{"PMI_SIZE", "4"}, {"PMI_RANK", "3"}, {"MPI_LOCALNRANKS", "2"}},
      with(slurm(), {{"PMI_SIZE", "4"}, {"PMI_RANK", "3"}, {"MPI_LOCALNRANKS", "2"}}),
  };
  for (const Env& env : rows) {
    const auto config = made(env);
    ASSERT_FALSE(config);
    EXPECT_NE(config.error().message.find("started several tasks on a node"), std::string::npos)
        << config.error().message;
    // The number of nodes or an endpoint given by the user counts.
    EXPECT_TRUE(made(env, [](RawOptions& raw) { raw.nnodes = "1"; }));
    const auto meant = made(env, [](RawOptions& raw) {
      raw.nnodes = "4";
      raw.rdzv_endpoint = "h";
    });
    ASSERT_TRUE(meant) << meant.error().message;
    EXPECT_FALSE(meant->node_rank_given);
  }
}

TEST(Scheduler, VariablesThatMakeNoSenseAreNamed) {
  const struct {
    Env env;
    const char* words;
  } rows[] = {
      {with(slurm(), {{"SLURM_NODEID", "x"}}), "SLURM_NODEID=x must be a number"},
      {with(slurm(), {{"SLURM_STEP_NUM_NODES", "-1"}}), "SLURM_STEP_NUM_NODES=-1 must be a number"},
      {with(slurm(), {{"SLURM_NODEID", "2"}}), "Slurm says node 2 of 2"},
      {with(open_mpi(), {{"OMPI_COMM_WORLD_RANK", "5"}}), "Open MPI says node 5 of 2"},
      {with(open_mpi(), {{"OMPI_COMM_WORLD_SIZE", "99999999999"}}), "must be a number"},
      {with(kubernetes(), {{"RANK", "3"}}), "Kubernetes says node 3 of 3"},
      {with(kubernetes(), {{"WORLD_SIZE", ""}}), "WORLD_SIZE= must be a number"},
  };
  for (const auto& row : rows) {
    const auto config = made(row.env);
    ASSERT_FALSE(config) << row.words;
    EXPECT_NE(config.error().message.find(row.words), std::string::npos) << config.error().message;
  }
  // An unreadable list of nodes matters only where the list is needed.
  const Env odd = with(slurm(), {{"SLURM_STEP_NODELIST", "n["}});
  const auto config = made(odd);
  ASSERT_FALSE(config);
  EXPECT_NE(config.error().message.find("2 nodes need a place to meet, which Slurm does not name"),
            std::string::npos)
      << config.error().message;
  EXPECT_TRUE(made(odd, [](RawOptions& raw) { raw.rdzv_endpoint = "h"; }));
}

TEST(Scheduler, AHeterogeneousJobIsOneWorld) {
  const auto config = made(with(slurm("2"), {{"SLURM_HET_SIZE", "2"},
                                             {"SLURM_NNODES", "3"},
                                             {"SLURM_NTASKS", "3"},
                                             {"SLURM_JOB_NODELIST", "n[1-3]"}}));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->max_nodes, 3);
  EXPECT_EQ(config->rdzv_endpoint, "n1:20123");
}

TEST(Scheduler, PortsOfJobsThatMayShareANodeDiffer) {
  const auto port = [](const char* job, const char* step) {
    return made(with(slurm(), {{"SLURM_JOB_ID", job}, {"SLURM_STEP_ID", step}}))
        ->rdzv_endpoints.at(0)
        .port;
  };
  EXPECT_NE(port("100", "0"), port("101", "0"));
  EXPECT_NE(port("100", "0"), port("100", "1"));
  for (const char* job : {"0", "8998", "8999", "4294967295", "9000000000000000000"}) {
    EXPECT_GE(port(job, "4294967279"), 20000) << job;
    EXPECT_LT(port(job, "4294967279"), 29000) << job;
  }
  EXPECT_EQ(made(with(slurm(), {{"SLURM_JOB_ID", "-"}}))->rdzv_endpoint, "n1:29400");
}

TEST(Scheduler, ARequeuedJobHasAnotherRunId) {
  EXPECT_EQ(made(with(slurm(), {{"SLURM_RESTART_COUNT", "2"}}))->run_id, "123.0.r2");
}

TEST(Scheduler, MpiRanksOnePerNode) {
  const auto nowhere = made(open_mpi());
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().message.find("which Open MPI does not name"), std::string::npos);
  const Change there = [](RawOptions& raw) { raw.rdzv_endpoint = "h"; };
  const auto config = made(open_mpi(), there);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->max_nodes, 2);
  EXPECT_EQ(config->node_rank, 1);
  EXPECT_EQ(warnings(*config),
            "taken from Open MPI: --nnodes 2 (OMPI_COMM_WORLD_SIZE), --node-rank 1 "
            "(OMPI_COMM_WORLD_RANK)");
  // mpirun's daemons may be tasks of a step on other nodes: Open MPI's numbers count.
  const Env both = with(open_mpi(), with(slurm("0"), {{"SLURM_STEP_NUM_NODES", "1"}}));
  EXPECT_EQ(made(both, there)->node_rank, 1);
  EXPECT_FALSE(made(both));  // mpirun uses two of the job's four nodes: which?
  const auto all = made(with(both, {{"SLURM_JOB_NODELIST", "n[1-2]"}}));
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->rdzv_endpoint, "n1:20123");
  const auto pmi = made({{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}, {"MPI_LOCALNRANKS", "1"}}, there);
  ASSERT_TRUE(pmi) << pmi.error().message;
  EXPECT_EQ(pmi->scheduler, "PMI");
  EXPECT_EQ(pmi->max_nodes, 2);
}

TEST(Scheduler, KubernetesPodsWithoutPetVariables) {
  const auto config = made(kubernetes());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->max_nodes, 3);
  EXPECT_EQ(config->node_rank, 2);
  EXPECT_EQ(config->backend->name, "lockstep");
  EXPECT_EQ(config->rdzv_endpoint, "job-master-0:23456");
  EXPECT_FALSE(made(with(kubernetes(), {{"MASTER_ADDR", "localhost"}})));
}

}  // namespace
}  // namespace lockstep::launch
