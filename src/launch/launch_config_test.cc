// torchrun 2.14's rules as tables: refusals with their words, and the resulting nodes, workers and
// rendezvous.
#include "launch/backend_row.h"
#include "launch/launch_testing.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::launch {
namespace {

TEST(LaunchConfig, Refuses) {
  const struct {
    Change change;
    const char* words;
  } rows[] = {
      {[](RawOptions& raw) { raw.nnodes = "2:1"; },
       "min_nodes must be > 0 and <= max_nodes, got min_nodes=2, max_nodes=1"},
      {[](RawOptions& raw) { raw.nnodes = "0"; },
       "min_nodes must be > 0 and <= max_nodes, got min_nodes=0, max_nodes=0"},
      {[](RawOptions& raw) { raw.nnodes = "abc"; },
       "invalid literal for int() with base 10: 'abc'"},
      {[](RawOptions& raw) { raw.nnodes = ""; }, "invalid literal for int() with base 10: ''"},
      {[](RawOptions& raw) { raw.nnodes = "1:"; }, "invalid literal for int() with base 10: ''"},
      {[](RawOptions& raw) { raw.nnodes = "1:2:3"; }, "nnodes=1:2:3 is not in \"MIN:MAX\" format"},
      {[](RawOptions& raw) { raw.nproc_per_node = "0"; }, "nproc_per_node must be > 0, got 0"},
      {[](RawOptions& raw) { raw.nproc_per_node = "-1"; }, "nproc_per_node must be > 0, got -1"},
      {[](RawOptions& raw) { raw.nproc_per_node = "99999999999"; },
       "nproc_per_node must be at most"},
      {[](RawOptions& raw) { raw.nproc_per_node = "bad"; },
       "Unsupported nproc_per_node value: bad"},
      {[](RawOptions& raw) { raw.nproc_per_node = "gpu"; }, "Cuda is not available."},
      {[](RawOptions& raw) { raw.nproc_per_node = "xpu"; }, "Xpu is not available."},
      {[](RawOptions& raw) { raw.monitor_interval = 0; }, "monitor_interval must be > 0, got 0"},
      {[](RawOptions& raw) { raw.monitor_interval = NAN; },
       "monitor_interval must be > 0 and finite, got nan"},
      {[](RawOptions& raw) { raw.monitor_interval = INFINITY; },
       "monitor_interval must be > 0 and finite, got inf"},
      {[](RawOptions& raw) { raw.max_restarts = -1; }, "max_restarts must be >= 0, got -1"},
      {[](RawOptions& raw) { raw.max_restarts = 1LL << 40; }, "max_restarts must be >= 0"},
      {[](RawOptions& raw) { raw.restart_backoff = -1; },
       "--restart-backoff must be between 0 and 86400 seconds, got -1"},
      {[](RawOptions& raw) { raw.restart_backoff = NAN; }, "got nan"},
      {[](RawOptions& raw) { raw.restart_backoff = INFINITY; }, "got inf"},
      {[](RawOptions& raw) { raw.log_max_size = "1023"; }, "at least 1K, got 1023"},
      {[](RawOptions& raw) { raw.log_max_size = "M"; }, "--log-max-size must be a number of bytes"},
      {[](RawOptions& raw) { raw.log_max_size = "-1M"; },
       "--log-max-size must be a number of bytes"},
      {[](RawOptions& raw) { raw.log_max_size = "9999999999G"; },
       "--log-max-size must be a number"},
      {[](RawOptions& raw) { raw.log_max_size = "1.5G"; },
       "--log-max-size must be a number of bytes"},
      {[](RawOptions& raw) { raw.redirects = "4"; }, "4 does not match: <^[0123]$>"},
      {[](RawOptions& raw) { raw.tee = "0:9"; }, "0:9 does not match: <^[0123]$>"},
      {[](RawOptions& raw) { raw.local_ranks_filter = "x"; }, "comma-separated list of integers"},
      {[](RawOptions& raw) { raw.local_ranks_filter = "0,"; }, "comma-separated list of integers"},
      {[](RawOptions& raw) { raw.local_ranks_filter = "rank:"; },
       "comma-separated list of integers"},
      {[](RawOptions& raw) { raw.rdzv_conf = "a"; }, "option 'a' must have a value specified"},
      {[](RawOptions& raw) { raw.rdzv_conf = "=1"; }, "must be in format <key1>="},
      {[](RawOptions& raw) { raw.rdzv_conf = "join_timeout=x"; },
       "option 'join_timeout' does not represent a valid integer value"},
      {[](RawOptions& raw) { raw.rdzv_conf = "read_timeout=0"; }, "must be positive, got 0"},
      {[](RawOptions& raw) { raw.rdzv_conf = "is_host=x"; }, "valid boolean value"},
      {[](RawOptions& raw) { raw.rdzv_backend = "bogus"; }, "'bogus' is not registered"},
      {[](RawOptions& raw) { raw.rdzv_endpoint = "host"; }, "port is missing in endpoint: host"},
      {[](RawOptions& raw) { raw.rdzv_endpoint = "h:65536"; },
       "must be an integer between 0 and 65536"},
      {[](RawOptions& raw) { raw.master_port = 70000; }, "must be an integer between 0 and 65536"},
      {[](RawOptions& raw) { raw.master_port = -1; }, "must be an integer between 0 and 65536"},
      {[](RawOptions& raw) {
         raw.rdzv_backend = "c10d";
         raw.rdzv_endpoint = "h:x";
       },
       "must be an integer between 0 and 65536"},
      {[](RawOptions& raw) {
         raw.rdzv_backend = "c10d";
         raw.rdzv_endpoint = "a b:1";
       },
       "dot-separated list of labels"},
      {[](RawOptions& raw) {
         raw.master_port = 1;
         raw.node_rank = 1;
       },
       "got node_rank=1, nnodes=1"},
      {[](RawOptions& raw) { raw.no_python = raw.module = true; },
       "Don't use both the '--no-python' flag and the '--module' flag at the same time."},
      {[](RawOptions& raw) {
         raw.no_python = true;
         raw.script = "/no/such";
       },
       "/no/such: No such file or directory"},
      {[](RawOptions& raw) { raw.script = "none.py"; },
       "can't open script 'none.py': No such file or directory"},
      {[](RawOptions& raw) { raw.script = "dir"; }, "'dir' is a directory without __main__.py"},
      {[](RawOptions& raw) { raw.script = ""; }, "the script's name is empty"},
      {[](RawOptions& raw) {
         raw.run_path = true;
         raw.script = "none.py";
       },
       "No such file or directory"},
      {[](RawOptions& raw) {
         raw.nproc_per_node = "3";
         raw.script = "t${local_rank}.py";
       },
       "can't open script 't2.py'"},
      {[](RawOptions& raw) { raw.log_dir = "T"; }, "log_dir: T is a file"},
      {[](RawOptions& raw) { raw.logs_specs = "x"; },
       "Could not find entrypoint under 'torchrun.logs_specs[x]' key"},
      {[](RawOptions& raw) { raw.shutdown_timeout = -1; },
       "shutdown_timeout must be non-negative, got -1"},
      {[](RawOptions& raw) { raw.event_log_handler = "x"; }, "--event-log-handler x is not known"},
      {[](RawOptions& raw) { raw.numa_binding = "x"; },
       "--numa-binding must be one of node, socket"},
      {[](RawOptions& raw) { raw.isolation = "x"; }, "--isolation must be one of auto"},
      {[](RawOptions& raw) { raw.exit_code = "x"; }, "--exit-code must be one of torchrun"},
      {[](RawOptions& raw) { raw.log_prefix = "x"; }, "--log-prefix must be one of torchrun"},
      {[](RawOptions& raw) { raw.fold = "x"; }, "--fold must be one of auto"},
      {[](RawOptions& raw) { raw.report = ""; }, "--report needs a file name"},
      {[](RawOptions& raw) { raw.report_tails = "x"; }, "--report-tails must be one of first, all"},
      {[](RawOptions& raw) {
         raw.rdzv_backend = "c10d";
         raw.rdzv_id = "a/b";
       },
       "run id 'a/b' must not contain a slash"},
      {[](RawOptions& raw) { raw.legacy_launch = raw.no_python = true; },
       "you must also set the '--use-env' flag"},
  };
  for (const auto& row : rows) {
    const auto config = make(row.change);
    ASSERT_FALSE(config) << row.words;
    EXPECT_NE(config.error().message.find(row.words), std::string::npos)
        << config.error().message << "\nwants " << row.words;
    EXPECT_EQ(config.error().message.find('\n'), std::string::npos);
  }
}

TEST(LaunchConfig, TorchrunsOwnLogsSpecsCanBeNamed) {
  EXPECT_TRUE(make([](RawOptions& raw) { raw.logs_specs = "default"; }));
}

TEST(LaunchConfig, OneNodeDefaultsToAPrivateStore) {
  const auto config = make(unchanged);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->backend->name, "c10d");
  EXPECT_EQ(config->rdzv_endpoint, "localhost:0");
  EXPECT_EQ(config->run_id, "fresh-uuid");
  EXPECT_EQ(config->job_name, "");
  EXPECT_TRUE(config->private_store);
  EXPECT_TRUE(config->warnings.empty());
}

