// Expected results come from torchrun 2.14 on Python 3.14 (argparse), unless a comment says
// "superset".
#include "cli/options.h"

#include "cli/run_options.h"
#include "cli/store_options.h"

#include <gtest/gtest.h>

namespace lockstep::cli {
namespace {

using Words = std::vector<std::string>;
using Env = std::map<std::string, std::string, std::less<>>;

ParseResult parse(const Words& words, const Env& env = {}, const Table& table = run_table()) {
  return parse_options(table, words, [&env](std::string_view name) -> std::optional<std::string> {
    const auto found = env.find(name);
    if (found == env.end()) return std::nullopt;
    return found->second;
  });
}

std::string shown(const Words& words) {
  std::string out;
  for (const std::string& word : words)
    out += "<" + word + ">";
  return out;
}

TEST(Options, AcceptsValues) {
  const struct {
    Words words;
    const char* name;
    const char* value;
  } rows[] = {
      {{"--nnodes=1:2", "T"}, "nnodes", "1:2"},
      {{"--nnodes", "1:2", "T"}, "nnodes", "1:2"},
      {{"--nnodes=", "T"}, "nnodes", ""},
      {{"--nnodes", "", "T"}, "nnodes", ""},
      {{"--nproc_per_node", "2", "T"}, "nproc-per-node", "2"},
      {{"--nproc-per 2", "--nproc-per", "2", "T"},
       "nproc-per-node",
       nullptr},  // a script with a space
      {{"--nproc-per", "2", "T"}, "nproc-per-node", "2"},
      {{"--nproc_per", "2", "T"}, "nproc-per-node", "2"},
      {{"--nproc_per-node=2", "T"}, "nproc-per-node", "2"},  // superset
      {{"--nproc", "2", "T"}, "nproc-per-node", "2"},        // superset
      {{"--redirect", "1", "T"}, "redirects", "1"},
      {{"--re", "1", "T"}, "redirects", "1"},  // torchrun's rows go before ours (--report)
      {{"--iso", "none", "T"}, "isolation", "none"},
      {{"--log-line-prefix", "x", "T"}, "log-line-prefix-template", "x"},
      {{"-r3", "T"}, "redirects", "3"},
      {{"-r", "3", "T"}, "redirects", "3"},
      {{"-r=3", "T"}, "redirects", "3"},
      {{"-r=", "T"}, "redirects", ""},
      {{"-t=3", "T"}, "tee", "3"},
      {{"--tee=1", "T"}, "tee", "1"},
      {{"-mr3", "T"}, "redirects", "3"},
      {{"-mr=3", "T"}, "redirects", "3"},
      {{"-mt", "2", "T"}, "tee", "2"},
      {{"--max-restarts", "-1", "T"}, "max-restarts", "-1"},
      {{"--max-restarts", "1_0", "T"}, "max-restarts", "1_0"},
      {{"--rdzv-conf", "-1.5", "T"}, "rdzv-conf", "-1.5"},
      {{"--rdzv-conf", "-.5", "T"}, "rdzv-conf", "-.5"},
      {{"--rdzv-conf", "-", "T"}, "rdzv-conf", "-"},
      {{"--role", "-a b", "T"}, "role", "-a b"},  // with a space it is a value
      {{"--role", "a", "--role", "b", "T"}, "role", "b"},
      {{"--monitor-interval", "1e-1", "T"}, "monitor-interval", "1e-1"},
      {{"--numa-binding=node", "T"}, "numa-binding", "node"},
      {{"--stand", "T"}, "standalone", "1"},
      {{"-mm", "T"}, "module", "1"},
  };
  for (const auto& row : rows) {
    const auto parsed = parse(row.words);
    ASSERT_TRUE(parsed) << shown(row.words) << parsed.error().error.message;
    if (row.value == nullptr) {
      EXPECT_FALSE(parsed->has(row.name)) << shown(row.words);
    } else {
      EXPECT_EQ(parsed->text(row.name), row.value) << shown(row.words);
      EXPECT_EQ(parsed->script, "T") << shown(row.words);
    }
  }
}

TEST(Options, SplitsScriptFromOptions) {
  const struct {
    Words words;
    const char* script;
    Words rest;
  } rows[] = {
      {{"T"}, "T", {}},
      {{"T", "a", "b"}, "T", {"a", "b"}},
      {{"T", "--nproc-per-node", "9", "-r"}, "T", {"--nproc-per-node", "9", "-r"}},
      {{"T", "--bogus", "--help", "--rdzv", "x"}, "T", {"--bogus", "--help", "--rdzv", "x"}},
      {{"--", "T", "a"}, "T", {"a"}},
      {{"--", "--T", "a"}, "--T", {"a"}},
      {{"--standalone", "--", "-m", "a"}, "-m", {"a"}},
      {{"T", "--", "a"}, "T", {"a"}},
      {{"T", "--"}, "T", {}},
      {{"T", "--", "--"}, "T", {"--"}},
      {{"T", "--", "a", "--", "b"}, "T", {"a", "--", "b"}},
      {{"T", "a", "--", "b"}, "T", {"a", "--", "b"}},
      {{"--", "T", "--", "b"}, "T", {"--", "b"}},
      {{"--", "--"}, "--", {}},
      {{""}, "", {}},
      {{"-"}, "-", {}},
      {{"-1", "x"}, "-1", {"x"}},
      {{"-a b", "x"}, "-a b", {"x"}},
  };
  for (const auto& row : rows) {
    const auto parsed = parse(row.words);
    ASSERT_TRUE(parsed) << shown(row.words) << parsed.error().error.message;
    EXPECT_EQ(parsed->script, row.script) << shown(row.words);
    EXPECT_EQ(parsed->script_args, row.rest) << shown(row.words);
  }
}

TEST(Options, RefusesWithTwo) {
  const struct {
    Words words;
    const char* message;
  } rows[] = {
      {{}, "the following arguments are required: training_script"},
      {{"--"}, "the following arguments are required: training_script"},
      {{"--standalone"}, "the following arguments are required: training_script"},
      {{"--bogus", "T"}, "unrecognized arguments: --bogus"},
      {{"--bogus=1", "T"}, "unrecognized arguments: --bogus=1"},
      {{"---nnodes", "1", "T"}, "unrecognized arguments: ---nnodes"},
      {{"-x", "T"}, "unrecognized arguments: -x"},
      {{"-mx", "T"}, "unrecognized arguments: -x"},
      {{"--nnodes"}, "argument --nnodes: expected one argument"},
      {{"--nnodes", "--", "1", "T"}, "argument --nnodes: expected one argument"},
      {{"--nnodes", "--standalone", "T"}, "argument --nnodes: expected one argument"},
      {{"--nnodes", "-x", "T"}, "argument --nnodes: expected one argument"},
      {{"--nnodes", "--rdzv", "T"}, "argument --nnodes: expected one argument"},
      {{"--rdzv", "x", "T"},
       "ambiguous option: --rdzv could match --rdzv-backend, --rdzv-endpoint"},
      {{"--max", "1", "--m=1", "T"}, "ambiguous option: --m=1 could match"},
      {{"--=1", "T"}, "ambiguous option: --=1"},
      {{"--standalone=1", "T"}, "argument --standalone: ignored explicit argument '1'"},
      {{"-m=1", "T"}, "argument --module: ignored explicit argument '1'"},
      {{"-m-r", "T"}, "argument --module: ignored explicit argument '-r'"},
      {{"--max-restarts", "x", "T"}, "argument --max-restarts: invalid int value: 'x'"},
      {{"--max-restarts", "1.5", "T"}, "argument --max-restarts: invalid int value: '1.5'"},
      {{"--monitor-interval", "x", "T"}, "argument --monitor-interval: invalid float value: 'x'"},
      {{"--start-method", "x", "T"},
       "argument --start-method: invalid choice: 'x' (choose from spawn"},
      {{"--numa-binding=x", "T"}, "invalid choice: 'x'"},
  };
  for (const auto& row : rows) {
    const auto parsed = parse(row.words);
    ASSERT_FALSE(parsed) << shown(row.words);
    EXPECT_EQ(parsed.error().exit_code, ExitCode::usage) << shown(row.words);
    EXPECT_NE(parsed.error().error.message.find(row.message), std::string::npos)
        << shown(row.words) << parsed.error().error.message;
  }
}

TEST(Options, HintsAtWhatWasMeant) {
  EXPECT_EQ(parse({"--nnode-s", "1", "T"}).error().error.hint, "did you mean --nnodes?");
  EXPECT_EQ(parse({"--nproc_pernode=1", "T"}).error().error.hint, "did you mean --nproc-per-node?");
  EXPECT_EQ(parse({"--nprocs", "4", "T"}).error().error.hint, "did you mean --nproc-per-node?");
  EXPECT_EQ(parse({"-np", "4", "T"}).error().error.hint, "did you mean --nproc-per-node?");
  EXPECT_EQ(parse({"--backend=c10d", "T"}).error().error.hint, "did you mean --rdzv-backend?");
  EXPECT_EQ(parse({"--endpoint", "a", "T"}).error().error.hint, "did you mean --rdzv-endpoint?");
  EXPECT_EQ(parse({"--xyzzy-and-more", "T"}).error().error.hint, "");
  EXPECT_EQ(parse({"--backend", "x"}, {}, store_table()).error().error.hint, "");
}

TEST(Options, EnvironmentReplacesDefaults) {
  EXPECT_EQ(parse({"T"}, {{"PET_NPROC_PER_NODE", "2"}})->text("nproc-per-node"), "2");
  EXPECT_EQ(
      parse({"--nproc-per-node", "1", "T"}, {{"PET_NPROC_PER_NODE", "2"}})->text("nproc-per-node"),
      "1");
  EXPECT_EQ(parse({"T"}, {{"PET_NNODES", ""}})->text("nnodes"), "");
  EXPECT_EQ(parse({"T"}, {{"PET_START_METHOD", "bogus"}})->text("start-method"), "bogus");
  EXPECT_FALSE(parse({"T"}, {{"PET_NUMA_BINDING", "node"}})->has("numa-binding"));
  EXPECT_FALSE(parse({"T"}, {{"PET_LOGS_SPECS", "x"}})->has("logs-specs"));
  EXPECT_FALSE(parse({"T"}, {{"PET_PRINT_COMPLETION", "bash"}})->has("print-completion"));
  EXPECT_FALSE(parse({}, {{"PET_TRAINING_SCRIPT", "T"}}));
}

TEST(Options, EnvironmentFlagsAreIntegers) {
  EXPECT_TRUE(parse({"T"}, {{"PET_STANDALONE", "1"}})->has("standalone"));
  EXPECT_TRUE(parse({"T"}, {{"PET_MODULE", "-2"}})->has("module"));
  EXPECT_FALSE(parse({"T"}, {{"PET_STANDALONE", " 0 "}})->has("standalone"));
  EXPECT_TRUE(parse({"--standalone", "T"}, {{"PET_STANDALONE", "0"}})->has("standalone"));
  for (const char* bad : {"true", "", "1.0"}) {
    const auto parsed = parse({"--bogus"}, {{"PET_STANDALONE", bad}});
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().exit_code, ExitCode::failed);
    EXPECT_NE(parsed.error().error.message.find("PET_STANDALONE: invalid literal for int()"),
              std::string::npos);
  }
}

TEST(Options, EnvironmentValuesAreConverted) {
  const auto parsed = parse({"T"}, {{"PET_MAX_RESTARTS", "a"}});
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().exit_code, ExitCode::usage);
  EXPECT_NE(parsed.error().error.hint.find("PET_MAX_RESTARTS"), std::string::npos);
  EXPECT_TRUE(parse({"--max-restarts", "1", "T"}, {{"PET_MAX_RESTARTS", "a"}}));
}

TEST(Options, HelpEndsParsing) {
  for (const Words& words :
       {Words{"--help"}, {"-h", "--bogus"}, {"--bogus", "--he"}, {"-mh"}, {"-hm"}}) {
    const auto parsed = parse(words);
    ASSERT_TRUE(parsed) << shown(words);
    EXPECT_EQ(parsed->ended_by, "help");
  }
  EXPECT_EQ(parse({"--print-completion", "zsh", "--bogus"})->ended_by, "print-completion");
  EXPECT_EQ(parse({"T", "--help"})->ended_by, "");
  EXPECT_FALSE(parse({"--max-restarts", "x", "--help"}));
}

TEST(Options, TablesWithoutScriptTakeNoWords) {
  EXPECT_EQ(parse({"--port", "1", "--print-stats"}, {}, store_table())->text("port"), "1");
  EXPECT_FALSE(parse({"x"}, {}, store_table()));
  EXPECT_FALSE(parse({"--", "x"}, {}, store_table()));
}

}  // namespace
}  // namespace lockstep::cli
