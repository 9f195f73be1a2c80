#include "cli/cluster_options.h"

#include "cli/on_demand_options.h"

namespace lockstep::cli {
namespace {

Option json(std::string_view help) {
  return {.name = "json", .field = into<&ClusterShowOptions::json>, .help = help};
}

// The machines of a cluster that is rented at its use.
Group rented_rows() {
  Group group{"A cluster that is rented at its use, given back when idle, and rented again",
              machine_rows("on-demand")};
  group.options.push_back({.name = "nodes",
                           .field = into<&ClusterAddOptions::nodes>,
                           .metavar = "N",
                           .help = "how many machines, all or none",
                           .shown_default = "1"});
  for (const Option& row : terms_rows())
    group.options.push_back(row);
  for (const Option& row : consent_rows())
    if (row.name == "yes") group.options.push_back(row);
  return group;
}

Table make_add_table() {
  return {.program = "lockstep cluster add",
          .summary =
              "Keeps hosts under a name; nothing is asked of them yet. Or a cluster of Slurm's,\n"
              "whose partitions and nodes Slurm itself knows.\n\n"
              "  lockstep cluster add gpus --host ubuntu@10.0.0.5 ubuntu@10.0.0.6\n"
              "  lockstep cluster add hpc --slurm --login ann@login.example.org\n"
              "  lockstep cluster add big --on-demand A100:8 --max-price 20",
          .epilog = "",
          .operands = Operands::names,
          .groups = {{"Options",
                      {
                          {.name = "host",
                           .field = into<&ClusterAddOptions::hosts>,
                           .metavar = "[USER@]HOST[:PORT]",
                           .help = "a host, or a name from ~/.ssh/config; may be given again, and "
                                   "more may stand behind it"},
                          {.name = "hosts",
                           .field = into<&ClusterAddOptions::host_lists>,
                           .metavar = "HOST,HOST",
                           .help = "hosts with commas between them"},
                          {.name = "hosts-file",
                           .field = into<&ClusterAddOptions::hosts_file>,
                           .metavar = "FILE",
                           .help = "one host a line, also as DeepSpeed's hostfile (slots=N)"},
                          {.name = "slurm",
                           .field = into<&ClusterAddOptions::slurm>,
                           .help = "a cluster of Slurm's"},
                          {.name = "login",
                           .field = into<&ClusterAddOptions::login>,
                           .metavar = "[USER@]HOST[:PORT]",
                           .help = "with --slurm: the host where its commands are",
                           .shown_default = "this machine"},
                          {.name = "user",
                           .field = into<&ClusterAddOptions::user>,
                           .metavar = "USER",
                           .help = "of hosts that are given without one",
                           .shown_default = "ssh's own choice"},
                          {.name = "key-path",
                           .field = into<&ClusterAddOptions::key_path>,
                           .metavar = "FILE",
                           .help = "private key",
                           .shown_default = "ssh's own choice"},
                          {.name = "jump",
                           .field = into<&ClusterAddOptions::jump>,
                           .metavar = "HOST",
                           .help = "connect through this host, or several: a,b"},
                          {.name = "replace",
                           .field = into<&ClusterAddOptions::replace>,
                           .help = "replace the hosts of a cluster that has this name already; "
                                   "accepted host keys stay"},
                          {.name = "json",
                           .field = into<&ClusterAddOptions::json>,
                           .help = "for programs: the cluster, as show --json prints it"},
                          help_option(),
                          version_option(),
                      }},
                     rented_rows()},
          .shown_names = "NAME [HOST..]"};
}

Table make_add_host_table() {
  Table table{
      .program = "lockstep cluster add-host",
      .summary =
          "Adds hosts to a cluster, behind those that it has. Their options may be given as\n"
          "for lockstep cluster add.\n\n"
          "  lockstep cluster add-host gpus ubuntu@10.0.0.7",
      .epilog = "",
      .operands = Operands::names,
      .groups = {{"Options", {}}},
      .shown_names = "NAME HOST.."};
  const Table add = make_add_table();
  for (const Option& row : add.groups[0].options)
    if (row.name != "slurm" && row.name != "login" && row.name != "replace")
      table.groups[0].options.push_back(row);
  return table;
}

Table make_show_table(std::string_view program, std::string_view summary,
                      std::string_view shown_names, std::string_view json_help) {
  Group group{"Options", {}};
  group.options.push_back(json(json_help));
  group.options.push_back(help_option());
  group.options.push_back(version_option());
  return {.program = program,
          .summary = summary,
          .epilog = "",
          .operands = Operands::names,
          .groups = {group},
          .shown_names = shown_names};
}

Table make_check_table() {
  return {.program = "lockstep cluster check",
          .summary =
              "Asks the nodes of a cluster, or one host, what they are and have: how far away\n"
              "they are, user, system, CPUs, memory, disks, GPUs, Python, programs, clock. Then\n"
              "it says what would stop a job there, and the cure. Of a cluster of Slurm's: its\n"
              "controller, commands, partitions, accounts and nodes.\n\n"
              "  lockstep cluster check gpus\n"
              "  lockstep cluster check ubuntu@10.0.0.5 --json",
          .epilog =
              "Exit code: 0, 1 where something would stop a job, 255 where a host is not\n"
              "reached.\n",
          .operands = Operands::names,
          .groups = {{"Options",
                      {
                          {.name = "json",
                           .field = into<&ClusterCheckOptions::json>,
                           .help = "for programs, with all that is known"},
                          {.name = "repair",
                           .field = into<&ClusterCheckOptions::repair>,
                           .help = "remove what clients that were killed have left, there and "
                                   "here: parts of the binary, binaries of other versions that "
                                   "nothing runs, sockets of connections that are gone"},
                      }},
                     place_group()},
          .shown_names = "NAME|HOST"};
}

}  // namespace

const Table& cluster_add_table() {
  static const Table table = make_add_table();
  return table;
}

const Table& cluster_list_table() {
  static const Table table = make_show_table(
      "lockstep cluster list", "Lists the clusters that this user has named.", "", "for programs");
  return table;
}

const Table& cluster_show_table() {
  static const Table table = [] {
    Table made =
        make_show_table("lockstep cluster show",
                        "Shows the nodes of a cluster; of Slurm's its partitions, what is\n"
                        "out of service, and the nodes that jobs leave out because they have\n"
                        "failed lately.",
                        "NAME", "for programs");
    auto& options = made.groups[0].options;
    options.insert(options.begin() + 1,
                   {.name = "forget-node",
                    .field = into<&ClusterShowOptions::forget_node>,
                    .metavar = "NODE",
                    .help = "let jobs use this node of Slurm's again that has failed lately"});
    return made;
  }();
  return table;
}

const Table& cluster_check_table() {
  static const Table table = make_check_table();
  return table;
}

const Table& cluster_add_host_table() {
  static const Table table = make_add_host_table();
  return table;
}

const Table& cluster_remove_host_table() {
  static const Table table = make_show_table(
      "lockstep cluster remove-host",
      "Takes hosts out of a cluster, by name or by number; those behind them move up.\n"
      "On the hosts nothing changes.\n\n"
      "  lockstep cluster remove-host gpus ubuntu@10.0.0.7",
      "NAME HOST..", "for programs: the cluster, as show --json prints it");
  return table;
}

const Table& cluster_remove_table() {
  static const Table table = make_show_table(
      "lockstep cluster remove",
      "Forgets a cluster and the host keys that were accepted for it. On its hosts\n"
      "nothing changes.",
      "NAME", "for programs: the cluster that was, as show --json prints it");
  return table;
}

}  // namespace lockstep::cli
