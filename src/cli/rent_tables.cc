#include "cli/rent_tables.h"

#include <utility>

namespace lockstep::cli {
namespace {

constexpr std::string_view kOnlyFakes =
    "No provider was reached by those who wrote this: what only stand-ins of the\n"
    "providers have confirmed stands in docs/cloud.md.\n";

constexpr std::string_view kSweeps =
    "Like every command on demand it also ends machines that are tagged as ours and that\n"
    "nobody wants: docs/cloud-lifecycle.md, \"The sweep\".\n";

Option json_row(std::string_view help) {
  return {.name = "json", .field = into<&UpOptions::json>, .help = help};
}

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
          .summary =
              "Asks all providers whose keys are found, at once, what machines with such\n"
              "GPUs cost: one table by the whole price an hour, disk and address included.\n"
              "Then, like every command on demand, it ends machines that are tagged as ours\n"
              "and that nobody wants.\n\n"
              "  lockstep offers A100:8\n"
              "  lockstep offers H100:1 --spot --max-price 3",
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
          .summary =
              "Rents machines and keeps them as the cluster NAME: the cheapest that there\n"
              "really are. Shows the plan and asks. On NAME everything works that works on\n"
              "a cluster of hosts. The machines end themselves when they are idle, at their\n"
              "lifetime, or when the budget is spent.\n\n"
              "  lockstep up lab --gpus A100:8 --max-price 20\n"
              "  lockstep run --on lab train.py\n"
              "  lockstep down lab",
          .epilog = kOnlyFakes,
          .operands = Operands::names,
          .groups = {{"Machines", std::move(rows)},
                     {"Money and time", terms_rows()},
                     {"Options", with_end(std::move(more))}},
          .shown_names = "NAME"};
}

Table make_down_table() {
  return {.program = "lockstep down",
          .summary =
              "Ends rented machines and says what they cost. Machines that are not ours,\n"
              "or another installation's, are never touched unless they are named.\n\n"
              "  lockstep down lab\n"
              "  lockstep down --all",
          .epilog = "Exit code: 0 when all was seen gone, 1 where something may be left.\n",
          .operands = Operands::names,
          .groups = {{"Options",
                      with_end({
                          {.name = "all",
                           .field = into<&DownOptions::all>,
                           .help = "everything that this installation has rented"},
                          {.name = "orphans",
                           .field = into<&DownOptions::orphans>,
                           .help = "what is tagged as ours and nobody wants, in all regions"},
                          {.name = "force",
                           .field = into<&DownOptions::force>,
                           .help = "also while a job runs there, without a question"},
                          {.name = "yes",
                           .field = into<&DownOptions::yes>,
                           .help = "no question",
                           .letter = 'y'},
                          {.name = "json",
                           .field = into<&DownOptions::json>,
                           .help = "for programs: what was ended, and its cost"},
                      })}},
          .shown_names = "NAME..."};
}

Table make_keep_table() {
  return {.program = "lockstep keep",
          .summary =
              "Gives rented machines more time: they end in TIME from now, or when they would\n"
              "have ended anyway if that is later, but never past\n"
              "what their budget pays for. Till then being idle does not end them.\n\n"
              "  lockstep keep lab 2h",
          .epilog = kSweeps,
          .operands = Operands::names,
          .groups = {{"Options", with_end({})}},
          .shown_names = "NAME TIME"};
}

Table make_cost_table() {
  return {
      .program = "lockstep cost",
      .summary =
          "What rented machines have cost, by the prices at which they were rented,\n"
          "without traffic.\n\n"
          "  lockstep cost\n"
          "  lockstep cost --since 30d",
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
          .summary =
              "Looks for the keys of each provider and asks what they may do: account,\n"
              "rights that are missing (with the smallest policy that has them), quotas,\n"
              "images. Costs nothing.\n\n"
              "  lockstep cloud check\n"
              "  lockstep cloud check aws",
          .epilog =
              "Exit code: 0 where at least one provider can be used and none is broken, else 1.\n",
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
          .summary =
              "Rents a small machine, for minutes and after a question, and sees whether all\n"
              "goes as it should: the launch, the first contact, the machine's own end, the\n"
              "bill. The report on stdout names no account, key or address, and can be passed\n"
              "on. The machine is given back whatever happens. At AWS and Google it has no\n"
              "GPU, and costs a cent or two an hour; of Lambda and RunPod it is the cheapest\n"
              "with one.\n\n"
              "  lockstep cloud selftest aws\n"
              "  lockstep cloud selftest gcp --type any",
          .epilog = "Exit code: 0 where all was as it should be, else 1.\n",
          .operands = Operands::names,
          .groups = {{"Options",
                      with_end({
                          {.name = "type",
                           .field = into<&CloudSelftestOptions::type>,
                           .metavar = "TYPE",
                           .help = "only machines of this type, as the provider names it; any: "
                                   "the cheapest with a GPU",
                           .shown_default = "t3.micro, e2-small, any"},
                          {.name = "patience",
                           .field = into<&CloudSelftestOptions::patience>,
                           .metavar = "TIME",
                           .help = "how long after its end the machine may still be listed",
                           .shown_default = "5m"},
                          {.name = "allow-from",
                           .field = into<&CloudSelftestOptions::allow_from>,
                           .metavar = "CIDR,...",
                           .help = "who may reach the machine's ssh port",
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
