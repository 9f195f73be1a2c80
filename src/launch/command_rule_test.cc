// Results of options: signals and timeouts, the command, devices, logs.
#include "launch/launch_testing.h"

#include <gtest/gtest.h>

#include <csignal>

namespace lockstep::launch {
namespace {

TEST(LaunchConfig, Signals) {
  using Numbers = std::vector<int>;
  const auto standard = make(unchanged);
  EXPECT_EQ(standard->signals, (Numbers{SIGTERM, SIGINT, SIGHUP, SIGQUIT}));
  EXPECT_EQ(standard->forwarded_signals, (Numbers{SIGUSR1, SIGUSR2}));
  EXPECT_FALSE(standard->signals_given);
  const auto listed =
      make([](RawOptions& raw) { raw.signals_to_handle = "SIGTERM, usr1,TERM,SIGWINCH"; });
  EXPECT_EQ(listed->signals, (Numbers{SIGTERM, SIGUSR1, SIGWINCH}));
  EXPECT_EQ(listed->forwarded_signals, (Numbers{SIGUSR2}));
  EXPECT_TRUE(listed->signals_given);
  EXPECT_TRUE(listed->warnings.empty());
}

TEST(LaunchConfig, ShutdownTimeout) {
  using std::chrono::seconds;
  EXPECT_EQ(make(unchanged)->shutdown_timeout, seconds(30));
  EXPECT_EQ(make([](RawOptions& raw) { raw.shutdown_timeout = 0; })->shutdown_timeout, seconds(0));
  Machine machine;
  machine.env["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] = "7";
  EXPECT_EQ(make(unchanged, machine)->shutdown_timeout, seconds(7));
  EXPECT_EQ(make([](RawOptions& raw) { raw.shutdown_timeout = 3; }, machine)->shutdown_timeout,
            seconds(3));
  EXPECT_EQ(make(unchanged, machine)->stop_timeout, seconds(7));
  machine.env["LOCKSTEP_STOP_TIMEOUT"] = "120";
  EXPECT_EQ(make(unchanged, machine)->shutdown_timeout, seconds(7));
  EXPECT_EQ(make(unchanged, machine)->stop_timeout, seconds(120));
  machine.env["LOCKSTEP_STOP_TIMEOUT"] = "2";
  EXPECT_EQ(make(unchanged, machine)->stop_timeout, seconds(7));
  for (const char* bad : {"x", "-2", ""}) {
    machine.env["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] = bad;
    EXPECT_FALSE(make(unchanged, machine)) << bad;
  }
}

TEST(LaunchConfig, Commands) {
  const Words tail = {"a", "${local_rank}"};
  const struct {
    Change change;
    Words command;
    const char* entrypoint;
  } rows[] = {
      {unchanged, {"/usr/bin/python3", "-u", "T"}, "T"},
      {[](RawOptions& raw) {
         raw.module = true;
         raw.script = "json.tool";
       },
       {"/usr/bin/python3", "-u", "-m", "json.tool"},
       "json.tool"},
      {[](RawOptions& raw) {
         raw.no_python = true;
         raw.script = "echo";
       },
       {"/bin/echo"},
       "echo"},
      {[](RawOptions& raw) { raw.script = "pkg"; }, {"/usr/bin/python3", "-u", "pkg"}, "pkg"},
      {[](RawOptions& raw) { raw.script = "pipe"; }, {"/usr/bin/python3", "-u", "pipe"}, "pipe"},
      {[](RawOptions& raw) { raw.script = "-c"; }, {"/usr/bin/python3", "-u", "-c"}, "-c"},
      {[](RawOptions& raw) {
         raw.nproc_per_node = "2";
         raw.script = "t${local_rank}.py";
       },
       {"/usr/bin/python3", "-u", "t${local_rank}.py"},
       "t${local_rank}.py"},
      {[](RawOptions& raw) { raw.run_path = raw.no_python = raw.module = true; },
       {"/usr/bin/python3", "-u", "-c",
        R"(import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name="__main__"))",
        "T"},
       "T"},
  };
  for (const auto& row : rows) {
    RawOptions raw;
    raw.script = "T";
    raw.script_args = tail;
    row.change(raw);
    const auto config = make_launch_config(raw, Machine{}.facts());
    ASSERT_TRUE(config) << row.entrypoint << config.error().message;
    Words expected = row.command;
    expected.insert(expected.end(), tail.begin(), tail.end());
    EXPECT_EQ(config->command, expected);
    EXPECT_EQ(config->entrypoint, row.entrypoint);
    EXPECT_EQ(config->local_rank_argument, LocalRankArgument::none);
  }
}

TEST(LaunchConfig, ChoosesPython) {
  Machine machine;
  machine.programs["/venv/bin/python"] = "/venv/bin/python";
  machine.programs["pypy"] = "/opt/pypy";
  machine.env["VIRTUAL_ENV"] = "/gone";
  EXPECT_EQ(make(unchanged, machine)->command[0], "/usr/bin/python3");
  machine.env["VIRTUAL_ENV"] = "/venv";
  EXPECT_EQ(make(unchanged, machine)->command[0], "/venv/bin/python");
  machine.env["PYTHON_EXEC"] = "pypy";
  EXPECT_EQ(make(unchanged, machine)->command[0], "/opt/pypy");
  machine.env["PYTHON_EXEC"] = "/no/python";
  EXPECT_EQ(make(unchanged, machine).error().message,
            "PYTHON_EXEC: /no/python: No such file or directory");
  machine = Machine{};
  machine.programs = {{"python", "/bin/python"}};
  EXPECT_EQ(make(unchanged, machine)->command[0], "/bin/python");
  machine.programs.clear();
  EXPECT_NE(make(unchanged, machine).error().message.find("no Python to run"), std::string::npos);
}

TEST(LaunchConfig, PythonOfTheVirtualEnvironmentThatThisProgramIsIn) {
  const auto chosen = [](const Machine& machine) {
    const auto config = make(unchanged, machine);
    const Origin& origin = config->origins.at("python");
    return config->command[0] + " " + (origin.rule == Rule::own_venv ? "ours" : origin.name);
  };
  Machine machine;
  machine.program_folders = {"/usr/bin", "/venv/bin"};
  machine.programs["/venv/bin/python3"] = "/venv/bin/python3";
  EXPECT_EQ(chosen(machine), "/usr/bin/python3 PATH");  // no virtual environment
  machine.files["/venv/pyvenv.cfg"] = FileKind::file;
  EXPECT_EQ(chosen(machine), "/venv/bin/python3 ours");
  machine.programs["/other/bin/python"] = "/other/bin/python";
  machine.env["VIRTUAL_ENV"] = "/other";
  EXPECT_EQ(chosen(machine), "/venv/bin/python3 ours");  // as torchrun's first line
  machine.programs["/venv/bin/python"] = "/venv/bin/python";
  machine.programs.erase("/venv/bin/python3");
  EXPECT_EQ(chosen(machine), "/venv/bin/python ours");
  machine.env["PYTHON_EXEC"] = "python3";
  EXPECT_EQ(chosen(machine), "/usr/bin/python3 PYTHON_EXEC");
  machine.env.erase("PYTHON_EXEC");
  machine.program_folders.clear();
  EXPECT_EQ(chosen(machine), "/other/bin/python VIRTUAL_ENV");
}

TEST(LaunchConfig, WithoutPythonThereIsNoOriginOfOne) {
  const auto config = make([](RawOptions& raw) {
    raw.no_python = true;
    raw.script = "echo";
  });
  EXPECT_EQ(config->origins.count("python"), 0U);
}

TEST(LaunchConfig, LegacyLaunchInsertsTheLocalRankAfterTheScript) {
  const Change legacy = [](RawOptions& raw) {
    raw.legacy_launch = true;
    raw.script_args = {"a"};
  };
  const auto config = make(legacy);
  EXPECT_EQ(config->command, (Words{"/usr/bin/python3", "-u", "T", "a"}));
  EXPECT_EQ(config->local_rank_argument, LocalRankArgument::dash);
  EXPECT_EQ(config->local_rank_argument_at, 3U);
  const auto underscore = make([](RawOptions& raw) {
    raw.legacy_launch = raw.module = true;
    raw.local_rank_spelling = "underscore";
  });
  EXPECT_EQ(underscore->local_rank_argument, LocalRankArgument::underscore);
  EXPECT_EQ(underscore->local_rank_argument_at, 4U);
  const auto env = make([](RawOptions& raw) { raw.legacy_launch = raw.use_env = true; });
  EXPECT_EQ(env->local_rank_argument, LocalRankArgument::none);
}

TEST(LaunchConfig, VirtualLocalRankNeedsADeviceEach) {
  Machine machine;
  const Change three = [](RawOptions& raw) {
    raw.virtual_local_rank = true;
    raw.nproc_per_node = "3";
  };
  EXPECT_TRUE(make(three, machine));
  machine.env["CUDA_VISIBLE_DEVICES"] = "4,7,1";
  EXPECT_TRUE(make(three, machine)->virtual_local_rank);
  machine.env["CUDA_VISIBLE_DEVICES"] = "4,7";
  const auto config = make(three, machine);
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().message,
            "local_rank 2 exceeds available GPUs in CUDA_VISIBLE_DEVICES=4,7");
  EXPECT_TRUE(make([](RawOptions& raw) { raw.nproc_per_node = "3"; }, machine));
}

TEST(LaunchConfig, LogPrefix) {
  const Change readable = [](RawOptions& raw) { raw.log_prefix = "readable"; };
  Machine machine;
  EXPECT_EQ(make(unchanged)->logs.prefix_template, "[${role_name}${local_rank}]:");
  EXPECT_EQ(make(readable)->logs.prefix_template, "[${role_name} ${local_rank}] ");
  EXPECT_EQ(make(unchanged)->logs.max_size, 0U);
  EXPECT_EQ(make([](RawOptions& raw) { raw.log_max_size = "4096"; })->logs.max_size, 4096U);
  EXPECT_EQ(make([](RawOptions& raw) { raw.log_max_size = "1k"; })->logs.max_size, 1024U);
  EXPECT_EQ(make([](RawOptions& raw) { raw.log_max_size = "3G"; })->logs.max_size, 3ULL << 30);
  EXPECT_EQ(make([](RawOptions& raw) { raw.log_prefix = "time"; })->logs.prefix_template,
            "${time} [${role_name} ${local_rank}] ");
  machine.env["TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"] = "env";
  EXPECT_EQ(make(unchanged, machine)->logs.prefix_template, "env");
  EXPECT_EQ(make(readable, machine)->logs.prefix_template, "[${role_name} ${local_rank}] ");
  const auto given = make(
      [](RawOptions& raw) {
        raw.log_line_prefix_template = "option";
        raw.log_prefix = "readable";
      },
      machine);
  EXPECT_EQ(given->logs.prefix_template, "option");
}

TEST(LaunchConfig, LogOptions) {
  const auto config = make([](RawOptions& raw) {
    raw.log_dir = "new/dir";
    raw.redirects = "3";
    raw.tee = "0:1,12:2";
    raw.local_ranks_filter = "0, 1,rank:3";
    raw.duplicate_stdout_filters = "a,,b,c";
    raw.duplicate_stderr_filters = ",x,";
  });
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->logs.base_dir, "new/dir");
  EXPECT_FALSE(config->logs.disabled);
  EXPECT_EQ(config->logs.redirects.of(5), logs::Std::all);
  EXPECT_EQ(config->logs.tee.of(12), logs::Std::err);
  EXPECT_EQ(config->logs.filter->local_ranks, (std::set<int>{0, 1}));
  EXPECT_EQ(config->logs.filter->global_ranks, (std::set<int>{3}));
  EXPECT_EQ(config->logs.duplicate_stdout_filters, (Words{"a,b", "c"}));
  EXPECT_EQ(config->logs.duplicate_stderr_filters, (Words{"x"}));
  const auto standard = make(unchanged);
  EXPECT_EQ(standard->logs.base_dir, std::nullopt);
  EXPECT_FALSE(standard->logs.filter);
  EXPECT_TRUE(standard->logs.duplicate_stdout_filters.empty());
  const auto off = make([](RawOptions& raw) { raw.log_dir = "/dev/null"; });
  EXPECT_TRUE(off->logs.disabled);
  EXPECT_TRUE(make([](RawOptions& raw) { raw.log_dir = ""; }));
}

TEST(LaunchConfig, Choices) {
  const auto config = make([](RawOptions& raw) {
    raw.isolation = "cgroup";
    raw.exit_code = "worker";
    raw.event_log_handler = "console";
    raw.numa_binding = "core-complex";
    raw.report = "r.json";
    raw.role = "trainer";
    raw.local_addr = "10.0.0.1";
    raw.max_restarts = 3;
  });
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->isolation, Isolation::cgroup);
  EXPECT_EQ(config->exit_code, ExitCodeMode::worker);
  EXPECT_EQ(config->event_handler, EventHandler::console);
  EXPECT_EQ(config->numa_binding, NumaBinding::core_complex);
  EXPECT_EQ(config->report_file, "r.json");
  EXPECT_EQ(config->role, "trainer");
  EXPECT_EQ(config->local_addr, "10.0.0.1");
  EXPECT_EQ(config->max_restarts, 3);
  EXPECT_TRUE(make([](RawOptions& raw) { raw.event_log_handler = "dynamic_rendezvous"; }));
}

}  // namespace
}  // namespace lockstep::launch
