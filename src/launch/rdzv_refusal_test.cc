// Endpoints, ranks, run ids and settings that are refused, with the words of the refusal.
#include "launch/backend_choice.h"
#include "launch/backend_row.h"
#include "launch/backends/etcd_settings.h"
#include "launch/launch_testing.h"

#include <gtest/gtest.h>

namespace lockstep::launch {
namespace {

struct Refusal {
  Change change;
  const char* words;
};

void expect_refused(const std::vector<Refusal>& rows) {
  for (const Refusal& row : rows) {
    const auto config = make(row.change);
    ASSERT_FALSE(config) << row.words;
    EXPECT_NE(config.error().message.find(row.words), std::string::npos)
        << config.error().message << "\nwants " << row.words;
    EXPECT_EQ(config.error().message.find('\n'), std::string::npos);
  }
}

TEST(RdzvRule, RefusesEndpoints) {
  expect_refused({
      {[](RawOptions& raw) { raw.nnodes = "2"; }, "2 nodes need a place to meet"},
      {[](RawOptions& raw) { raw.nnodes = "1:2"; }, "2 nodes need a place to meet"},
      {[](RawOptions& raw) {
         raw.standalone = true;
         raw.nnodes = "2:3";
       },
       "--standalone is for one node, and --nnodes is 2:3"},
      {[](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_endpoint = "h:0";
       },
       "port 0 in the rendezvous endpoint 'h:0'"},
      {[](RawOptions& raw) {
         raw.nnodes = "2";
         raw.master_port = 0;
       },
       "port 0 in the rendezvous endpoint '127.0.0.1:0'"},
      {[](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_endpoint = "::1";
       },
       "the hostname of the rendezvous endpoint '::1' must be an IPv6 address"},
      {[](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_endpoint = "http://h:1";
       },
       "dot-separated list of labels"},
      {[](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_endpoint = "h:99999";
       },
       "must be an integer between 0 and 65536"},
      {[](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_backend = "c10d";
         raw.rdzv_endpoint = "a:1,b:2";
       },
       "dot-separated list of labels"},
      {[](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_backend = "etcd3";
         raw.rdzv_endpoint = "a,,b";
       },
       "an empty name in 'a,,b'"},
      {[](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_backend = "static";
         raw.rdzv_endpoint = "h";
       },
       "port is missing in endpoint: h"},
      {[](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_backend = "c10d";
         raw.rdzv_conf = "store_type=file";
       },
       "store_type=file needs a file"},
      {[](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_backend = "c10d";
         raw.rdzv_endpoint = "/nowhere/file";
         raw.rdzv_conf = "store_type=file";
       },
       "directory /nowhere/ does not exist"},
      {[](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_backend = "c10d";
         raw.rdzv_endpoint = "dir";
         raw.rdzv_conf = "store_type=file";
       },
       "must be a plain file"},
  });
}

TEST(RdzvRule, RefusesRanksAndIds) {
  expect_refused({
      {[](RawOptions& raw) {
         raw.nnodes = "2";
         raw.node_rank = 2;
       },
       "node_rank must be >= 0 and < nnodes, got node_rank=2, nnodes=2"},
      {[](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_backend = "lockstep";
         raw.rdzv_endpoint = "h";
         raw.node_rank = -1;
       },
       "got node_rank=-1"},
      {[](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_endpoint = "h";
         raw.rdzv_id = "";
       },
       "--rdzv-id is empty"},
      {[](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_backend = "etcd-v2";
         raw.rdzv_endpoint = "https://h:1";
       },
       "--rdzv-endpoint https://h:1: the etcd-v2 backend takes no scheme there"},
      {[](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_backend = "etcd3";
         raw.rdzv_endpoint = "https://a,http://b";
       },
       "both http and https are asked for"},
      {[](RawOptions& raw) {
         raw.nnodes = "2";
         raw.rdzv_backend = "etcd3";
         raw.rdzv_endpoint = "https://a";
         raw.rdzv_conf = "protocol=http";
       },
       "both http and https are asked for"},
      {[](RawOptions& raw) { raw.rdzv_backend = "zeus-adapter"; },
       "'zeus-adapter' is not registered"},
      {[](RawOptions& raw) { raw.rdzv_backend = ""; }, "'' is not registered"},
  });
}

TEST(RdzvRule, RefusesConf) {
  const struct {
    const char* backend;
    const char* conf;
    const char* words;
  } rows[] = {
      {"c10d", "join_timeout=0", "'join_timeout' must be positive, got 0"},
      {"lockstep", "join_timeout=-1", "'join_timeout' must be positive, got -1"},
      {"etcd3", "heartbeat_timeout=x", "valid integer value"},
      {"etcd-v2", "close_timeout=0", "must be positive"},
      {"etcd-v2", "read_timeout=0", "must be positive"},
      {"lockstep", "keep_alive_interval=0", "must be positive"},
      {"lockstep", "keep_alive_max_attempt=0", "must be positive"},
      {"etcd3", "lease_ttl=1", "'lease_ttl' must be between 2 and 3600, got 1"},
      {"etcd3", "lease_ttl=3601", "'lease_ttl' must be between 2 and 3600, got 3601"},
      {"etcd", "last_call_timeout=0", "must be positive"},
      {"c10d", "join_timeout=99999999999999", "must be at most 31536000"},
      {"etcd", "timeout=x", "valid integer value"},
      {"etcd", "timeout=-1", "'timeout' must be between 0 and 31536000, got -1"},
      {"etcd3", "user=u", "'user' and 'password_file' go together"},
      {"c10d", "store_type=redis", "'store_type' must be tcp or file, got redis"},
      {"c10d", "is_host=maybe", "valid boolean value"},
      {"etcd", "protocol=ftp", "'protocol' must be http or https, got ftp"},
      {"etcd-v2", "ssl_cert=absent.pem", "'ssl_cert' names no file: absent.pem"},
      {"etcd3", "ca_cert=dir", "'ca_cert' names no file: dir"},
      {"etcd", "cacert=absent.pem", "'cacert' names no file: absent.pem"},
      {"lockstep", "a", "option 'a' must have a value specified"},
      {"etcd3", "=1", "must be in format <key1>="},
  };
  for (const char* nodes : {"1", "2"}) {
    for (const auto& row : rows) {
      RawOptions raw;
      raw.script = "T";
      raw.nnodes = nodes;
      raw.rdzv_endpoint = "h:1";
      raw.rdzv_backend = row.backend;
      raw.rdzv_conf = row.conf;
      const auto config = make_launch_config(raw, Machine{}.facts());
      ASSERT_FALSE(config) << row.backend << " " << row.conf;
      EXPECT_NE(config.error().message.find(row.words), std::string::npos)
          << config.error().message;
    }
  }
}

}  // namespace
}  // namespace lockstep::launch
