#include "cli/forward_options.h"

#include <algorithm>

namespace lockstep::cli {
namespace {

// Returns place_group() with --node instead of --nodes, because both commands take one node.
Group node_group() {
  Group group = place_group();
  std::replace_if(
      group.options.begin(), group.options.end(),
      [](const Option& row) { return row.name == "nodes"; },
      Option{.name = "node",
             .field = into<&OneNodeOptions::node>,
             .metavar = "N",
             .help = "node of the cluster",
             .shown_default = "0"});
  return group;
}

}  // namespace

const Table& ssh_table() {
  static const Table table = {
      .program = "lockstep ssh",
      .summary = "Logs in to a host over the kept connection.",
      .examples =
          "lockstep ssh ubuntu@10.0.0.5\n"
          "lockstep ssh gpus --node 1 -- -t htop",
      .details = "The words behind -- go to ssh: options of ssh, or a command.",
      .epilog = "Exit code: ssh's own.\n",
      .operands = Operands::names,
      .groups = {node_group()},
      .shown_names = "HOST|CLUSTER [-- SSH'S OWN WORDS]"};
  return table;
}

const Table& forward_table() {
  static const Table table = {
      .program = "lockstep forward",
      .summary = "Connects ports of this machine to ports of a host, until stopped.",
      .examples =
          "lockstep forward gpus 8888\n"
          "lockstep forward gpus --node 1 6006:6006 8080:db.lan:80",
      .details =
          "Listens on 127.0.0.1. The node looks HOST up; without HOST, PORT is the node's own.\n"
          "LOCAL 0 takes a free port.",
      .epilog = "",
      .operands = Operands::names,
      .groups = {{"Options",
                  {{.name = "json",
                    .field = into<&OneNodeOptions::json>,
                    .help = "for programs: a JSON object for every port, one per line"}}},
                 node_group()},
      .shown_names = "HOST|CLUSTER [LOCAL:[HOST:]]PORT ..."};
  return table;
}

OneNodeOptions one_node_options(const Table& table, const Parsed& parsed) {
  OneNodeOptions options;
  fill(table, parsed, options);
  fill(table, parsed, options.places);
  if (parsed.has("node")) options.places.nodes = std::to_string(options.node);
  return options;
}

}  // namespace lockstep::cli
