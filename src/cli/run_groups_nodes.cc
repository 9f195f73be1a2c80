// Rows of `lockstep run` about the nodes of a job and their rendezvous.
#include "base/text.h"
#include "cli/run_groups.h"
#include "launch/backend_row.h"

namespace lockstep::cli {
namespace {

// Builds the help from the backends' table, since only that table may know their names.
std::string_view backend_help() {
  static const std::string kText = [] {
    const auto views = launch::backend_names();
    return join(std::vector<std::string>(views.begin(), views.end()), ", ") +
           "; default: none for one node; for several nodes " +
           std::string(launch::static_backend().name) +
           " where --master-addr, --master-port or --node-rank is given, else " +
           std::string(launch::lockstep_backend().name);
  }();
  return kText;
}

}  // namespace

Group topology_group() {
  return {
      "Nodes and workers",
      {
          {.name = "nnodes",
           .field = into<&Raw::nnodes>,
           .metavar = "N|MIN:MAX",
           .help = "nodes of the job",
           .shown_default = "1:1",
           .env = "PET_NNODES",
           .shapes_job = true},
          {.name = "spares",
           .field = into<&Raw::spares>,
           .metavar = "N",
           .help = "nodes beyond --nnodes, waiting to replace a lost node",
           .shown_default = "0",
           .own = true,
           .shapes_job = true},
          {.name = "nproc-per-node",
           .field = into<&Raw::nproc_per_node>,
           .metavar = "N",
           .help = "workers on this node: a number, cpu, gpu, xpu, auto (GPUs, else CPUs), or a "
                   "device of an extension of PyTorch",
           .shown_default = "1",
           .env = "PET_NPROC_PER_NODE",
           .shapes_job = true},
          {.name = "node-rank",
           .field = into<&Raw::node_rank>,
           .metavar = "N",
           .help = "place of this node: static backend, or with --rank-order node-rank",
           .shown_default = "0",
           .env = "PET_NODE_RANK"},
          {.name = "role",
           .field = into<&Raw::role>,
           .metavar = "NAME",
           .help = "role of the workers, shown in log prefixes",
           .shown_default = "default",
           .env = "PET_ROLE"},
          {.name = "master-addr",
           .field = into<&Raw::master_addr>,
           .metavar = "HOST",
           .help = "address of node 0, static backend; IPv6 in brackets",
           .shown_default = "127.0.0.1",
           .env = "PET_MASTER_ADDR"},
          {.name = "master-port",
           .field = into<&Raw::master_port>,
           .metavar = "PORT",
           .help = "port of the store, static backend; the default on one node is a free port",
           .env = "PET_MASTER_PORT"},
          {.name = "local-addr",
           .field = into<&Raw::local_addr>,
           .metavar = "HOST",
           .help = "address under which other nodes reach this node",
           .env = "PET_LOCAL_ADDR"},
      }};
}

Group rendezvous_group() {
  return {"Rendezvous",
          {
              {.name = "standalone",
               .field = into<&Raw::standalone>,
               .help = "one node, free port, fresh run id",
               .env = "PET_STANDALONE"},
              {.name = "rdzv-backend",
               .field = into<&Raw::rdzv_backend>,
               .metavar = "NAME",
               .help = backend_help(),
               .env = "PET_RDZV_BACKEND"},
              {.name = "rdzv-endpoint",
               .field = into<&Raw::rdzv_endpoint>,
               .metavar = "HOST[:PORT]",
               .help = "where nodes meet",
               .env = "PET_RDZV_ENDPOINT"},
              {.name = "rdzv-id",
               .field = into<&Raw::rdzv_id>,
               .metavar = "ID",
               .help = "run id of the job",
               .shown_default = "none",
               .env = "PET_RDZV_ID"},
              {.name = "rdzv-conf",
               .field = into<&Raw::rdzv_conf>,
               .metavar = "K=V,...",
               .help = "settings of the backend, times in seconds: join_timeout [600], "
                       "last_call_timeout [30], close_timeout [30], read_timeout [60], ...",
               .env = "PET_RDZV_CONF"},
              {.name = "rdzv-token-file",
               .field = into<&Raw::rdzv_token_file>,
               .metavar = "FILE",
               .help = "the job's secret, lockstep backend; else $LOCKSTEP_RDZV_TOKEN",
               .own = true},
              {.name = "rank-order",
               .field = into<&Raw::rank_order>,
               .metavar = "HOW",
               .help = "which nodes get the lowest ranks, where all agents are Lockstep's",
               .choices = {"host", "node-rank", "address"},
               .own = true},
          }};
}

}  // namespace lockstep::cli
