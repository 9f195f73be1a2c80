#include "cli/rent_tables.h"

#include <utility>

namespace lockstep::cli {
namespace {

constexpr std::string_view kOnlyFakes =
    "Never run against a real provider: tested against simulators only. docs/cloud.md\n"
    "lists the open questions.\n";

constexpr std::string_view kSweeps =
    "Like every command on demand, this also terminates machines with our\n"
    "tag that are no longer wanted: docs/cloud-lifecycle.md, \"The sweep\".\n";

Option json_row(std::string_view help) {
  return {.name = "json", .field = into<&UpOptions::json>, .help = help};
}

// Adds --help and --version, which end each table.
std::vector<Option> with_end(std::vector<Option> rows) {
  rows.push_back(help_option());
  rows.push_back(version_option());
  return rows;
}

Option nodes_row() {
  return {.name = "nodes",
          .field = into<&UpOptions::nodes>,
          .metavar = "N",
          .help = "how many machines, all or none",
          .shown_default = "1"};
}

Table make_offers_table() {
  std::vector<Option> rows = machine_rows("");
  rows.push_back(nodes_row());
  rows.push_back(json_row("for programs"));
  return {.program = "lockstep offers",
          .summary = "Shows current prices of rented machines with these GPUs.",
          .examples =
              "lockstep offers A100:8\n"
              "lockstep offers H100:1 --spot --max-price 3",
          .details =
              "Asks all providers with keys here, at once. The table is sorted by the whole\n"
              "price an hour, disk and address included. Like every command on demand, then\n"
              "terminates machines with our tag that are no longer wanted.",
          .epilog = kOnlyFakes,
          .operands = Operands::names,
          .groups = {{"Options", with_end(std::move(rows))}},
          .shown_names = "GPU[:COUNT]"};
}

Table make_up_table() {
  std::vector<Option> rows = machine_rows("gpus");
  rows.push_back(nodes_row());
  std::vector<Option> more = consent_rows();
  more.push_back(json_row("for programs: the plan (--print), or the cluster with its nodes"));
  return {.program = "lockstep up",
          .summary = "Rents machines and keeps them as the cluster NAME.",
          .examples =
              "lockstep up lab --gpus A100:8 --max-price 20\n"
              "lockstep up lab --gpus H100:1 --nodes 2 --spot --lifetime 8h\n"
              "lockstep up lab --gpus A100:8 --print",
          .details =
              "Takes the cheapest machines that are actually available, shows the plan, and\n"
              "asks. NAME then works wherever a cluster of hosts works, until lockstep down NAME.\n"
              "The machines terminate themselves when they are idle, at the end of their\n"
              "lifetime, or when the budget is spent.",
          .epilog = kOnlyFakes,
          .operands = Operands::names,
          .groups = {{"Machines", std::move(rows)},
                     {"Money and time", terms_rows()},
                     {"Options", with_end(std::move(more))}},
          .shown_names = "NAME"};
}

Table make_down_table() {
  return {
      .program = "lockstep down",
      .summary = "Terminates rented machines and shows the cost.",
      .examples =
          "lockstep down lab\n"
          "lockstep down --all",
      .details = "Machines of others, or of another installation, are only terminated if named.",
      .epilog =
          "Exit code: 0 when all machines are known to be gone, 1 where a machine may be left.\n",
      .operands = Operands::names,
      .groups = {{"Options",
                  with_end({
                      {.name = "all",
                       .field = into<&DownOptions::all>,
                       .help = "all machines of this installation"},
                      {.name = "orphans",
                       .field = into<&DownOptions::orphans>,
                       .help = "machines with our tag that are no longer wanted, in all regions"},
                      {.name = "force",
                       .field = into<&DownOptions::force>,
                       .help = "also terminate machines with a running job, without a question"},
                      {.name = "yes",
                       .field = into<&DownOptions::yes>,
                       .help = "no question",
                       .letter = 'y'},
                      {.name = "json",
                       .field = into<&DownOptions::json>,
                       .help = "for programs: the terminated machines and their cost"},
                  })}},
      .shown_names = "NAME..."};
}

Table make_keep_table() {
  return {.program = "lockstep keep",
          .summary = "Gives rented machines more time.",
          .examples =
              "lockstep keep lab 2h\n"
              "lockstep keep lab 45m",
          .details =
              "The machines end in TIME from now, or at their present end if that is later, but\n"
              "never after their budget is spent. Until then, being idle does not end them.",
          .epilog = kSweeps,
          .operands = Operands::names,
          .groups = {{"Options", with_end({})}},
          .shown_names = "NAME TIME"};
}

Table make_cost_table() {
  return {
      .program = "lockstep cost",
      .summary = "Shows the cost of rented machines.",
      .examples =
          "lockstep cost\n"
          "lockstep cost --since 30d\n"
          "lockstep cost lab --json",
      .details = "Counts the prices at launch, without traffic.",
      .epilog = kSweeps,
      .operands = Operands::names,
      .groups = {{"Options",
                  with_end({
                      {.name = "since",
                       .field = into<&CostOptions::since>,
                       .metavar = "TIME",
                       .help = "machines of the last so long, 30d",
                       .shown_default = "those that are there"},
                      {.name = "json", .field = into<&CostOptions::json>, .help = "for programs"},
                  })}},
      .shown_names = "[NAME]"};
}

Table make_check_table() {
  return {.program = "lockstep cloud check",
          .summary = "Checks the keys, rights, quotas and images of each provider.",
          .examples =
              "lockstep cloud check\n"
              "lockstep cloud check aws",
          .details =
              "Names missing rights, with the smallest policy that grants these rights. Costs\n"
              "nothing.",
          .epilog = "Exit code: 0 if at least one provider is usable and none is broken, else 1.\n",
          .operands = Operands::names,
          .groups = {{"Options", with_end({
                                     {.name = "json",
                                      .field = into<&CloudCheckOptions::json>,
                                      .help = "for programs"},
                                 })}},
          .shown_names = "[PROVIDER...]"};
}

Table make_selftest_table() {
  return {.program = "lockstep cloud selftest",
          .summary = "Rents a small machine, and reports whether every step works.",
          .examples =
              "lockstep cloud selftest aws\n"
              "lockstep cloud selftest gcp --type any",
          .details =
              "Asks before it rents, and takes minutes. Tests the launch, the first contact, the\n"
              "machine's own end and the bill. The machine is terminated whatever happens. The\n"
              "report on stdout names no account, key or address, and can be passed on. The\n"
              "machine has no GPU and costs a cent or two an hour. A provider without such\n"
              "machines gives the cheapest machine with a GPU.",
          .epilog = "Exit code: 0 if every step worked, else 1.\n",
          .operands = Operands::names,
          .groups = {{"Options",
                      with_end({
                          {.name = "type",
                           .field = into<&CloudSelftestOptions::type>,
                           .metavar = "TYPE",
                           .help = "only machines of this type, in the provider's spelling; any: "
                                   "the cheapest with a GPU",
                           .shown_default = "t3.micro, e2-small, any"},
                          {.name = "patience",
                           .field = into<&CloudSelftestOptions::patience>,
                           .metavar = "TIME",
                           .help = "how long the provider may still list the terminated machine",
                           .shown_default = "5m"},
                          {.name = "allow-from",
                           .field = into<&CloudSelftestOptions::allow_from>,
                           .metavar = "CIDR,...",
                           .help = "networks with access to the machine's ssh port",
                           .shown_default = "this machine's public address"},
                          {.name = "yes",
                           .field = into<&CloudSelftestOptions::yes>,
                           .help = "rent without a question",
                           .letter = 'y'},
                      })}},
          .shown_names = "PROVIDER"};
}

}  // namespace

const Table& offers_table_options() {
  static const Table table = make_offers_table();
  return table;
}
const Table& up_table() {
  static const Table table = make_up_table();
  return table;
}
const Table& down_table() {
  static const Table table = make_down_table();
  return table;
}
const Table& keep_table() {
  static const Table table = make_keep_table();
  return table;
}
const Table& cost_table() {
  static const Table table = make_cost_table();
  return table;
}
const Table& cloud_check_table() {
  static const Table table = make_check_table();
  return table;
}

const Table& cloud_selftest_table() {
  static const Table table = make_selftest_table();
  return table;
}

}  // namespace lockstep::cli
