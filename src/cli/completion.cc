// Each script follows the words of the command line to the subcommand. A link such as torchrun is
// itself the subcommand. On the way the script offers subcommands, then the subcommand's options.
// Behind the name of the user's script it offers files.
#include "cli/completion.h"

#include "base/text.h"
#include "launch/backend_row.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace lockstep::cli {
namespace {

std::vector<std::string> texts(const std::vector<std::string_view>& views) {
  return {views.begin(), views.end()};
}

// Returns the values offered behind the option. Empty: the shell offers files. A value that ends
// with "=" is incomplete, so no space must follow.
std::vector<std::string> values_of(const Option& option) {
  if (option.name == "rdzv-backend") return texts(launch::backend_names());
  if (option.name != "rdzv-conf") return texts(option.choices);
  std::set<std::string> keys;
  for (const launch::BackendRow* backend : launch::backends()) {
    for (const launch::ConfKey& key : backend->keys)
      keys.insert(fmt::format("{}=", key.name));
  }
  return {keys.begin(), keys.end()};
}

// Returns the argument of `lockstep complete-names` for a word that help calls `called`
// ("HOST|CLUSTER"). Empty: Lockstep knows no names for the word.
std::string_view kind_of_names(std::string_view called) {
  if (called.find("CLUSTER") != called.npos || called.starts_with("NAME") ||
      called.starts_with("[NAME]"))
    return "clusters";
  if (called.starts_with("JOB") || called.starts_with("[JOB]")) return "jobs";
  return called.starts_with("GPU[") ? "gpus" : "";
}

std::string_view kind_of_names(const Option& option) {
  // NAME as an option's value is a new name, for example of a job or a role.
  const bool is_known = option.takes_word() && !option.metavar.starts_with("NAME");
  return is_known ? kind_of_names(option.metavar) : "";
}

// Returns the same for the first operand of a subcommand.
std::string_view kind_of_names(const Table& table) {
  if (table.operands == Operands::command && table.shown_names.empty()) return "clusters";
  return table.operands == Operands::names ? kind_of_names(table.shown_names) : "";
}

// The names are asked for at each TAB, because clusters and jobs come and go. 2>/dev/null: a
// message would land in the user's prompt.
std::string names_call(std::string_view kind) {
  return fmt::format("lockstep complete-names {} 2>/dev/null", kind);
}

// Returns the path as one word of a shell's `case`: "cluster add" needs quotes, and so does "".
std::string case_word(std::string_view path) {
  return path.empty() || path.find(' ') != path.npos ? fmt::format("'{}'", path)
                                                     : std::string(path);
}

std::string names_below(const Subcommand& parent) {
  std::vector<std::string> names;
  for (const Subcommand* row : parent.rows) {
    if (row->listed) names.emplace_back(row->name);
  }
  return join(names, " ");
}

// Returns the links with options of ours. A link such as pdsh has none: the shell's completion for
// the real pdsh stays.
std::vector<const Subcommand*> completed_links(const Program& program) {
  std::vector<const Subcommand*> links;
  for (const Subcommand* row : program.links)
    if (row->table != nullptr) links.push_back(row);
  return links;
}

// Returns a branch of the shell's `case` that makes a link's name the subcommand. word: the shell's
// expression for the name of the called program.
std::string link_case(const Program& program, std::string_view word) {
  std::vector<std::string> names;
  for (const Subcommand* row : completed_links(program))
    names.emplace_back(row->name);
  if (names.empty()) return {};
  return fmt::format("    {0}) command={1} ;;\n", join(names, "|"), word);
}

// Returns the names of commands with a completion: the program and its links.
std::string commands(const Program& program) {
  std::vector<std::string> names{std::string(program.root.name)};
  for (const Subcommand* row : completed_links(program))
    names.emplace_back(row->name);
  return join(names, " ");
}

// Returns the listed rows with options, and the links.
std::vector<Node> with_options(const Program& program) {
  std::vector<Node> out;
  for (Node& node : listed_rows(program)) {
    if (node.row->table != nullptr) out.push_back(std::move(node));
  }
  for (const Subcommand* row : completed_links(program))
    out.push_back({std::string(row->name), row});
  return out;
}

// Returns "--name", or "--name" and "-x" with the separator of a shell's pattern or word list.
std::string spellings(const Option& option, std::string_view separator) {
  std::string out = fmt::format("--{}", option.name);
  if (option.letter != 0) out += fmt::format("{}-{}", separator, option.letter);
  return out;
}

// Returns the branch for one subcommand. The loop of the branch skips options and their values. At
// any other word, such as the user's script, the function returns without an answer, and
// `complete -o default` offers files.
std::string bash_case(std::string_view path, const Table& table) {
  std::string names;
  std::string takes_value;
  std::string choices;
  for (const Option* option : options_of(table)) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", spellings(*option, " "));
    if (!option->takes_word()) continue;
    takes_value += fmt::format("{}{}", takes_value.empty() ? "" : "|", spellings(*option, "|"));
    if (const auto values = values_of(*option); !values.empty())
      choices +=
          fmt::format("        {}) words='{}' ;;\n", spellings(*option, "|"), join(values, " "));
    if (const auto kind = kind_of_names(*option); !kind.empty())
      choices +=
          fmt::format("        {}) words=$({}) ;;\n", spellings(*option, "|"), names_call(kind));
  }
  const std::string_view kind = kind_of_names(table);
  // An empty pattern would make the whole script invalid. '' matches no word.
  if (takes_value.empty()) takes_value = "''";
  return fmt::format(
      "    {0})\n"
      "      options='{1}'\n"
      "      while ((i < COMP_CWORD)); do\n"
      "        case ${{COMP_WORDS[i]}} in\n"
      "          {2}) ((i += 2)) ;;\n"
      "          -*) ((i += 1)) ;;\n"
      "          *) return ;;\n"
      "        esac\n"
      "      done\n"
      "      case ${{COMP_WORDS[COMP_CWORD - 1]}} in\n"
      "{3}"
      "        {2}) ;;\n"
      "        *) {4}[[ $cur == -* ]] && words=$options ;;\n"
      "      esac ;;\n",
      case_word(path), names, takes_value, choices,
      kind.empty() ? "" : fmt::format("words=$({}); ", names_call(kind)));
}