TEST(LaunchConfig, StandaloneOverridesWhatWasGiven) {
  const auto config = make([](RawOptions& raw) {
    raw.standalone = true;
    raw.rdzv_backend = "bogus";
    raw.rdzv_endpoint = "h:1";
    raw.rdzv_id = "job";
    raw.master_port = 5;
  });
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->backend->name, "c10d");
  EXPECT_EQ(config->rdzv_endpoint, "localhost:0");
  EXPECT_EQ(config->run_id, "fresh-uuid");
  EXPECT_EQ(config->job_name, "job");
  EXPECT_TRUE(config->private_store);
}

TEST(LaunchConfig, StaticKeepsItsAddress) {
  const struct {
    Change change;
    const char* addr;
    int port;
  } rows[] = {
      {[](RawOptions& raw) { raw.master_port = 1234; }, "127.0.0.1", 1234},
      {[](RawOptions& raw) {
         raw.master_port = 0;
         raw.master_addr = "[::1]";
       },
       "::1", 0},
      {[](RawOptions& raw) { raw.rdzv_endpoint = "node1:99"; }, "node1", 99},
      {[](RawOptions& raw) {
         raw.rdzv_endpoint = "node1:99";
         raw.master_port = 5;
       },
       "node1", 99},
  };
  for (const auto& row : rows) {
    const auto config = make(row.change);
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->backend->name, "static");
    EXPECT_FALSE(config->private_store);
    EXPECT_EQ(config->master_addr, row.addr);
    EXPECT_EQ(config->master_port, row.port);
    EXPECT_EQ(config->run_id, "none");
  }
}

