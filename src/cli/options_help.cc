// Help text from an option table: two columns, 80 wide.
#include "base/text.h"
#include "cli/options.h"

#include <fmt/core.h>

namespace lockstep::cli {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kColumn = 29;  // where descriptions start

std::string left_side(const Option& option) {
  std::string out = option.letter != 0 ? fmt::format("  -{}, ", option.letter) : std::string("  ");
  out += fmt::format("--{}", option.name);
  if (option.kind != Kind::flag)
    out += fmt::format("{}{}", option.takes_word() ? " " : "", option.metavar);
  return out;
}

std::string description(const Option& option) {
  std::string out(option.help);
  if (!option.choices.empty()) {
    const std::vector<std::string> choices(option.choices.begin(), option.choices.end());
    out += (out.empty() ? "" : ": ") + join(choices, ", ");
  }
  if (!option.shown_default.empty()) out += fmt::format(" [{}]", option.shown_default);
  return out;
}

// Breaks the text into lines that fit between kColumn and kWidth.
std::vector<std::string> wrapped(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const std::string& word : split(text, ' ')) {
    std::string& line = lines.back();
    if (!line.empty() && line.size() + 1 + word.size() > kWidth - kColumn) {
      lines.push_back(word);
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return lines;
}

void add_row(std::string& out, std::string line, const std::string& text) {
  // A name that reaches the descriptions' column gets a line of its own, as in argparse's help.
  if (line.size() + 2 > kColumn) {
    out += line + "\n";
    line.clear();
  }
  for (const std::string& part : wrapped(text)) {
    line.resize(kColumn, ' ');
    out += line + part + "\n";
    line.clear();
  }
}

std::string help_variables(const std::vector<Variable>& variables) {
  std::string out = "Environment:\n";
  for (const Variable& variable : variables)
    add_row(out, fmt::format("  {}={}", variable.name, variable.metavar),
            std::string(variable.help));
  return out;
}

}  // namespace

std::string usage_line(const Table& table) {
  static constexpr std::string_view kOperands[] = {"", " script [script arguments ...]",
                                                   " HOST [--] COMMAND [ARGUMENT ...]", ""};
  const std::string names = table.shown_names.empty()
                                ? std::string(kOperands[static_cast<std::size_t>(table.operands)])
                                : fmt::format(" {}", table.shown_names);
  return fmt::format("usage: {} [options]{}", table.program, names);
}

std::string help_group(const Group& group) {
  std::string out = fmt::format("{}:\n", group.title);
  for (const Option& option : group.options)
    add_row(out, left_side(option), description(option));
  return out;
}

std::string help_text(const Table& table) {
  std::string out = fmt::format("{}\n\n{}\n", usage_line(table), table.summary);
  if (!table.examples.empty()) {
    std::string examples(table.examples);
    replace_all(examples, "\n", "\n  ");
    out += fmt::format("\n  {}\n", examples);
  }
  if (!table.details.empty()) out += fmt::format("\n{}\n", table.details);
  for (const Group& group : table.groups)
    out += fmt::format("\n{}", help_group(group));
  if (!table.variables.empty()) out += fmt::format("\n{}", help_variables(table.variables));
  if (!table.epilog.empty()) out += fmt::format("\n{}\n", table.epilog);
  return out;
}

}  // namespace lockstep::cli
