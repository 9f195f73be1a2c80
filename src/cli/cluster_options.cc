#include "cli/cluster_options.h"

#include "cli/on_demand_options.h"

namespace lockstep::cli {
namespace {

Option json(std::string_view help) {
  return {.name = "json", .field = into<&ClusterShowOptions::json>, .help = help};
}

// Returns the options for machines that are rented when the cluster is used.
Group rented_rows() {
  Group group{"Machines that are rented at first use, terminated when idle, and rented again",
              machine_rows("on-demand")};
  group.options.push_back({.name = "nodes",
                           .field = into<&ClusterAddOptions::nodes>,
                           .metavar = "N",
                           .help = "how many machines, all or none",
                           .shown_default = "1"});
  for (const Option& row : terms_rows())
    group.options.push_back(row);
  // Only --yes: adding a cluster rents nothing, so the other rows of consent have no meaning.
  for (const Option& row : consent_rows())
    if (row.name == "yes") group.options.push_back(row);
  return group;
}

Table make_add_table() {
  return {.program = "lockstep cluster add",
          .summary = "Gives hosts, a Slurm cluster or machines on demand a name.",
          .examples =
              "lockstep cluster add gpus --host ubuntu@10.0.0.5 ubuntu@10.0.0.6\n"
              "lockstep cluster add hpc --slurm --login ann@login.example.org\n"
              "lockstep cluster add big --on-demand A100:8 --max-price 20",
          .details =
              "Hosts are not asked for anything yet. Slurm itself knows the partitions and nodes\n"
              "of a Slurm cluster.",
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
                           .help = "hosts, a line each, or DeepSpeed's hostfile (slots=N)"},
                          {.name = "slurm",
                           .field = into<&ClusterAddOptions::slurm>,
                           .help = "a cluster of Slurm's"},
                          {.name = "login",
                           .field = into<&ClusterAddOptions::login>,
                           .metavar = "[USER@]HOST[:PORT]",
                           .help = "with --slurm: the host that has Slurm's commands",
                           .shown_default = "this machine"},
                          {.name = "user",
                           .field = into<&ClusterAddOptions::user>,
                           .metavar = "USER",
                           .help = "log in as this user, on hosts without a USER@",
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
  Table table{.program = "lockstep cluster add-host",
              .summary = "Adds hosts at the end of a cluster.",
              .examples =
                  "lockstep cluster add-host gpus ubuntu@10.0.0.7\n"
                  "lockstep cluster add-host gpus --key-path id_gpus ubuntu@10.0.0.8",
              .details = "Takes the options of lockstep cluster add.",
              .epilog = "",
              .operands = Operands::names,
              .groups = {{"Options", {}}},
              .shown_names = "NAME HOST.."};
  // Copied from `add`, so that both commands read hosts alike.
  const Table add = make_add_table();
  for (const Option& row : add.groups[0].options)
    if (row.name != "slurm" && row.name != "login" && row.name != "replace")
      table.groups[0].options.push_back(row);
  return table;
}

// Makes the table of a command with --json as its only option, besides --help and --version.
Table make_show_table(std::string_view program, std::string_view summary, std::string_view examples,
                      std::string_view details, std::string_view shown_names,
                      std::string_view json_help) {
  Group group{"Options", {}};
  group.options.push_back(json(json_help));
  group.options.push_back(help_option());
  group.options.push_back(version_option());
  return {.program = program,
          .summary = summary,
          .examples = examples,
          .details = details,
          .epilog = "",
          .operands = Operands::names,
          .groups = {group},
          .shown_names = shown_names};
}

Table make_check_table() {
  return {
      .program = "lockstep cluster check",
      .summary = "Shows the state of hosts, and problems that would stop a job.",
      .examples =
          "lockstep cluster check gpus\n"
          "lockstep cluster check ubuntu@10.0.0.5 --json",
      .details =
          "Measures the distance to each node and asks for user, system, CPUs, memory, disks,\n"
          "GPUs, Python, programs and clock. For a Slurm cluster: controller, commands,\n"
          "partitions, accounts and nodes. Names a cure for each problem.",
      .epilog =
          "Exit code: 0, 1 where something would stop a job, 255 where a host is not\n"
          "reached.\n",
      .operands = Operands::names,
      .groups = {{"Options",
                  {
                      {.name = "json",
                       .field = into<&ClusterCheckOptions::json>,
                       .help = "for programs, with all facts"},
                      {.name = "repair",
                       .field = into<&ClusterCheckOptions::repair>,
                       .help = "remove what killed clients have left, there and here: parts of the "
                               "binary, unused binaries of other versions, sockets of closed "
                               "connections"},
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
  static const Table table = make_show_table("lockstep cluster list", "Lists this user's clusters.",
                                             "lockstep cluster list\n"
                                             "lockstep cluster list --json",
                                             "", "", "for programs");
  return table;
}

const Table& cluster_show_table() {
  static const Table table = [] {
    Table made =
        make_show_table("lockstep cluster show", "Shows the nodes of a cluster.",
                        "lockstep cluster show gpus\n"
                        "lockstep cluster show hpc --forget-node n17",
                        "For a Slurm cluster: partitions, nodes out of service, and nodes that\n"
                        "jobs avoid because of recent failures.",
                        "NAME", "for programs");
    auto& options = made.groups[0].options;
    options.insert(options.begin() + 1,
                   {.name = "forget-node",
                    .field = into<&ClusterShowOptions::forget_node>,
                    .metavar = "NODE",
                    .help = "let jobs use this Slurm node again, although it failed lately"});
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
      "lockstep cluster remove-host", "Takes hosts out of a cluster, by name or by number.",
      "lockstep cluster remove-host gpus ubuntu@10.0.0.7\n"
      "lockstep cluster remove-host gpus 3",
      "The later hosts move up. Nothing changes on the hosts.", "NAME HOST..",
      "for programs: the cluster, as show --json prints it");
  return table;
}

const Table& cluster_remove_table() {
  static const Table table = make_show_table(
      "lockstep cluster remove", "Forgets a cluster and the host keys accepted for the cluster.",
      "lockstep cluster remove gpus\n"
      "lockstep cluster remove gpus --json",
      "Nothing changes on the hosts.", "NAME",
      "for programs: the removed cluster, as show --json prints it");
  return table;
}

}  // namespace lockstep::cli
