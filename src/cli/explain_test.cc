// --explain names every value and its source.
#include "cli/explain.h"

#include "launch/backend_row.h"
#include "launch/facts.h"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

using launch::LaunchConfig;
using launch::Origin;
using launch::Rule;

LaunchConfig sample() {
  LaunchConfig config;
  config.min_nodes = config.max_nodes = 2;
  config.backend = launch::find_backend("lockstep");
  config.rdzv_endpoints = {{"n1", 20001}};
  config.run_id = "7.0";
  config.node_rank = 1;
  config.node_rank_given = true;
  config.private_store = false;
  config.rdzv_token = "do not show";
  config.command = {"/bin/echo", "a b"};
  config.scheduler = "Slurm";
  config.recorder.variables = {{"TORCH_FR_BUFFER_SIZE", "2000"}};
  config.origins["nnodes"] = {Origin::Kind::scheduler, "SLURM_STEP_NUM_NODES"};
  config.origins["rdzv-backend"] = {Origin::Kind::rule, "", Rule::several_nodes};
  config.origins["rdzv-token-file"] = {Origin::Kind::option, ""};
  config.origins["max-restarts"] = {Origin::Kind::variable, "PET_MAX_RESTARTS"};
  return config;
}

std::string row(const std::string& text, const std::string& what) {
  const std::size_t at = text.find("\n" + what);
  if (at == std::string::npos) return {};
  return text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

TEST(Explain, SaysWhereEachValueComesFrom) {
  const std::string text = explain_text(sample());
  const struct {
    const char* what;
    const char* value;
    const char* from;
  } rows[] = {
      {"nodes", " 2 ", "  Slurm: SLURM_STEP_NUM_NODES"},
      {"node rank", " 1 ", "  default"},
      {"backend", " lockstep ", "rule: several nodes, no backend named"},
      {"endpoint", " n1:20001 ", "  default"},
      {"token", " given ", "  option --rdzv-token-file"},
      {"restarts", " 0 ", "  environment variable PET_MAX_RESTARTS"},
      {"log file size", " no limit ", "  default"},
      {"restart backoff", " 30 s ", "  default"},
      {"flight recorder", " TORCH_FR_BUFFER_SIZE=2000 ", "rule: workers are asked in a hang"},
      {"command", "/bin/echo 'a b'", ""},
  };
  for (const auto& expected : rows) {
    const std::string line = row(text, expected.what);
    EXPECT_NE(line.find(expected.value), std::string::npos) << text;
    EXPECT_TRUE(line.ends_with(expected.from)) << text;
  }
  EXPECT_EQ(text.find("do not show"), std::string::npos);
}

// Checks that a row has this value and this source.
testing::AssertionResult says(const LaunchConfig& config, const std::string& what,
                              const std::string& value, const std::string& from) {
  const std::string line = row(explain_text(config), what + "  ");
  if (line.find("  " + value + "  ") != std::string::npos && line.ends_with("  " + from))
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << explain_text(config);
}

// torchrun's protocols have no successor for the node that hosts their store.
TEST(Explain, SaysWhatTheLossOfTheHostMeans) {
  LaunchConfig config = sample();
  config.max_nodes = 3;
  codec::RdzvConf conf;
  const auto lost_host = [&](const char* backend) {
    config.backend = launch::find_backend(backend);
    config.conf = launch::ConfValues::read(config.backend->keys, conf, {}).value();
    return row(explain_text(config), "lost host");
  };
  const auto expect = [&](const char* backend, const std::string& words) {
    EXPECT_NE(lost_host(backend).find("  " + words + "  "), std::string::npos)
        << lost_host(backend);
  };
  config.master_addr = "n1";
  expect("static", "the job ends with node rank 0: torchrun's store stays at n1");
  expect("c10d", "the job ends with the agent at n1: torchrun's store stays there");
  conf["store_type"] = "file";
  expect("c10d", "no node hosts: the rendezvous is in a file");
  conf.clear();
  expect("etcd", "no node hosts: the rendezvous is in etcd");
  expect("etcd-v2", "no node hosts: the rendezvous is in etcd");
  expect("etcd3", "another node is elected through etcd");
  expect("lockstep",
         "from the first round on another node hosts, if more than half of the nodes are left");
  conf["succession_timeout"] = "0";
  expect("lockstep", "the job ends with n1: succession_timeout is 0");
  conf.clear();
  config.rdzv_endpoints = {{"localhost", 20001}};
  expect("lockstep", "the job ends with localhost, the only node listed as a host");
  config.rdzv_endpoints = {{"n1", 20001}, {"n2", 20001}, {"n3", 20001}};
  const std::string next = "the next listed node hosts, if more than half of the nodes are left";
  expect("lockstep", next);
  config.max_nodes = 2;
  // No backend helps a job that needs all of its nodes.
  for (const char* backend : {"static", "c10d", "etcd", "etcd-v2", "etcd3", "lockstep"})
    expect(
        backend,
        "the job ends, as with any node: all are needed, and no spare or other node may take its "
        "place");
  config.max_restarts = 1;
  expect("lockstep",
         "the job ends with n1: of two nodes only the host goes on alone (two hosts of run --on "
         "have a witness)");
  config.spares = 1;
  expect("lockstep", next);
  // All nodes of a scheduler's step are listed.
  config.rdzv_endpoints = {{"n1", 20001}};
  config.scheduler_hosts = {"n1", "n2", "n3"};
  config.origins["rdzv-endpoint"] = {Origin::Kind::scheduler, "SLURM_STEP_NODELIST"};
  expect("lockstep", next);
  config.max_nodes = 1;
  config.spares = 0;
  EXPECT_EQ(lost_host("lockstep"), "") << "one node has no host to lose";
}

TEST(Explain, SaysWherePythonIsFrom) {
  LaunchConfig config = sample();
  EXPECT_EQ(row(explain_text(config), "python"), "");  // --no-python
  config.command = {"/venv/bin/python3", "-u", "T"};
  config.origins["python"] = {Origin::Kind::rule, "", Rule::own_venv};
  EXPECT_TRUE(
      says(config, "python", "/venv/bin/python3", "rule: the virtual environment around lockstep"));
  config.origins["python"] = {Origin::Kind::variable, "PATH"};
  EXPECT_TRUE(says(config, "python", "/venv/bin/python3", "environment variable PATH"));
}

TEST(Explain, SaysWhatIsWatched) {
  LaunchConfig config = sample();
  EXPECT_TRUE(says(config, "health check", "none", "TORCHELASTIC_HEALTH_CHECK_PORT is not set"));
  EXPECT_TRUE(says(config, "hang",
                   "print it when no rank has run for 30 s, or 5 times the longest quiet time",
                   "default"));
  config.hang = {launch::HangConfig::After::given, std::chrono::milliseconds(7500),
                 launch::HangConfig::Then::end};
  config.origins["hang-after"] = {Origin::Kind::option, "hang-after"};
  EXPECT_TRUE(
      says(config, "hang", "end the job when no rank has run for 7.5 s", "option --hang-after"));
  config.hang = {.after = launch::HangConfig::After::never};
  EXPECT_TRUE(says(config, "hang", "not watched", "option --hang-after"));
  EXPECT_TRUE(says(config, "file timer", "none", "TORCHELASTIC_ENABLE_FILE_TIMER is not set"));
  EXPECT_TRUE(says(config, "stuck workers", "not watched",
                   "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT is not set"));
  config.watch = {8080, true, std::nullopt, std::chrono::duration<double>(2.5)};
  for (const std::string_view name : {launch::kHealthPortVariable, launch::kFileTimerVariable,
                                      launch::kTimerFileVariable, launch::kStuckLimitVariable})
    config.origins[std::string(name)] = {Origin::Kind::variable, std::string(name)};
  const std::string from = "environment variable TORCHELASTIC_";
  EXPECT_TRUE(says(config, "health check", "/health and /metrics on port 8080",
                   from + "HEALTH_CHECK_PORT"));
  EXPECT_TRUE(
      says(config, "file timer", "a fresh /tmp/watchdog_timer_*", from + "ENABLE_FILE_TIMER"));
  EXPECT_TRUE(says(config, "stuck workers", "end the job after 2.5 s",
                   from + "UNINTERRUPTIBLE_STATE_TIMEOUT"));
  config.watch.timer_file = "/run/t";
  EXPECT_TRUE(says(config, "file timer", "/run/t", from + "TIMER_FILE"));
  EXPECT_EQ(explain_text(config).find("failure copied to"), std::string::npos);
  config.error_file_above = "/run/e";
  config.origins["TORCHELASTIC_ERROR_FILE"] = {Origin::Kind::variable, "TORCHELASTIC_ERROR_FILE"};
  EXPECT_TRUE(says(config, "failure copied to", "/run/e", from + "ERROR_FILE"));
}

TEST(Explain, IPv6StandsInBrackets) {
  LaunchConfig config = sample();
  config.rdzv_endpoints = {{"fd00::1", 1}, {"h", 2}};
  EXPECT_NE(explain_text(config).find(" [fd00::1]:1,h:2 "), std::string::npos);
}

}  // namespace
}  // namespace lockstep::cli
