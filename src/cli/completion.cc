// Each script finds the subcommand (torchrun has none), offers its options until the script's name,
// and files after it.
#include "cli/completion.h"

#include "base/text.h"
#include "cli/run_options.h"
#include "launch/backend_row.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace lockstep::cli {
namespace {

std::vector<const Option*> options_of(const Table& table) {
  std::vector<const Option*> options;
  for (const Group& group : table.groups) {
    for (const Option& option : group.options)
      options.push_back(&option);
  }
  return options;
}

std::vector<std::string> texts(const std::vector<std::string_view>& views) {
  return {views.begin(), views.end()};
}

// What may stand behind the option; empty: the shell offers files. Words with "=" at their end are
// beginnings.
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

std::string subcommand_names() {
  std::vector<std::string> names;
  for (const Subcommand& command : subcommands())
    names.emplace_back(command.name);
  return join(names, " ");
}

// --name, and -x where there is one, joined for a shell pattern or word list.
std::string spellings(const Option& option, std::string_view separator) {
  std::string out = fmt::format("--{}", option.name);
  if (option.letter != 0) out += fmt::format("{}-{}", separator, option.letter);
  return out;
}

std::string bash_case(const Subcommand& command) {
  std::string names;
  std::string takes_value;
  std::string choices;
  for (const Option* option : options_of(*command.table)) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", spellings(*option, " "));
    if (option->kind == Kind::flag) continue;
    takes_value += fmt::format("{}{}", takes_value.empty() ? "" : "|", spellings(*option, "|"));
    if (const auto values = values_of(*option); !values.empty())
      choices +=
          fmt::format("        {}) words='{}' ;;\n", spellings(*option, "|"), join(values, " "));
  }
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
      "        *) [[ $cur == -* ]] && words=$options ;;\n"
      "      esac ;;\n",
      command.name, names, takes_value, choices);
}

std::string bash() {
  std::string out = fmt::format(
      "# bash completion for lockstep and torchrun\n"
      "_lockstep() {{\n"
      "  local cur=${{COMP_WORDS[COMP_CWORD]}} command=run i=1 words= options=\n"
      "  COMPREPLY=()\n"
      "  if [[ ${{COMP_WORDS[0]##*/}} != torchrun ]]; then\n"
      "    if ((COMP_CWORD == 1)); then\n"
      "      COMPREPLY=($(compgen -W '{}' -- \"$cur\"))\n"
      "      return\n"
      "    fi\n"
      "    command=${{COMP_WORDS[1]}} i=2\n"
      "  fi\n"
      "  case $command in\n",
      subcommand_names());
  for (const Subcommand& command : subcommands()) {
    if (command.table != nullptr) out += bash_case(command);
  }
  return out +
         "  esac\n"
         "  [[ -n $words ]] && COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "  [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null\n"
         "}\n"
         "complete -o default -F _lockstep lockstep torchrun\n";
}

// For single quotes inside zsh's _arguments: no quote, no bracket, no colon.
std::string zsh_text(std::string_view text) {
  std::string out(text);
  replace_all(out, "'", "");
  replace_all(out, "[", "(");
  replace_all(out, "]", ")");
  replace_all(out, ":", "\\:");
  return out;
}

std::string zsh_rows(const Table& table) {
  std::string out;
  const auto row = [&out](const std::string& name, const Option& option) {
    std::string value;
    if (option.kind != Kind::flag) {
      const std::string values = join(values_of(option), " ");
      const bool beginnings = values.ends_with('=');
      value = fmt::format(":{}:{}", zsh_text(option.metavar),
                          values.empty() ? "_files"
                          : beginnings   ? fmt::format("compadd -S \"\" - {}", values)
                                         : fmt::format("({})", values));
    }
    out += fmt::format("        '*{}[{}]{}' \\\n", name, zsh_text(option.help), value);
  };
  for (const Option* option : options_of(table)) {
    // "+": the value may stand in the same word or the next.
    const bool flag = option->kind == Kind::flag;
    row(fmt::format("--{}{}", option->name, flag ? "" : "="), *option);
    if (option->letter != 0) row(fmt::format("-{}{}", option->letter, flag ? "" : "+"), *option);
  }
  if (table.takes_script) out += "        '(-)1:script:_files' '*::script argument:_files'\n";
  if (!table.takes_script) out += "        '(-)*::'\n";
  return out;
}

std::string zsh() {
  std::string out =
      "#compdef lockstep torchrun\n"
      "_lockstep() {\n"
      "  local command=run\n"
      "  if [[ ${words[1]:t} != torchrun ]]; then\n"
      "    if ((CURRENT == 2)); then\n"
      "      local -a commands=(\n";
  for (const Subcommand& command : subcommands())
    out += fmt::format("        '{}:{}'\n", command.name, zsh_text(command.summary));
  out +=
      "      )\n"
      "      _describe command commands\n"
      "      return\n"
      "    fi\n"
      "    command=${words[2]}\n"
      "    shift words\n"
      "    ((CURRENT--))\n"
      "  fi\n"
      "  case $command in\n";
  for (const Subcommand& command : subcommands()) {
    if (command.table == nullptr) continue;
    out += fmt::format("    {})\n      _arguments -A '-*' \\\n{}      ;;\n", command.name,
                       zsh_rows(*command.table));
  }
  return out +
         "  esac\n"
         "}\n"
         "if [[ $funcstack[1] == _lockstep ]]; then _lockstep \"$@\"; "
         "else compdef _lockstep lockstep torchrun; fi\n";
}

std::string fish_quoted(std::string_view text) {
  std::string out(text);
  replace_all(out, "\\", "\\\\");
  replace_all(out, "'", "\\'");
  return "'" + out + "'";
}

std::string fish_rows(std::string_view start, const Table& table) {
  std::string out;
  for (const Option* option : options_of(table)) {
    out += fmt::format("{} -l {}", start, option->name);
    if (option->letter != 0) out += fmt::format(" -s {}", option->letter);
    if (const auto values = values_of(*option); !values.empty()) {
      out += fmt::format(" -x -a '{}'", join(values, " "));
    } else if (option->kind != Kind::flag) {
      out += " -r";
    }
    out += fmt::format(" -d {}\n", fish_quoted(option->help));
  }
  return out;
}

std::string fish() {
  std::string out = "# fish completion for lockstep and torchrun\n";
  for (const Subcommand& command : subcommands())
    out += fmt::format("complete -c lockstep -n __fish_use_subcommand -f -a {} -d {}\n",
                       command.name, fish_quoted(command.summary));
  for (const Subcommand& command : subcommands()) {
    if (command.table == nullptr) continue;
    out += fish_rows(
        fmt::format("complete -c lockstep -n '__fish_seen_subcommand_from {}'", command.name),
        *command.table);
  }
  return out + fish_rows("complete -c torchrun", torchrun_table());
}

}  // namespace

Result<std::string> completion_script(std::string_view shell) {
  if (shell == "bash") return bash();
  if (shell == "zsh") return zsh();
  if (shell == "fish") return fish();
  return fail(Errc::invalid_input,
              fmt::format("completion for {} is not offered", printable(shell)),
              "use bash, zsh or fish");
}

}  // namespace lockstep::cli
