// The table of docs/command-line.md: backend, endpoint and store of a job, and refusals.
#include "launch/backend_choice.h"
#include "launch/backend_row.h"
#include "launch/backends/etcd_settings.h"
#include "launch/backends/hub_settings.h"
#include "launch/launch_testing.h"

#include <gtest/gtest.h>

namespace lockstep::launch {
namespace {

struct Row {
  const char* what;
  Change change;
  const char* backend;
  const char* endpoint;  // host:port of what was read; "" for none
  bool private_store;
  Rule why = Rule::none;
};

std::string places(const LaunchConfig& config) {
  std::string text;
  for (const codec::RdzvEndpoint& place : config.rdzv_endpoints)
    text.append(text.empty() ? "" : ",")
        .append(place.host)
        .append(":")
        .append(std::to_string(place.port));
  return text;
}

void expect(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const auto config = make(row.change);
    ASSERT_TRUE(config) << row.what << ": " << config.error().message;
    EXPECT_EQ(config->backend->name, row.backend) << row.what;
    EXPECT_EQ(places(*config), row.endpoint) << row.what;
    EXPECT_EQ(config->private_store, row.private_store) << row.what;
    const auto origin = config->origins.find("rdzv-backend");
    EXPECT_EQ(origin == config->origins.end() ? Rule::none : origin->second.rule, row.why)
        << row.what;
  }
}

TEST(RdzvRule, OneNode) {
  expect({
      {"nothing", unchanged, "c10d", "", true, Rule::one_node},
      {"standalone", [](RawOptions& raw) { raw.standalone = true; }, "c10d", "", true,
       Rule::standalone},
      {"standalone leaves of an elastic range the one node",
       [](RawOptions& raw) {
         raw.standalone = true;
         raw.nnodes = "1:4";
       },
       "c10d", "", true, Rule::standalone},
      {"static by name", [](RawOptions& raw) { raw.rdzv_backend = "static"; }, "c10d", "", true,
       Rule::one_node},
      {"node rank 0", [](RawOptions& raw) { raw.node_rank = 0; }, "c10d", "", true, Rule::one_node},
      {"a port", [](RawOptions& raw) { raw.master_port = 5; }, "static", "127.0.0.1:5", false,
       Rule::master_options},
      {"an endpoint", [](RawOptions& raw) { raw.rdzv_endpoint = "h:5"; }, "static", "h:5", false,
       Rule::torchrun},
      {"c10d by name",
       [](RawOptions& raw) {
         raw.rdzv_backend = "c10d";
         raw.rdzv_endpoint = "h:5";
       },
       "c10d", "", true},
      {"etcd by name", [](RawOptions& raw) { raw.rdzv_backend = "etcd"; }, "etcd", "", true},
      {"lockstep by name, which needs no endpoint then",
       [](RawOptions& raw) { raw.rdzv_backend = "lockstep"; }, "lockstep", "", true},
      {"a file",
       [](RawOptions& raw) {
         raw.rdzv_backend = "c10d";
         raw.rdzv_conf = "store_type=file";
       },
       "c10d", "", true},
  });
}

TEST(RdzvRule, SeveralNodesWithoutABackend) {
  expect({
      {"an endpoint alone",
       [](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_endpoint = "h";
       },
       "lockstep", "h:29400", false, Rule::several_nodes},
      {"an elastic range",
       [](RawOptions& raw) {
         raw.nnodes = "1:4";
         raw.rdzv_endpoint = "[fd00::1]:7";
       },
       "lockstep", "fd00::1:7", false, Rule::several_nodes},
      {"a master address",
       [](RawOptions& raw) {
         raw.nnodes = "2";
         raw.master_addr = "h";
       },
       "static", "h:29500", false, Rule::master_options},
      {"a master port",
       [](RawOptions& raw) {
         raw.nnodes = "2";
         raw.master_port = 5;
       },
       "static", "127.0.0.1:5", false, Rule::master_options},
      {"a node rank",
       [](RawOptions& raw) {
         raw.nnodes = "2";
         raw.node_rank = 1;
         raw.rdzv_endpoint = "h:5";
       },
       "static", "h:5", false, Rule::master_options},
      {"an elastic range and a node rank: static, as torchrun",
       [](RawOptions& raw) {
         raw.nnodes = "1:2";
         raw.node_rank = 1;
         raw.master_addr = "h";
       },
       "static", "h:29500", false, Rule::master_options},
      {"called torchrun",
       [](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_endpoint = "h:5";
         raw.called_torchrun = true;
       },
       "static", "h:5", false, Rule::torchrun},
      {"lockstep launch",
       [](RawOptions& raw) {
         raw.nnodes = "2";
         raw.master_addr = "h";
         raw.legacy_launch = true;
       },
       "static", "h:29500", false, Rule::torchrun},
  });
}

TEST(RdzvRule, SeveralNodesAndANamedBackend) {
  expect({
      {"static",
       [](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_backend = "static";
       },
       "static", "127.0.0.1:29500", false},
      {"c10d",
       [](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_backend = "c10d";
         raw.rdzv_endpoint = " node1 ";
       },
       "c10d", "node1:29400", false},
      {"c10d, master options and node rank do not change it",
       [](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_backend = "c10d";
         raw.rdzv_endpoint = "h";
         raw.master_addr = "other";
         raw.node_rank = 1;
       },
       "c10d", "h:29400", false},
      {"c10d without an endpoint",
       [](RawOptions& raw) {
         raw.nnodes = "1:2";
         raw.rdzv_backend = "c10d";
       },
       "c10d", "localhost:29400", false},
      {"c10d by a file",
       [](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_backend = "c10d";
         raw.rdzv_endpoint = "meet:here?";
         raw.rdzv_conf = "store_type=FILE";
       },
       "c10d", "", false},
      {"etcd",
       [](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_backend = "etcd";
         raw.rdzv_endpoint = "h";
       },
       "etcd", "h:2379", false},
      {"etcd-v2",
       [](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_backend = "etcd-v2";
       },
       "etcd-v2", "localhost:2379", false},
      {"lockstep, its host and those that come next",
       [](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_backend = "lockstep";
         raw.rdzv_endpoint = "a:1,b";
       },
       "lockstep", "a:1,b:29400", false},
      {"etcd3, several members",
       [](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_backend = "etcd3";
         raw.rdzv_endpoint = "a, b:7,[::1]";
       },
       "etcd3", "a:2379,b:7,::1:2379", false},
      {"etcd3, as etcd's own tools write it",
       [](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_backend = "etcd3";
         raw.rdzv_endpoint = "https://a:1, HTTPS://[::1]/";
       },
       "etcd3", "a:1,::1:2379", false},
      {"lockstep, under the name of torchrun too",
       [](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_backend = "lockstep";
         raw.rdzv_endpoint = "h";
         raw.called_torchrun = true;
       },
       "lockstep", "h:29400", false},
  });
}

TEST(RdzvRule, ChoicesAreReadAsTorchrunReadsThem) {
  const auto config = make([](RawOptions& raw) {
    raw.nnodes = "2";
    raw.rdzv_backend = "c10d";
    raw.rdzv_endpoint = " meet ";
    raw.rdzv_conf = "store_type=File";
  });
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->conf.text("store_type"), "file");
  EXPECT_EQ(config->rdzv_endpoint, "meet");
}