TEST(LaunchConfig, DynamicBackendOnOneNode) {
  RawOptions raw;
  raw.script = "T";
  raw.rdzv_backend = "c10d";
  raw.rdzv_endpoint = "h:1";
  raw.rdzv_id = "job";
  raw.rdzv_conf = "timeout=5,anything=goes";
  const auto config = make_launch_config(raw, Machine{}.facts());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_TRUE(config->private_store);
  EXPECT_EQ(config->job_name, "job");
  EXPECT_EQ(config->run_id, "job");
  EXPECT_TRUE(config->warnings.empty());
}

TEST(LaunchConfig, LocalAddr) {
  const auto made = [](const char* addr) {
    RawOptions raw;
    raw.script = "T";
    raw.local_addr = addr;
    return make_launch_config(raw, Machine{}.facts());
  };
  EXPECT_EQ(made("")->local_addr, std::nullopt);
  EXPECT_EQ(made(" 10.0.0.7 ")->local_addr, "10.0.0.7");
  EXPECT_EQ(made("[fd00::7]")->local_addr, "fd00::7");
  EXPECT_FALSE(made("0.0.0.0"));
}

TEST(LaunchConfig, WarnsAndGoesOn) {
  const struct {
    Change change;
    const char* words;
  } rows[] = {
      {[](RawOptions& raw) { raw.rdzv_backend = "c10d"; },
       "master_addr is only used for static rdzv_backend and when rdzv_endpoint is not specified."},
      {[](RawOptions& raw) {
         raw.standalone = true;
         raw.node_rank = 1;
       },
       "node_rank is only used for static rdzv_backend. It will be ignored for rdzv_backend=c10d."},
      {[](RawOptions& raw) {
         raw.rdzv_endpoint = "h:1";
         raw.rdzv_id = "";
       },
       "config has no run_id, generated a random run_id: fresh-uuid"},
      {[](RawOptions& raw) { raw.signals_to_handle = "SIGTERM,SIGBOGUS"; },
       "Failed to register signal handler for SIGBOGUS"},
      {[](RawOptions& raw) { raw.signals_to_handle = "SIGKILL"; },
       "Failed to register signal handler for SIGKILL"},
      {[](RawOptions& raw) { raw.signals_to_handle = "STOP"; },
       "Failed to register signal handler for STOP"},
  };
  for (const auto& row : rows) {
    const auto config = make(row.change);
    ASSERT_TRUE(config) << row.words << config.error().message;
    ASSERT_EQ(config->warnings.size(), 1U) << row.words;
    EXPECT_NE(config->warnings[0].find(row.words), std::string::npos) << config->warnings[0];
  }
}

