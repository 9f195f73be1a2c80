// A sample program for tests of rows: sub-verbs, a link and an unlisted row. Each function records
// its arguments and returns an exit code of its own.
#pragma once

#include "cli/subcommand.h"

namespace lockstep::cli::sample {

inline std::string& last_call() {
  static std::string text;
  return text;
}

inline const Table& go_table() {
  static const Table table{"tool go",
                           "Goes.",
                           "tool go x.py\ntool go --how-far 3 x.py",
                           "Far.",
                           "",
                           Operands::script,
                           {{"Options",
                             {{.name = "how-far", .kind = Kind::integer, .metavar = "N"},
                              {.name = "help", .letter = 'h', .ends_parsing = true}}}}};
  return table;
}

inline const Table& add_table() {
  static const Table table{
      "tool cluster add",
      "Adds a node.",
      "",
      "",
      "",
      Operands::none,
      {{"Options",
        {{.name = "node", .kind = Kind::text, .metavar = "HOST"},
         {.name = "shape", .kind = Kind::text, .metavar = "SHAPE", .choices = {"round", "square"}},
         {.name = "help", .letter = 'h', .ends_parsing = true}}}}};
  return table;
}

template <int code>
Result<ExitCode> note(const Call& call) {
  last_call() = std::to_string(code);
  for (const auto& [name, value] : call.parsed.values)
    last_call().append(" ").append(name).append("=").append(value);
  if (call.parsed.script) last_call() += " script=" + *call.parsed.script;
  return passed_on(code);
}

inline constexpr Subcommand kGo{
    .name = "go", .summary = "go somewhere", .table = go_table, .run = note<11>};
inline constexpr Subcommand kAdd{
    .name = "add", .summary = "add a node", .table = add_table, .run = note<12>};
inline constexpr Subcommand kList{.name = "list", .summary = "list nodes", .run = note<13>};
inline constexpr const Subcommand* kVerbs[] = {&kAdd, &kList};
inline constexpr Subcommand kCluster{
    .name = "cluster", .summary = "nodes under a name", .rows = kVerbs};
inline constexpr Subcommand kSecret{
    .name = "secret", .summary = "for our own use", .run = note<14>, .listed = false};
inline Result<ExitCode> fail_away(const Call& /*call*/) {
  return fail(Errc::unavailable, "it is away", "try later");
}
inline constexpr Subcommand kFails{
    .name = "fails", .summary = "", .run = fail_away, .fails_with = kAsSsh, .listed = false};
inline constexpr Subcommand kAlias{
    .name = "alias", .summary = "as go", .table = go_table, .run = note<15>};
inline constexpr const Subcommand* kRows[] = {&kGo, &kCluster, &kSecret, &kFails};
inline constexpr const Subcommand* kLinks[] = {&kAlias};
inline constexpr Program kProgram{.root = {.name = "tool", .summary = "Does things", .rows = kRows},
                                  .links = kLinks};

}  // namespace lockstep::cli::sample
