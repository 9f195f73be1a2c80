// A subcommand is a row: its name, its summary, its option table and its function. Dispatch, the
// overview, completion, man pages and docs/options.md all read the rows. commands.cc lists them.
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

// The arguments of a subcommand's function.
struct Call {
  const Program& program;
  const Args& words;  // behind the subcommand's name
  Parsed parsed;      // words by the row's table; empty where the row has none
};

// The state of the process's signals when a row's function is called. Threads inherit the mask, so
// dispatch sets the mask before the first thread starts.
enum class Signals {
  inherited,  // nothing: the row becomes another program, or does this itself
  children,   // SIGCHLD is default: if it was inherited as ignored, the kernel would discard our
              // children's exit statuses
  blocked,    // the same, and proc::handled_signals() stay pending until the function reads them
};
void take_signals(Signals how);

// Every row is a constant, so nothing runs before main().
struct Subcommand {
  std::string_view name;
  std::string_view summary;           // one line, without a full stop
  const Table& (*table)() = nullptr;  // made when it is first asked for; nullptr: no options
  // Replaces parse_options() for rows whose words are only partly the table's.
  ParseResult (*read)(const Args& words, const GetEnv& env) = nullptr;
  Result<ExitCode> (*run)(const Call& call) = nullptr;  // nullptr where there are rows
  Signals signals = Signals::inherited;
  ErrorCodes fails_with = {};                    // the exit code of an Error of run()
  std::span<const Subcommand* const> rows = {};  // sub-verbs, as `lockstep cluster add`
  bool listed = true;                            // in the overview, completion and the pages
};

struct Program {
  Subcommand root;  // named as the program, with the subcommands as its rows
  // A program that is called through a link named as one of these rows is that subcommand.
  std::span<const Subcommand* const> links = {};
  std::string_view notes = {};  // closing lines of the overview
  // Links that the program makes for itself. Help and completion do not show these.
  std::span<const Subcommand* const> own_links = {};
};

// called_as: the last part of argv[0]. words: without the program's name.
ExitCode dispatch(const Program& program, std::string_view called_as, Args words);

// The innermost row that the first words name, and how many words name it.
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
// Returns all listed rows, each before the rows in it.
std::vector<Node> listed_rows(const Program& program);

std::string overview(const Program& program, const Subcommand& row, std::string_view path);

ExitCode print_version();  // returns ok

// One line to stderr: "lockstep run: error: what; advice".
void print_error(std::string_view program, const Error& error);

// Prints the error as print_error() does, and returns its exit code. For functions that do more
// about an error than dispatch would.
ExitCode refuse(std::string_view program, const Error& error, const ErrorCodes& codes = {});

// Row::run for a function that has no exit code of its own to return.
template <Status (*act)(const Call&)>
Result<ExitCode> run_status(const Call& call) {
  LOCKSTEP_TRY(act(call));
  return ExitCode::ok;
}

}  // namespace lockstep::cli