TEST(LaunchConfig, CountsWorkers) {
  const struct {
    const char* given;
    int gpus;
    int xpus;
    int expected;
  } rows[] = {
      {"3", 0, 0, 3},   {" 3 ", 0, 0, 3},  {"cpu", 4, 2, 6},  {"gpu", 4, 2, 4},
      {"xpu", 4, 2, 2}, {"auto", 4, 2, 4}, {"auto", 0, 2, 2}, {"auto", 0, 0, 6},
  };
  for (const auto& row : rows) {
    Machine machine;
    machine.gpus = row.gpus;
    machine.xpus = row.xpus;
    RawOptions raw;
    raw.script = "T";
    raw.nproc_per_node = row.given;
    const auto config = make_launch_config(raw, machine.facts());
    ASSERT_TRUE(config) << row.given << config.error().message;
    EXPECT_EQ(config->nproc, row.expected) << row.given;
  }
}

TEST(LaunchConfig, CountsDevicesOfAnExtensionOfPyTorch) {
  Machine machine;
  machine.custom = {{"npu", 8}, {"mtia", 0}};
  const auto asked = [&](const char* kind) {
    RawOptions raw;
    raw.script = "T";
    raw.nproc_per_node = kind;
    return make_launch_config(raw, machine.facts());
  };
  EXPECT_EQ(asked("npu")->nproc, 8);
  EXPECT_EQ(asked("mtia").error().message, "mtia is not available.");
  EXPECT_EQ(asked("tpu").error().message, "Unsupported nproc_per_node value: tpu");
  EXPECT_EQ(asked("auto")->nproc, 6) << "CPUs";
  machine.custom[""] = 8;
  EXPECT_EQ(asked("auto")->nproc, 8);
  machine.gpus = 2;
  EXPECT_EQ(asked("auto")->nproc, 2) << "GPUs come first";
  machine.gpus = 0;
  machine.programs.erase("python3");
  EXPECT_EQ(asked("npu").error().message, "Unsupported nproc_per_node value: npu");
}

TEST(LaunchConfig, SlotsAreWorkersAndTheirDevices) {
  const struct {
    const char* given;
    const char* visible;
    const char* expected;
    int workers;
  } rows[] = {
      {"0,2", "", "0,2", 2},
      {"7", "1,2", "7", 1},
      {"gpu", "", "0,1,2,3", 4},
      {"gpu", "GPU-a,GPU-b", "GPU-a,GPU-b", 2},
  };
  for (const auto& row : rows) {
    Machine machine;
    machine.gpus = 4;
    machine.env["CUDA_VISIBLE_DEVICES"] = row.visible;
    RawOptions raw;
    raw.script = "T";
    raw.slots = row.given;
    const auto config = make_launch_config(raw, machine.facts());
    ASSERT_TRUE(config) << row.given << config.error().message;
    EXPECT_EQ(config->slots, row.expected);
    EXPECT_EQ(config->nproc, row.workers);
    EXPECT_FALSE(config->omp_num_threads);
  }
}

TEST(LaunchConfig, JaxNeedsAPortThatNobodyHasOpened) {
  EXPECT_EQ(make([](RawOptions& raw) { raw.framework = "jax"; })->framework, Framework::jax);
  const auto refused = make([](RawOptions& raw) {
    raw.framework = "jax";
    raw.nnodes = "2";
    raw.rdzv_backend = "static";
    raw.node_rank = 0;
    raw.master_addr = "trn-0";
  });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "--framework jax does not work with --rdzv-backend static");
  EXPECT_TRUE(make([](RawOptions& raw) {
    raw.framework = "jax";
    raw.rdzv_backend = "static";
  })) << "one node";
}