// In the script, `i` is the index of the first word that has not been followed yet, and `command`
// the path of the subcommand so far.
std::string bash(const Program& program) {
  std::string out = fmt::format(
      "# bash completion for {1}\n"
      "_lockstep() {{\n"
      "  local cur=${{COMP_WORDS[COMP_CWORD]}} command= i=1 words= options=\n"
      "  COMPREPLY=()\n"
      "  case ${{COMP_WORDS[0]##*/}} in\n"
      "{0}"
      "    *) while :; do\n"
      "      case $command in\n",
      link_case(program, "${COMP_WORDS[0]##*/}"), commands(program));
  for (const Node& node : listed_rows(program)) {
    if (!node.row->rows.empty())
      out +=
          fmt::format("        {}) words='{}' ;;\n", case_word(node.path), names_below(*node.row));
  }
  out +=
      "        *) words=; break ;;\n"
      "      esac\n"
      "      if ((COMP_CWORD == i)); then\n"
      "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
      "        return\n"
      "      fi\n"
      "      command=${command:+$command }${COMP_WORDS[i]}\n"
      "      ((i += 1))\n"
      "    done ;;\n"
      "  esac\n"
      "  case $command in\n";
  for (const Node& node : with_options(program))
    out += bash_case(node.path, node.row->table());
  // compopt keeps bash from adding a space behind "key=". bash 3 has no compopt.
  return out + fmt::format(
                   "  esac\n"
                   "  [[ -n $words ]] && COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                   "  [[ ${{COMPREPLY[0]-}} == *= ]] && compopt -o nospace 2>/dev/null\n"
                   "}}\n"
                   "complete -o default -F _lockstep {}\n",
                   commands(program));
}

// Returns the text for a single-quoted spec of zsh's _arguments, where quotes, brackets and colons
// have a meaning.
std::string zsh_text(std::string_view text) {
  std::string out(text);
  replace_all(out, "'", "");
  replace_all(out, "[", "(");
  replace_all(out, "]", ")");
  replace_all(out, ":", "\\:");
  return out;
}

std::string zsh_names(std::string_view kind) {
  return fmt::format("compadd - ${{(f)\"$({})\"}}", names_call(kind));
}

// Returns the specs for _arguments. "*" in front of an option: it may be given several times.
std::string zsh_rows(const Table& table) {
  std::string out;
  const auto row = [&out](const std::string& name, const Option& option) {
    std::string value;
    if (option.takes_word()) {
      const std::string values = join(values_of(option), " ");
      // Beginnings such as "key=" need compadd, because a plain list would add a space.
      const bool beginnings = values.ends_with('=');
      value = fmt::format(":{}:{}", zsh_text(option.metavar),
                          !kind_of_names(option).empty() ? zsh_names(kind_of_names(option))
                          : values.empty()               ? "_files"
                          : beginnings ? fmt::format("compadd -S \"\" - {}", values)
                                       : fmt::format("({})", values));
    }
    out += fmt::format("        '*{}[{}]{}' \\\n", name, zsh_text(option.help), value);
  };
  for (const Option* option : options_of(table)) {
    // "=" and "+": the value may stand in the same word or in the next.
    const bool flag = !option->takes_word();
    row(fmt::format("--{}{}", option->name, flag ? "" : "="), *option);
    if (option->letter != 0) row(fmt::format("-{}{}", option->letter, flag ? "" : "+"), *option);
  }
  // Only for tables with a script: for others, a spec of further words keeps zsh from completing
  // options.
  if (table.operands == Operands::script)
    out += "        '(-)1:script:_files' '*::script argument:_files'\n";
  if (const auto kind = kind_of_names(table); !kind.empty())
    out += fmt::format("        '1:{}:{}' '*:file:_files'\n", kind, zsh_names(kind));
  return out;
}

