#include "cli/exec_options.h"

#include "base/text.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::cli {
namespace {

Table make_exec_table() {
  Table table = {
      .program = "lockstep exec",
      .summary = "Runs a command on a host, on all nodes of a cluster at once, or in a job.",
      .examples =
          "lockstep exec ubuntu@10.0.0.5 -- nvidia-smi -L\n"
          "lockstep exec gpus --nodes 0-3 -- df -h /data\n"
          "lockstep exec 1f3a2b9c --shell 'ls | wc -l'    # in its container",
      .details =
          "Arguments arrive byte for byte, whatever the user's login shell there. Output,\n"
          "exit code and signals are passed on as if the command ran here. Lines of several\n"
          "nodes start with the node's name. A job is named by its id, its Slurm number or\n"
          "pid-N, as lockstep jobs shows them, a row of a sweep as 'NAME[12]'. The command then\n"
          "runs on the job's nodes, or on the row's, in its container and folder, and with its\n"
          "variables.",
      .epilog =
          "Exit code: the command's, 128 + N where signal N ended the command, 127 where the\n"
          "command is missing, 255 where the host is not reached or the job does not run; for\n"
          "several nodes the first code other than 0.\n",
      .operands = Operands::command,
      .groups = {{"Options",
                  {
                      {.name = "shell",
                       .field = into<&ExecOptions::shell>,
                       .metavar = "TEXT",
                       .help = "run this text by /bin/sh there, in place of a command"},
                      {.name = "cwd",
                       .field = into<&ExecOptions::folder>,
                       .metavar = "DIR",
                       .help = "folder there, relative to the home, or to the job's folder",
                       .shown_default = "the home, or the job's folder"},
                      {.name = "in-project",
                       .field = into<&ExecOptions::in_project>,
                       .help = "in the environment of the synced project around --cwd"},
                      {.name = "no-stdin",
                       .field = into<&ExecOptions::no_input>,
                       .help = "the command reads nothing",
                       .letter = 'n'},
                      {.name = "json",
                       .field = into<&ExecOptions::json>,
                       .help = "one object at the end, with every host's exit code and output, in "
                               "place of live output"},
                  }},
                 place_group()}};
  for (Option& row : variable_rows())
    table.groups[0].options.push_back(std::move(row));
  return table;
}

// The position of the parser's script in the words. Like argparse, the parser drops a "--" behind
// the script, so the position does not follow from the number of parsed words.
struct ScriptPlace {
  std::size_t at;
  bool dropped;  // a "--" right behind the script was dropped
};
ScriptPlace script_place(const std::vector<std::string>& words, const Parsed& parsed) {
  const std::size_t before_rest = words.size() - parsed.script_args.size() - 1;
  const bool dropped = words[before_rest] == "--";
  return {before_rest - (dropped ? 1 : 0), dropped};
}

}  // namespace

const Table& exec_table() {
  static const Table table = make_exec_table();
  return table;
}

std::string shell_hint(const ExecOptions& options) {
  if (options.shell || options.command.size() != 1) return "";
  const std::string& word = options.command.front();
  if (word.find_first_of(" \t\n|&;<>$`*?()") == std::string::npos) return "";
  return fmt::format("for a shell's command write lockstep exec {} --shell {}", options.where,
                     shell_quote(word));
}

Result<ExecOptions> exec_options(const std::vector<std::string>& words, const Parsed& parsed) {
  ExecOptions options;
  fill(exec_table(), parsed, options);
  fill(exec_table(), parsed, options.places);
  fill(exec_table(), parsed, options.variables);
  if (!parsed.script)
    return fail(Errc::invalid_input, "no host is named",
                "write lockstep exec user@host -- COMMAND");
  options.where = *parsed.script;
  const ScriptPlace place = script_place(words, parsed);
  const auto behind = words.begin() + static_cast<std::ptrdiff_t>(place.at) + 1;
  // Behind "--" all words are the command's. Without "--" options of ours may still follow the
  // place, so parse again up to the command.
  if (place.dropped) {
    options.command.assign(behind + 1, words.end());
  } else if (behind != words.end()) {
    const std::vector<std::string> rest(behind, words.end());
    const auto more = parse_options(exec_table(), rest,
                                    [](std::string_view) { return std::optional<std::string>(); });
    if (!more) return Failure(more.error().error);
    fill(exec_table(), *more, options);
    fill(exec_table(), *more, options.places);
    fill(exec_table(), *more, options.variables);
    // Take the command from the words and not from the parser, which drops a "--" behind its first
    // word: `git -- file` must arrive as it is.
    if (more->script) {
      const auto command = static_cast<std::ptrdiff_t>(script_place(rest, *more).at);
      options.command.assign(rest.begin() + command, rest.end());
    }
  }
  if (options.shell && !options.command.empty())
    return fail(Errc::invalid_input, "both --shell and a command are given", "give one of them");
  if (options.shell) options.command = {"/bin/sh", "-c", *options.shell};
  if (options.command.empty())
    return fail(Errc::invalid_input, "no command is given",
                "write lockstep exec " + options.where + " -- COMMAND");
  return options;
}

}  // namespace lockstep::cli