TEST(LaunchConfig, SlotsThatMakeNoSenseAreNamed) {
  const auto error = [](Change change) {
    const auto config = make(change);
    return config ? "" : config.error().message;
  };
  EXPECT_EQ(error([](RawOptions& raw) { raw.slots = "0,x"; }),
            "--slots 0,x: 'x' must be the number of a device");
  EXPECT_EQ(error([](RawOptions& raw) { raw.slots = ""; }),
            "--slots : '' must be the number of a device");
  EXPECT_EQ(error([](RawOptions& raw) { raw.slots = "1,1"; }), "--slots 1,1: 1 is listed twice");
  EXPECT_EQ(error([](RawOptions& raw) { raw.slots = "gpu"; }), "Cuda is not available.");
  EXPECT_EQ(error([](RawOptions& raw) {
              raw.slots = "0";
              raw.given["nproc-per-node"] = "";
            }),
            "--slots says how many workers there are, and so does --nproc-per-node");
  EXPECT_EQ(error([](RawOptions& raw) {
              raw.slots = "0";
              raw.numa_binding = "node";
            }),
            "--numa-binding goes by the devices that this process sees, and --slots names others");
  EXPECT_EQ(error([](RawOptions& raw) {
              raw.slots = "0";
              raw.given["nproc-per-node"] = "PET_NPROC_PER_NODE";
            }),
            "");
}

TEST(LaunchConfig, OmpThreadsOnlyForSeveralWorkersAndWhenUnset) {
  const Change two = [](RawOptions& raw) { raw.nproc_per_node = "2"; };
  EXPECT_EQ(make(two)->omp_num_threads, "1");
  EXPECT_TRUE(make(two)->warnings.empty());
  EXPECT_EQ(make(two)->job_warnings.at(0).substr(0, 26), "OMP_NUM_THREADS is not set");
  EXPECT_EQ(make(unchanged)->omp_num_threads, std::nullopt);
  Machine machine;
  machine.env["OMP_NUM_THREADS"] = "";  // set, if to nothing
  const auto config = make(two, machine);
  EXPECT_EQ(config->omp_num_threads, std::nullopt);
  EXPECT_TRUE(config->job_warnings.empty());
}

TEST(LaunchConfig, WarnsOfUnknownMacros) {
  const auto config = make([](RawOptions& raw) {
    raw.log_line_prefix_template = "${role_name}|${localrank}|$$x|${rank}";
  });
  EXPECT_EQ(config->warnings,
            (Words{"${localrank} in the log line prefix template is not known and stays as it is: "
                   "the macros are ${role_name}, ${local_rank}, ${rank}, ${hostname}, ${time}"}));
  Machine machine;
  machine.env["TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"] = "${role_name} $hostname $local_rank:";
  EXPECT_EQ(make(unchanged, machine)->warnings, Words{});
}

TEST(LaunchConfig, WarnsOfAFilterThatMatchesNobody) {
  const auto warnings = [](const char* nnodes, const char* nproc, const char* filter) {
    RawOptions raw;
    raw.script = "T";
    raw.nnodes = nnodes;
    raw.nproc_per_node = nproc;
    raw.local_ranks_filter = filter;
    raw.rdzv_endpoint = "host:1";
    Machine machine;
    machine.env["OMP_NUM_THREADS"] = "1";
    const auto config = make_launch_config(raw, machine.facts());
    return config ? config->warnings : Words{config.error().message};
  };
  const std::string nobody =
      "--local-ranks-filter matches no worker of this node, so the console shows none: ";
  EXPECT_EQ(warnings("1", "4", "4,-1"), Words{nobody + "its local ranks are 0 to 3"});
  EXPECT_EQ(warnings("1", "1", "rank:1"), Words{nobody + "its only local rank is 0"});
  EXPECT_EQ(warnings("2", "2", "2"), Words{nobody + "its local ranks are 0 to 1"});
  EXPECT_EQ(warnings("1", "4", "7,3"), Words{});
  EXPECT_EQ(warnings("1", "4", "rank:3"), Words{});
  EXPECT_EQ(warnings("2", "2", "rank:3"), Words{});  // may be another node's
}

}  // namespace
}  // namespace lockstep::launch