// The script drops the followed words from $words, so that _arguments sees the subcommand as the
// command. `-A '-*'` ends options at the first operand. At its end: autoloaded from $fpath, the
// file is the body of _lockstep and runs it. Sourced, the file registers the function.
std::string zsh(const Program& program) {
  std::string out = fmt::format(
      "#compdef {1}\n"
      "_lockstep() {{\n"
      "  local command=\n"
      "  local -a commands\n"
      "  case ${{words[1]:t}} in\n"
      "{0}"
      "    *) while :; do\n"
      "      case $command in\n",
      link_case(program, "${words[1]:t}"), commands(program));
  for (const Node& node : listed_rows(program)) {
    if (node.row->rows.empty()) continue;
    out += fmt::format("        {}) commands=(\n", case_word(node.path));
    for (const Subcommand* row : node.row->rows) {
      if (row->listed) out += fmt::format("          '{}:{}'\n", row->name, zsh_text(row->summary));
    }
    out += "        ) ;;\n";
  }
  out +=
      "        *) break ;;\n"
      "      esac\n"
      "      if ((CURRENT == 2)); then\n"
      "        _describe command commands\n"
      "        return\n"
      "      fi\n"
      "      command=${command:+$command }${words[2]}\n"
      "      shift words\n"
      "      ((CURRENT--))\n"
      "    done ;;\n"
      "  esac\n"
      "  case $command in\n";
  for (const Node& node : with_options(program))
    out += fmt::format("    {})\n      _arguments -A '-*' \\\n{}      ;;\n", case_word(node.path),
                       zsh_rows(node.row->table()));
  return out + fmt::format(
                   "  esac\n"
                   "}}\n"
                   "if [[ $funcstack[1] == _lockstep ]]; then _lockstep \"$@\"; "
                   "else compdef _lockstep {}; fi\n",
                   commands(program));
}

std::string fish_quoted(std::string_view text) {
  std::string out(text);
  replace_all(out, "\\", "\\\\");
  replace_all(out, "'", "\\'");
  return "'" + out + "'";
}

// Returns a `complete` line per option. In fish, -x means a value and no files, -r a value that may
// be a file, -f no files.
std::string fish_rows(std::string_view start, const Table& table) {
  std::string out;
  for (const Option* option : options_of(table)) {
    out += fmt::format("{} -l {}", start, option->name);
    if (option->letter != 0) out += fmt::format(" -s {}", option->letter);
    if (const auto values = values_of(*option); !values.empty() && option->takes_word()) {
      out += fmt::format(" -x -a '{}'", join(values, " "));
    } else if (const auto kind = kind_of_names(*option); !kind.empty()) {
      out += fmt::format(" -x -a '({})'", names_call(kind));
    } else if (option->takes_word()) {
      out += " -r";
    }
    out += fmt::format(" -d {}\n", fish_quoted(option->help));
  }
  return out;
}

// __lockstep_at PATH... succeeds if the words begin with PATH, __lockstep_next PATH... if they are
// exactly PATH. fish 3.1 does not accept [2..], so the ranges are [2..-1].
constexpr std::string_view kFishFunctions =
    "function __lockstep_at\n"
    "  set -l words (commandline -opc)\n"
    "  string match -q -- \"$argv *\" \"$words[2..-1] \"\n"
    "end\n"
    "function __lockstep_next\n"
    "  set -l words (commandline -opc)\n"
    "  test \"$words[2..-1]\" = \"$argv\"\n"
    "end\n";

std::string fish(const Program& program) {
  const std::string_view name = program.root.name;
  std::string out = fmt::format("# fish completion for {}\n{}", commands(program), kFishFunctions);
  const std::vector<Node> nodes = listed_rows(program);
  for (const Node& node : nodes) {
    for (const Subcommand* row : node.row->rows) {
      if (row->listed)
        out += fmt::format("complete -c {} -n '__lockstep_next {}' -f -a {} -d {}\n", name,
                           node.path, row->name, fish_quoted(row->summary));
    }
  }
  for (const Node& node : nodes) {
    if (node.row->table == nullptr) continue;
    const Table& table = node.row->table();
    out += fish_rows(fmt::format("complete -c {} -n '__lockstep_at {}'", name, node.path), table);
    if (const auto kind = kind_of_names(table); !kind.empty())
      out += fmt::format("complete -c {} -n '__lockstep_next {}' -f -a '({})'\n", name, node.path,
                         names_call(kind));
  }
  for (const Subcommand* row : completed_links(program))
    out += fish_rows(fmt::format("complete -c {}", row->name), row->table());
  return out;
}

}  // namespace

Result<std::string> completion_script(const Program& program, std::string_view shell) {
  if (shell == "bash") return bash(program);
  if (shell == "zsh") return zsh(program);
  if (shell == "fish") return fish(program);
  return fail(Errc::invalid_input,
              fmt::format("completion for {} is not offered", printable(shell)),
              "use bash, zsh or fish");
}

}  // namespace lockstep::cli
