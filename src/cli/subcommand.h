// Rows of subcommands: name, summary, option table and function. Dispatch, the overview,
// completion, man pages and docs/options.md all read the rows. commands.cc lists all rows.
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
  Parsed parsed;      // `words`, parsed by the row's table; empty if the row has no table
};

// The state of the process's signals when a row's function is called. Threads inherit the mask, so
// dispatch sets the mask before the first thread starts.
enum class Signals {
  inherited,  // unchanged: the row becomes another program, or takes its signals itself
  children,   // SIGCHLD is default: if SIGCHLD were inherited as ignored, the kernel would discard
              // our children's exit statuses
  blocked,    // the same, and proc::handled_signals() stay pending until the function reads them.
              // SIGPIPE is ignored: a write to a lost connection must fail, and not end the process
};
// Puts the process's signals into that state.
void take_signals(Signals how);

// Every row is a constant, so nothing runs before main().
struct Subcommand {
  std::string_view name;
  std::string_view summary;           // one line, without a full stop
  const Table& (*table)() = nullptr;  // makes the table at its first call; nullptr: no options
  // Replaces parse_options() for rows whose words are only partly the table's.
  ParseResult (*read)(const Args& words, const GetEnv& env) = nullptr;
  Result<ExitCode> (*run)(const Call& call) = nullptr;  // nullptr where there are rows
  Signals signals = Signals::inherited;
  ErrorCodes fails_with = {};                    // the exit code of an Error of run()
  std::span<const Subcommand* const> rows = {};  // sub-verbs, such as add of `lockstep cluster`
  bool listed = true;                            // in the overview, completion and the pages
};

struct Program {
  Subcommand root;  // named like the program; the subcommands are its rows
  // If the program is called through a link with the name of one of these rows, the row runs.
  std::span<const Subcommand* const> links = {};
  std::string_view notes = {};  // closing lines of the overview
  // Links that the program makes for itself. Help and completion do not show these.
  std::span<const Subcommand* const> own_links = {};
};

// Runs the subcommand that the words name, prints its error, and returns the exit code. called_as:
// the last part of argv[0]. words: without the program's name.
ExitCode dispatch(const Program& program, std::string_view called_as, Args words);

// The innermost row that the first words name, and the number of these words.
struct Found {
  const Subcommand* row;
  std::size_t words;
};
Found find_row(const Program& program, const Args& words);

// A listed row and its path: "" for the root, "cluster", "cluster add".
struct Node {
  std::string path;
  const Subcommand* row;
};
// Returns all listed rows, each before the rows in it.
std::vector<Node> listed_rows(const Program& program);

// Returns the help of a row that has rows: their names and summaries.
std::string overview(const Program& program, const Subcommand& row, std::string_view path);

ExitCode print_version();  // returns ok

// Prints a line to stderr: "lockstep run: error: MESSAGE; HINT".
void print_error(std::string_view program, const Error& error);

// Prints the error like print_error() and returns the error's exit code. For functions that do more
// about an error than dispatch().
ExitCode refuse(std::string_view program, const Error& error, const ErrorCodes& codes = {});

// Adapts a function without an exit code of its own for Subcommand::run.
template <Status (*act)(const Call&)>
Result<ExitCode> run_status(const Call& call) {
  LOCKSTEP_TRY(act(call));
  return ExitCode::ok;
}

}  // namespace lockstep::cli