TEST(RdzvRule, ConfThatTheBackendDoesNotReadIsNotRefused) {
  const auto config = make([](RawOptions& raw) {
    raw.nnodes = "2";
    raw.rdzv_backend = "static";
    raw.rdzv_endpoint = "h:1";
    raw.rdzv_conf = "join_timeout=x,is_host=true,read_timeout=7,anything=goes,rank=x";
  });
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->warnings,
            Words({"--rdzv-conf join_timeout=x is not read by the static backend, and would be "
                   "refused by backends that read it"}));
  for (const char* backend : {"c10d", "lockstep", "etcd3", "etcd-v2"}) {
    RawOptions raw;
    raw.script = "T";
    raw.rdzv_backend = backend;
    raw.rdzv_conf = "timeout=900s";
    EXPECT_TRUE(make_launch_config(raw, Machine{}.facts())) << backend;
  }
}

// Every setting read by a backend needs a key: a missing key aborts.
TEST(Backends, EachIsMadeFromItsRow) {
  for (const BackendRow* row : backends()) {
    RawOptions raw;
    raw.script = "T";
    raw.nnodes = "2";
    raw.rdzv_backend = std::string(row->name);
    raw.rdzv_endpoint = "127.0.0.1:1";
    raw.node_rank = 0;
    const auto config = make_launch_config(raw, Machine{}.facts());
    ASSERT_TRUE(config) << row->name << ": " << config.error().message;
    EXPECT_EQ(config->backend, find_backend(row->name));
    io::Loop loop;
    EXPECT_NE(make_backend(loop, *config, {}, nullptr), nullptr);
  }
}

