// A subcommand is a row: its name, its summary, its option table and its function. Dispatch, the
// overview, completion, man pages and docs/options.md all read the rows; what the rows are stands
// in commands.cc.
#pragma once

#include "base/error.h"
#include "cli/exit_code.h"
#include "cli/options.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

using Args = std::vector<std::string>;

struct Program;

// What a subcommand's function is given.
struct Call {
  const Program& program;
  const Args& words;  // behind the subcommand's name
  Parsed parsed;      // words by the row's table; empty where the row has none
};

// What dispatch does to the process's signals before a row's function is called. Threads inherit
// the mask, so it must be set before the first one starts.
enum class Signals {
  inherited,  // nothing: the row becomes another program, or does this itself
  children,   // SIGCHLD is default: if it was inherited as ignored, the kernel would discard our
              // children's exit statuses
  blocked,    // the same, and proc::handled_signals() stay pending until the function reads them
};
void take_signals(Signals how);

// Every row is a constant: nothing of it is made before main().
struct Subcommand {
  std::string_view name;
  std::string_view summary;           // one line, without a full stop
  const Table& (*table)() = nullptr;  // made when it is first asked for; nullptr: no options
  // In place of reading the words by the table, where they are not all the table's.
  ParseResult (*read)(const Args& words, const GetEnv& env) = nullptr;
  Result<ExitCode> (*run)(const Call& call) = nullptr;  // nullptr where there are rows
  Signals signals = Signals::inherited;
  ErrorCodes fails_with = {};                    // the exit code of an Error of run()
  std::span<const Subcommand* const> rows = {};  // sub-verbs, as `lockstep cluster add`
  bool listed = true;                            // in the overview, completion and the pages
};

struct Program {
  Subcommand root;  // named as the program, with the subcommands as its rows
  // Called through a link with such a row's name, the program is that subcommand.
  std::span<const Subcommand* const> links = {};
  std::string_view notes = {};  // closing lines of the overview
  // The same, for links that the program makes for itself: they are shown nowhere.
  std::span<const Subcommand* const> own_links = {};
};

// called_as: the last part of argv[0]. words: without the program's name.
ExitCode dispatch(const Program& program, std::string_view called_as, Args words);

// The row that the first words name, as far as they name one, and how many of them do.
struct Found {
  const Subcommand* row;
  std::size_t words;
};
Found find_row(const Program& program, const Args& words);

// A listed row and where it is: "" for the root, "cluster", "cluster add".
struct Node {
  std::string path;
  const Subcommand* row;
};
// A row stands before the rows in it.
std::vector<Node> listed_rows(const Program& program);

std::string overview(const Program& program, const Subcommand& row, std::string_view path);

ExitCode print_version();  // returns ok

// One line to stderr: "lockstep run: error: what; advice".
void print_error(std::string_view program, const Error& error);

// Prints the error as print_error() does, and returns its exit code. For functions that do more
// about an error than dispatch would.
ExitCode refuse(std::string_view program, const Error& error, const ErrorCodes& codes = {});

// A row's function of one that has no exit code of its own to return.
template <Status (*act)(const Call&)>
Result<ExitCode> run_status(const Call& call) {
  LOCKSTEP_TRY(act(call));
  return ExitCode::ok;
}

}  // namespace lockstep::cli
