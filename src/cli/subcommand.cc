#include "cli/subcommand.h"

#include "base/environment.h"
#include "base/mid_line.h"
#include "base/text.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace lockstep::cli {
namespace {

const Subcommand* row_named(const Subcommand& parent, std::string_view name) {
  for (const Subcommand* row : parent.rows) {
    if (row->name == name) return row;
  }
  return nullptr;
}

std::string joined(std::string_view path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{} {}", path, name);
}

std::string program_words(const Program& program, std::string_view path) {
  return path.empty() ? std::string(program.root.name)
                      : fmt::format("{} {}", program.root.name, path);
}

// Returns a line for help, which names documents such as docs/remote.md. Packages have the
// documents in share/doc beside bin. Hosts and build folders have none, and the line is empty.
std::string where_documents_are() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto folder = program.parent_path().parent_path() / "share/doc/lockstep";
  if (error || !std::filesystem::is_directory(folder / "docs", error)) return {};
  return fmt::format("\ndocs/ and examples/ are in {}\n", printable(folder.string()));
}

// Returns the exit code if parsing alone decides it. Prints the error, the help or the version.
std::optional<ExitCode> settled(const Table& table, const ParseResult& parsed) {
  if (!parsed) {
    print_error(table.program, parsed.error().error);
    return parsed.error().exit_code;
  }
  if (parsed->ended_by == "help") {
    std::fputs((help_text(table) + where_documents_are()).c_str(), stdout);
    return ExitCode::ok;
  }
  if (parsed->ended_by == "version") return print_version();
  return std::nullopt;
}

ExitCode run_row(const Program& program, const Subcommand& row, const Args& words) {
  Call call{program, words, {}};
  if (row.table != nullptr) {
    auto parsed = row.read != nullptr ? row.read(words, env_variable)
                                      : parse_options(row.table(), words, env_variable);
    if (const auto code = settled(row.table(), parsed)) return *code;
    call.parsed = *std::move(parsed);
  }
  take_signals(row.signals);
  const auto code = row.run(call);
  if (code) return *code;
  const std::string name =
      row.table != nullptr ? std::string(row.table().program) : program_words(program, row.name);
  return refuse(name, code.error(), row.fails_with);
}

// Returns whether the user probably left `run` out: `lockstep train.py`, or an option first.
bool is_for_script(const std::string& given) {
  struct stat info {};
  return given.ends_with(".py") || given.starts_with('-') ||
         (stat(given.c_str(), &info) == 0 && S_ISREG(info.st_mode));
}

// Returns the first listed row that takes a script, which is `lockstep run`.
const Subcommand* taker_of_scripts(const Subcommand& parent) {
  for (const Subcommand* row : parent.rows) {
    if (row->listed && row->table != nullptr && row->table().operands == Operands::script)
      return row;
  }
  return nullptr;
}

// Programs that users may expect as subcommands, and the command of Lockstep for the same work.
struct Elsewhere {
  std::string_view program;
  std::string_view command;  // its first word is a subcommand
};
constexpr Elsewhere kElsewhere[] = {
    {"torchrun", "run torchrun"},
    {"python", "run"},
    {"python3", "run"},
    {"deepspeed", "run deepspeed"},
    {"accelerate", "run accelerate"},
    {"mpirun", "run"},
    {"horovodrun", "run"},
    {"sbatch", "submit"},
    {"srun", "submit"},
    {"salloc", "submit"},
    {"squeue", "jobs"},
    {"ps", "jobs"},
    {"scancel", "cancel"},
    {"kill", "cancel"},
    {"stop", "cancel"},
    {"tail", "logs -f"},
    {"pdsh", "exec"},
    {"rsync", "sync"},
    {"scp", "sync"},
    {"pip", "install"},
    {"status", "jobs"},
};

// Returns the command, or an empty text if this program has none.
std::string command_of(const Subcommand& parent, std::string_view given) {
  for (const Elsewhere& each : kElsewhere)
    if (each.program == given &&
        row_named(parent, each.command.substr(0, each.command.find(' '))) != nullptr)
      return std::string(each.command);
  return {};
}

