// lockstep: picks the subcommand. Called through a link named torchrun it is `lockstep run`.
#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/run_options.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <string>

namespace lockstep::cli {
namespace {

std::string overview() {
  std::string text =
      "usage: lockstep COMMAND [options]\n\n"
      "Starts a training command on every rank and keeps it running.\n\n"
      "commands:\n";
  for (const Subcommand& command : subcommands()) {
    std::string name(command.name);
    name.resize(10, ' ');
    text += "  " + name + std::string(command.summary) + "\n";
  }
  return text +
         "\n'lockstep COMMAND --help' tells more. 'lockstep --version' prints the version.\n"
         "Through a link named torchrun this program is 'lockstep run'.\n";
}

// A script or an option: what comes first where the "run" was left out.
bool is_for_run(const std::string& given) {
  struct stat info {};
  return given.ends_with(".py") || given.starts_with('-') ||
         (stat(given.c_str(), &info) == 0 && S_ISREG(info.st_mode));
}

int print_version() {
  std::puts("lockstep " LOCKSTEP_VERSION);
  return 0;
}

int unknown_command(const std::string& given) {
  std::vector<std::string> names;
  for (const Subcommand& command : subcommands())
    names.emplace_back(command.name);
  Error error{Errc::invalid_input, "unknown command '" + printable(given, 60) + "'", {}, 0};
  std::optional<std::string> meant = did_you_mean(given, names);
  if (is_for_run(given) && (!meant || given.ends_with(".py"))) meant = "run " + printable(given);
  error.hint =
      meant ? "did you mean 'lockstep " + *meant + "'?" : "the commands are: " + join(names, ", ");
  print_error("lockstep", error);
  return 2;
}

// A closed standard stream would be taken by the first file we open, and written to.
void fill_standard_streams() {
  int fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= 2)
    fd = dup(fd);
  if (fd > 2) close(fd);
}

int dispatch(const std::string& program, Args args) {
  if (program == "torchrun") return run_command(args, RunAs::torchrun);
  if (args.empty()) {
    std::fputs(overview().c_str(), stderr);
    return 2;
  }
  const std::string command = args.front();
  args.erase(args.begin());
  if (command == "run") return run_command(args, RunAs::run);
  if (command == "launch") return run_command(args, RunAs::launch);
  if (command == "store") return store_command(args);
  if (command == "--version" || command == "version") return print_version();
  if (command == "--help" || command == "-h" || command == "help") {
    if (!args.empty() && command == "help") return dispatch(program, {args.front(), "--help"});
    std::fputs(overview().c_str(), stdout);
    return 0;
  }
  return unknown_command(command);
}

}  // namespace

std::optional<int> settled(const Table& table, const ParseResult& parsed) {
  if (!parsed) {
    print_error(table.program, parsed.error().error);
    return parsed.error().exit_code;
  }
  if (parsed->ended_by == "help") {
    std::fputs(help_text(table).c_str(), stdout);
    return 0;
  }
  if (parsed->ended_by == "version") return print_version();
  return std::nullopt;
}

void print_error(std::string_view program, const Error& error) {
  std::string text = std::string(program) + ": error: " + error.message;
  if (!error.hint.empty() && text.ends_with('.')) text.pop_back();
  if (!error.hint.empty()) text += "; " + error.hint;
  // Much of it may be another node's.
  std::fprintf(stderr, "%s\n", printable(text, std::string::npos).c_str());
}

}  // namespace lockstep::cli

int main(int argc, char** argv) {
  lockstep::cli::fill_standard_streams();
  lockstep::log::set_level_from_env();
  const std::string path = argc > 0 ? argv[0] : "lockstep";
  lockstep::cli::Args args(argv + (argc > 0 ? 1 : 0), argv + argc);
  return lockstep::cli::dispatch(path.substr(path.rfind('/') + 1), std::move(args));
}
