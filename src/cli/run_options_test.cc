// Tests the tables, and the fields that the rows fill.
#include "cli/run_options.h"

#include "base/text.h"
#include "cli/remote_options.h"
#include "cli/store_options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace lockstep::cli {
namespace {

std::vector<const Table*> tables() {
  return {&run_table(), &torchrun_table(), &launch_table(), &store_table()};
}

Parsed parsed(const Table& table, const std::vector<std::string>& words) {
  auto result = parse_options(table, words, [](std::string_view) { return std::nullopt; });
  EXPECT_TRUE(result) << result.error().error.message;
  return result.value_or(Parsed{});
}

TEST(Tables, RowsAreWellFormed) {
  for (const Table* table : tables()) {
    std::set<std::string_view> names;
    std::set<char> letters;
    for (const Group& group : table->groups) {
      for (const Option& option : group.options) {
        EXPECT_TRUE(names.insert(option.name).second) << option.name;
        EXPECT_EQ(option.name.find('_'), std::string_view::npos) << option.name;
        EXPECT_EQ(option.metavar.empty(), option.kind == Kind::flag) << option.name;
        if (option.letter != 0) {
          EXPECT_TRUE(letters.insert(option.letter).second) << option.name;
        }
        if (option.env.empty()) continue;
        std::string env = "PET_" + to_upper(option.name);
        std::replace(env.begin(), env.end(), '-', '_');
        EXPECT_EQ(option.env, env);
      }
    }
  }
}

TEST(Tables, HelpFitsTheScreen) {
  for (const Table* table : tables()) {
    for (const std::string& line : split(help_text(*table), '\n'))
      EXPECT_LE(line.size(), 80U) << line;
    for (const Group& group : table->groups)
      EXPECT_LE(split(help_group(group), '\n').size() - 1, 24U) << group.title;
  }
  const std::string help = help_text(torchrun_table());
  EXPECT_TRUE(help.starts_with("usage: torchrun [options] script [script arguments ...]\n\n"))
      << help;
  EXPECT_NE(help.find("--nproc-per-node N"), std::string::npos);
  EXPECT_NE(help.find("-r, --redirects WHAT"), std::string::npos);
}

TEST(AllWords, SayTheSameOnceMore) {
  const Parsed first =
      parsed(run_table(), {"--on-demand", "L4:1", "--spot", "-y", "--back=out", "--back", "a b",
                           "--env", "A=\"1\n2\"", "--secret=S", "--nproc-per-node", "2", "train.py",
                           "--back", "--", "-y"});
  const Parsed again = parsed(run_table(), all_words(run_table(), first));
  EXPECT_EQ(again.values, first.values);
  EXPECT_EQ(again.lists, first.lists);
  EXPECT_EQ(again.script, first.script);
  EXPECT_EQ(again.script_args, first.script_args);
  EXPECT_EQ(again.lists.at("back"), (std::vector<std::string>{"out", "a b"}));
  // Values from the environment become words, too.
  const auto by_variable = parse_options(run_table(), std::vector<std::string>{"train.py"},
                                         [](std::string_view name) -> std::optional<std::string> {
                                           if (name == "PET_NPROC_PER_NODE") return "3";
                                           return std::nullopt;
                                         });
  ASSERT_TRUE(by_variable);
  EXPECT_EQ(parsed(run_table(), all_words(run_table(), *by_variable)).text("nproc-per-node"), "3");
}

TEST(RawOptions, DefaultsAreTorchruns) {
  const launch::RawOptions raw = raw_options(run_table(), parsed(run_table(), {"T", "a"}));
  EXPECT_EQ(raw.nnodes, std::nullopt);
  EXPECT_EQ(raw.nproc_per_node, "1");
  EXPECT_EQ(raw.rdzv_backend, std::nullopt);
  EXPECT_EQ(raw.node_rank, std::nullopt);
  EXPECT_EQ(raw.rank_order, std::nullopt);
  EXPECT_TRUE(raw.given.empty());
  EXPECT_EQ(raw.rdzv_id, std::nullopt);
  EXPECT_EQ(raw.master_port, std::nullopt);
  EXPECT_EQ(raw.monitor_interval, 0.1);
  EXPECT_EQ(raw.script, "T");
  EXPECT_EQ(raw.script_args, std::vector<std::string>{"a"});
}

TEST(RawOptions, EveryTextReachesItsField) {
  const struct {
    const char* name;
    std::string (*get)(const launch::RawOptions&);
  } rows[] = {
      {"nnodes", [](const launch::RawOptions& raw) { return *raw.nnodes; }},
      {"spares", [](const launch::RawOptions& raw) { return std::to_string(*raw.spares); }},
      {"nproc-per-node", [](const launch::RawOptions& raw) { return raw.nproc_per_node; }},
      {"slots", [](const launch::RawOptions& raw) { return *raw.slots; }},
      {"role", [](const launch::RawOptions& raw) { return raw.role; }},
      {"node-rank", [](const launch::RawOptions& raw) { return std::to_string(*raw.node_rank); }},
      {"master-addr", [](const launch::RawOptions& raw) { return *raw.master_addr; }},
      {"master-port",
       [](const launch::RawOptions& raw) { return std::to_string(*raw.master_port); }},
      {"local-addr", [](const launch::RawOptions& raw) { return *raw.local_addr; }},
      {"rdzv-backend", [](const launch::RawOptions& raw) { return *raw.rdzv_backend; }},
      {"rdzv-endpoint", [](const launch::RawOptions& raw) { return raw.rdzv_endpoint; }},
      {"rdzv-id", [](const launch::RawOptions& raw) { return *raw.rdzv_id; }},
      {"rdzv-conf", [](const launch::RawOptions& raw) { return raw.rdzv_conf; }},
      {"rdzv-token-file", [](const launch::RawOptions& raw) { return *raw.rdzv_token_file; }},
      {"exit-barrier-timeout",
       [](const launch::RawOptions& raw) { return std::to_string(*raw.exit_barrier_timeout); }},
      {"max-restarts",
       [](const launch::RawOptions& raw) { return std::to_string(raw.max_restarts); }},
      {"restart-backoff",
       [](const launch::RawOptions& raw) {
         return std::to_string(static_cast<int>(raw.restart_backoff));
       }},
      {"hang-after", [](const launch::RawOptions& raw) { return raw.hang_after; }},
      {"signals-to-handle", [](const launch::RawOptions& raw) { return *raw.signals_to_handle; }},
      {"shutdown-timeout",
       [](const launch::RawOptions& raw) { return std::to_string(*raw.shutdown_timeout); }},
      {"event-log-handler", [](const launch::RawOptions& raw) { return raw.event_log_handler; }},
      {"report", [](const launch::RawOptions& raw) { return *raw.report; }},
      {"events", [](const launch::RawOptions& raw) { return *raw.events; }},
      {"notify", [](const launch::RawOptions& raw) { return *raw.notify; }},
      {"notify-exec", [](const launch::RawOptions& raw) { return *raw.notify_exec; }},
      {"log-dir", [](const launch::RawOptions& raw) { return *raw.log_dir; }},
      {"redirects", [](const launch::RawOptions& raw) { return raw.redirects; }},
      {"tee", [](const launch::RawOptions& raw) { return raw.tee; }},
      {"log-line-prefix-template",
       [](const launch::RawOptions& raw) { return raw.log_line_prefix_template; }},
      {"local-ranks-filter", [](const launch::RawOptions& raw) { return raw.local_ranks_filter; }},
      {"duplicate-stdout-filters",
       [](const launch::RawOptions& raw) { return raw.duplicate_stdout_filters; }},
      {"duplicate-stderr-filters",
       [](const launch::RawOptions& raw) { return raw.duplicate_stderr_filters; }},
      {"log-max-size", [](const launch::RawOptions& raw) { return *raw.log_max_size; }},
      {"logs-specs", [](const launch::RawOptions& raw) { return *raw.logs_specs; }},
  };
  for (const auto& row : rows) {
    const Parsed options = parsed(run_table(), {std::string("--") + row.name, "41", "T"});
    EXPECT_EQ(row.get(raw_options(run_table(), options)), "41") << row.name;
  }
}

TEST(RawOptions, FlagsAndChoices) {
  const launch::RawOptions raw =
      raw_options(launch_table(), parsed(launch_table(), {"-m",
                                                          "--no-python",
                                                          "--run-path",
                                                          "--standalone",
                                                          "--use_env",
                                                          "--isolation",
                                                          "pidns",
                                                          "--exit-code",
                                                          "worker",
                                                          "--log-prefix",
                                                          "readable",
                                                          "--numa-binding",
                                                          "socket",
                                                          "--rank-order",
                                                          "address",
                                                          "--local-rank-spelling",
                                                          "underscore",
                                                          "--report-tails",
                                                          "all",
                                                          "--no-replacement",
                                                          "--monitor-interval",
                                                          "2",
                                                          "--virtual-local-rank",
                                                          "T"}));
  EXPECT_TRUE(raw.module && raw.no_python && raw.run_path && raw.standalone);
  EXPECT_TRUE(raw.virtual_local_rank && raw.use_env && raw.no_replacement);
  EXPECT_EQ(raw.isolation, "pidns");
  EXPECT_EQ(raw.exit_code, "worker");
  EXPECT_EQ(raw.log_prefix, "readable");
  EXPECT_EQ(raw.rank_order, "address");
  EXPECT_EQ(raw.numa_binding, "socket");
  EXPECT_EQ(raw.monitor_interval, 2.0);
  EXPECT_EQ(raw.local_rank_spelling, "underscore");
  EXPECT_EQ(raw.report_tails, "all");
}

TEST(RawOptions, NoTwoRowsFillOneFieldAndFewFillNone) {
  for (const Table* table : tables()) {
    std::set<void (*)(void*, const std::string&)> seen;
    for (const Group& group : table->groups) {
      for (const Option& option : group.options) {
        if (option.field.owner != nullptr) {
          EXPECT_TRUE(seen.insert(option.field.set).second) << option.name;
          EXPECT_EQ(option.kind, option.field.kind) << option.name;
        } else {
          EXPECT_TRUE(option.name == "help" || option.name == "version" ||
                      option.name == "start-method")
              << option.name;
        }
      }
    }
  }
}

TEST(RunRequest, IsFilledFromTheSameTable) {
  RunRequest request;
  fill(run_table(), parsed(run_table(), {"--explain", "--role", "r", "T"}), request);
  EXPECT_TRUE(request.explain);
  EXPECT_FALSE(request.print_completion);
  fill(run_table(), parsed(run_table(), {"--print-completion", "zsh"}), request);
  EXPECT_EQ(request.print_completion, "zsh");
}

TEST(RawOptions, SayWhereTheyWereGiven) {
  const std::vector<std::string> words = {"--nnodes", "2", "--role=r", "T"};
  const auto parsed = parse_options(run_table(), words, [](std::string_view name) {
    using Text = std::optional<std::string>;
    if (name == "PET_ROLE") return Text("other");
    if (name == "PET_MAX_RESTARTS") return Text("3");
    if (name == "PET_MODULE") return Text("1");
    return name == "PET_NO_PYTHON" ? Text("0") : Text();
  });
  ASSERT_TRUE(parsed);
  using Given = std::map<std::string, std::string, std::less<>>;
  EXPECT_EQ(raw_options(run_table(), *parsed).given, (Given{{"nnodes", ""},
                                                            {"role", ""},
                                                            {"max-restarts", "PET_MAX_RESTARTS"},
                                                            {"module", "PET_MODULE"}}));
}

// Rows of ours must not change an abbreviation that works with torchrun.
TEST(Tables, OwnRowsChangeNoAbbreviationOfTorchruns) {
  std::vector<std::string_view> theirs;
  for (const Group& group : run_table().groups)
    for (const Option& option : group.options)
      if (!option.own) theirs.push_back(option.name);
  for (const std::string_view name : theirs) {
    for (std::size_t length = 1; length < name.size(); ++length) {
      const std::string_view prefix = name.substr(0, length);
      const auto others = std::count_if(theirs.begin(), theirs.end(), [&](std::string_view other) {
        return other.starts_with(prefix);
      });
      const bool exact = std::find(theirs.begin(), theirs.end(), prefix) != theirs.end();
      if (others > 1 || exact) continue;
      // The exception: --print is an option of ours, and with torchrun an abbreviation of
      // --print-completion that users are unlikely to type.
      if (prefix == "print") continue;
      const std::string word = "--" + std::string(prefix);
      const std::vector<std::string> words = {word, "1", "T"};
      const auto parsed =
          parse_options(run_table(), words, [](std::string_view) { return std::nullopt; });
      // An option with choices refuses "1". Its error must name the option.
      if (parsed) {
        EXPECT_TRUE(parsed->has(name) || parsed->ended_by == name) << word;
      } else {
        EXPECT_NE(parsed.error().error.message.find("--" + std::string(name)), std::string::npos)
            << word << ": " << parsed.error().error.message;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::cli