ExitCode unknown_command(const Program& program, const Found& parent, const Args& words) {
  const std::string path = join(std::span(words).first(parent.words), " ");
  const std::string& given = words[parent.words];
  std::vector<std::string> names;
  for (const Subcommand* row : parent.row->rows) {
    if (row->listed) names.emplace_back(row->name);
  }
  const std::string start = program_words(program, path);
  Error error{
      Errc::invalid_input, fmt::format("unknown command '{}'", printable(given, 60)), {}, 0};
  const std::string command = command_of(*parent.row, given);
  std::optional<std::string> meant =
      command.empty() ? did_you_mean(given, names) : std::optional(command);
  const Subcommand* taker = taker_of_scripts(*parent.row);
  // "runn" is a typing error even if a file has that name, but a .py file is never a subcommand.
  if (taker != nullptr && is_for_script(given) && (!meant || given.ends_with(".py")))
    meant = fmt::format("{} {}", taker->name, printable(given));
  error.hint = meant ? fmt::format("did you mean '{} {}'?", start, *meant)
                     : fmt::format("the commands are: {}", join(names, ", "));
  return refuse(start, error);
}

void add_listed(const Subcommand& row, const std::string& path, std::vector<Node>& out) {
  out.push_back({path, &row});
  for (const Subcommand* each : row.rows) {
    if (each->listed) add_listed(*each, joined(path, each->name), out);
  }
}

}  // namespace

Found find_row(const Program& program, const Args& words) {
  Found found{&program.root, 0};
  while (found.words < words.size()) {
    const Subcommand* row = row_named(*found.row, words[found.words]);
    if (row == nullptr) break;
    found = {row, found.words + 1};
  }
  return found;
}

void take_signals(Signals how) {
  if (how == Signals::inherited) return;
  // Block, not ignore: a signal that comes before the function reads signals stays pending.
  if (how == Signals::blocked) {
    proc::block(proc::handled_signals());
    signal(SIGPIPE, SIG_IGN);
  }
  signal(SIGCHLD, SIG_DFL);
}

ExitCode dispatch(const Program& program, std::string_view called_as, Args words) {
  // Links first: through a link named torchrun all words are torchrun's, even "run" or "help".
  for (const auto& links : {program.links, program.own_links})
    for (const Subcommand* row : links)
      if (row->name == called_as) return run_row(program, *row, words);
  const Found found = find_row(program, words);
  if (found.row->rows.empty()) {
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(found.words));
    return run_row(program, *found.row, words);
  }
  const std::string path = join(std::span(words).first(found.words), " ");
  // A call without a subcommand is an error, so scripts see exit code 2 and stdout stays empty.
  if (found.words == words.size()) {
    std::fputs(overview(program, *found.row, path).c_str(), stderr);
    return ExitCode::usage;
  }
  const std::string& next = words[found.words];
  if (next == "--help" || next == "-h") {
    std::fputs(overview(program, *found.row, path).c_str(), stdout);
    return ExitCode::ok;
  }
  if (next == "--version") return print_version();
  return unknown_command(program, found, words);
}

std::vector<Node> listed_rows(const Program& program) {
  std::vector<Node> nodes;
  add_listed(program.root, "", nodes);
  return nodes;
}

std::string overview(const Program& program, const Subcommand& row, std::string_view path) {
  const std::string start = program_words(program, path);
  std::string text =
      fmt::format("usage: {} COMMAND [options]\n\n{}.\n\ncommands:\n", start, row.summary);
  std::size_t width = 8;  // the overview keeps its shape while names are short
  for (const Subcommand* each : row.rows) {
    if (each->listed) width = std::max(width, each->name.size());
  }
  for (const Subcommand* each : row.rows) {
    if (each->listed) text += fmt::format("  {:<{}}  {}\n", each->name, width, each->summary);
  }
  text += fmt::format("\n'{} COMMAND --help' tells more.", start);
  if (path.empty())
    text += fmt::format(" '{} --version' prints the version.\n{}", start, program.notes);
  return text + (path.empty() ? "" : "\n");
}

ExitCode print_version() {
  std::puts("lockstep " LOCKSTEP_VERSION);
  return ExitCode::ok;
}

void print_error(std::string_view program, const Error& error) {
  std::string text = std::string(program) + ": error: " + error.message;
  if (!error.hint.empty() && text.ends_with('.')) text.pop_back();
  if (!error.hint.empty()) text += "; " + error.hint;
  // A worker's unfinished line, such as a progress bar, may be on the terminal.
  end_line();
  // Parts of the text may come from another node, so escape what would command a terminal.
  std::fprintf(stderr, "%s\n", printable(text, std::string::npos).c_str());
}

ExitCode refuse(std::string_view program, const Error& error, const ErrorCodes& codes) {
  print_error(program, error);
  return code_of(error, codes);
}

}  // namespace lockstep::cli