TEST(Backends, EtcdIsReachedAsItsKeysSay) {
  const auto access = [](const char* backend, const char* endpoint, const std::string& conf) {
    RawOptions raw;
    raw.script = "T";
    raw.nnodes = "2";
    raw.rdzv_backend = backend;
    raw.rdzv_endpoint = endpoint;
    raw.rdzv_conf = conf;
    const auto config = make_launch_config(raw, Machine{}.facts());
    EXPECT_TRUE(config) << config.error().message;
    const bool legacy = config->backend == find_backend("etcd");
    return etcd_access(*config, legacy ? TlsKeyNames{"cert", "key", "cacert"}
                                       : TlsKeyNames{"ssl_cert", "ssl_cert_key", "ca_cert"});
  };
  const auto secure =
      access("etcd-v2", "a", "protocol= HTTPS ,ssl_cert=T,ssl_cert_key=t0.py,ca_cert=t1.py");
  EXPECT_TRUE(secure.https);
  EXPECT_EQ(secure.tls.cert_file + " " + secure.tls.key_file + " " + secure.tls.ca_file,
            "T t0.py t1.py");
  EXPECT_EQ(secure.timeout, std::chrono::seconds(10));
  const auto legacy = access("etcd", "a", "cert=T,read_timeout=60");
  EXPECT_FALSE(legacy.https);
  EXPECT_EQ(legacy.tls.cert_file, "T");
  EXPECT_EQ(legacy.timeout, std::chrono::seconds(60));
  EXPECT_TRUE(access("etcd3", "https://a:1,https://b", "").https);
  EXPECT_EQ(access("etcd3", "https://a:1,https://b", "").endpoints.size(), 2U);
}

TEST(Backends, ANameThatIsNearlyOneIsNamed) {
  const auto config = make([](RawOptions& raw) { raw.rdzv_backend = "etdc3"; });
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().hint, "did you mean etcd3?");
}

TEST(RdzvRule, ASlipInAKeyOfTheConfIsNamed) {
  const auto config = make([](RawOptions& raw) {
    raw.nnodes = "2";
    raw.rdzv_endpoint = "h:1";
    raw.rdzv_conf = "jion_timeout=3,join_timeout=4,ca_cert=f,something=else,kee=1";
  });
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->warnings.size(), 1U) << config->warnings.back();
  EXPECT_EQ(config->warnings[0],
            "--rdzv-conf jion_timeout=3 is not known: did you mean join_timeout?");
}

TEST(RdzvRule, Warns) {
  const struct {
    Change change;
    const char* words;
  } rows[] = {
      {[](RawOptions& raw) {
         raw.nnodes = "1:2";
         raw.rdzv_backend = "static";
         raw.rdzv_endpoint = "h:1";
       },
       "the static backend is not elastic: the job starts when all 2 nodes are there"},
      {[](RawOptions& raw) {
         raw.nnodes = "2";
         raw.master_port = 5;
       },
       "--master-addr is not given"},
      {[](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_backend = "etcd";
       },
       "master_addr is only used for static"},
      {[](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_backend = "c10d";
         raw.rdzv_endpoint = "h";
         raw.node_rank = 1;
       },
       "It will be ignored for rdzv_backend=c10d."},
  };
  for (const auto& row : rows) {
    const auto config = make(row.change);
    ASSERT_TRUE(config) << row.words << config.error().message;
    ASSERT_EQ(config->warnings.size(), 1U) << row.words;
    EXPECT_NE(config->warnings[0].find(row.words), std::string::npos) << config->warnings[0];
  }
}

// Returns how long a node may be silent in a job of three listed nodes.
std::chrono::milliseconds silence_of_three(Change change) {
  RawOptions raw;
  raw.script = "T";
  raw.nnodes = "3";
  raw.rdzv_endpoint = "a:1,b:1,c:1";
  change(raw);
  const auto config = make_launch_config(raw, Machine().facts());
  EXPECT_TRUE(config) << config.error().message;
  if (!config) return {};
  io::Loop loop;
  const auto settings = lockstep_settings(*config, {.loop = loop, .offer = {}, .offer_store = {}});
  return settings.keep_alive_interval * settings.keep_alive_max_attempt;
}

// Where the loss of a node ends the job, a short stall of the network must not.
TEST(RdzvRule, AListedNodeIsLostSoonerOnlyIfTheJobSurvivesThat) {
  using namespace std::chrono_literals;
  EXPECT_EQ(silence_of_three(unchanged), 5000ms);
  EXPECT_EQ(silence_of_three([](RawOptions& raw) { raw.nnodes = "2:3"; }), 2500ms);
  EXPECT_EQ(silence_of_three([](RawOptions& raw) { raw.spares = 1; }), 2500ms);
  EXPECT_EQ(silence_of_three([](RawOptions& raw) { raw.max_restarts = 1; }), 2500ms);
  EXPECT_EQ(silence_of_three([](RawOptions& raw) {
              raw.max_restarts = 1;
              raw.no_replacement = true;
            }),
            5000ms);
  EXPECT_EQ(silence_of_three([](RawOptions& raw) {
              raw.max_restarts = 1;
              raw.rdzv_conf = "keep_alive_interval=2";
            }),
            10000ms);
}

}  // namespace
}  // namespace lockstep::launch
