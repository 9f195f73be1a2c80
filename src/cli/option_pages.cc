#include "cli/option_pages.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::cli {
namespace {

// In roff a backslash starts an escape, "-" is a hyphen that cannot be pasted into a shell, and a
// line that starts with a dot or a quote is a request.
std::string roff(std::string_view text) {
  std::string out = fmt::format("\n{}", text);
  replace_all(out, "\\", "\\e");
  replace_all(out, "-", "\\-");
  replace_all(out, "\n.", "\n\\&.");
  replace_all(out, "\n'", "\n\\&'");
  return out.substr(1);
}

// Returns the name of a page: "lockstep-run" for `lockstep run`.
std::string page_name(std::string_view program) {
  std::string out(program);
  replace_all(out, " ", "-");
  return out;
}

std::string choices(const Option& option) {
  return join(std::vector<std::string>(option.choices.begin(), option.choices.end()), ", ");
}

std::vector<const Table*> tables_of(const Program& program) {
  std::vector<const Table*> tables;
  for (const Node& node : listed_rows(program)) {
    if (node.row->table != nullptr) tables.push_back(&node.row->table());
  }
  return tables;
}

// Returns the table with the same groups; nullptr: none. The page of `lockstep launch` refers to
// the page of `lockstep run` instead of repeating the groups. All tables with a script are variants
// of the first table with a script.
const Table* shared_with(const Program& program, const Table& table) {
  if (table.operands != Operands::script) return nullptr;
  for (const Table* first : tables_of(program)) {
    if (first == &table) return nullptr;
    if (first->operands == Operands::script) return first;
  }
  return nullptr;
}

bool is_in(const Table* shared, const Group& group) {
  return shared != nullptr &&
         std::any_of(shared->groups.begin(), shared->groups.end(),
                     [&group](const Group& other) { return other.title == group.title; });
}

std::string man_option(const Option& option) {
  std::string out = ".TP\n";
  if (option.letter != 0) out += fmt::format("\\fB\\-{}\\fR, ", option.letter);
  out += fmt::format("\\fB{}\\fR", roff(fmt::format("--{}", option.name)));
  if (option.kind != Kind::flag)
    out += fmt::format("{}\\fI{}\\fR", option.takes_word() ? " " : "", roff(option.metavar));
  out += fmt::format("\n{}.\n", roff(option.help));
  if (!option.choices.empty()) out += fmt::format("One of {}.\n", roff(choices(option)));
  if (!option.shown_default.empty())
    out += fmt::format("Default: {}.\n", roff(option.shown_default));
  if (!option.env.empty()) out += fmt::format("Environment: {}.\n", roff(option.env));
  return out;
}

std::string man_variable(const Variable& variable) {
  return fmt::format(".TP\n\\fB{}\\fR=\\fI{}\\fR\n{}.\n", roff(variable.name),
                     roff(variable.metavar), roff(variable.help));
}

std::string man_heading(std::string_view name, std::string_view version, std::string_view date) {
  return fmt::format(".TH {} 1 {} \"lockstep {}\" \"User Commands\"\n", roff(to_upper(name)), date,
                     version);
}

constexpr std::string_view kExitStatus =
    ".SH EXIT STATUS\n"
    ".TP\n.B 0\nAll workers ended with 0.\n"
    ".TP\n.B 1\nA worker failed and no restart was left, a value was refused, or a signal ended "
    "the job.\n"
    ".TP\n.B 2\nThe command line could not be understood.\n"
    ".TP\n.B 128 + N\nSignal N ended lockstep before the first worker was started.\n"
    ".PP\nWith\n.B \\-\\-exit\\-code worker\na failed job ends with the first failed worker's own "
    "code.\n";

std::string man_see_also(const Program& program, std::string_view except) {
  std::vector<std::string> pages;
  if (except != program.root.name)
    pages.push_back(fmt::format(".BR {} (1)", roff(program.root.name)));
  for (const Table* table : tables_of(program)) {
    if (page_name(table->program) != except)
      pages.push_back(fmt::format(".BR {} (1)", roff(page_name(table->program))));
  }
  return fmt::format(
      ".SH SEE ALSO\n{}\n.PP\nDocuments that are named as docs/remote.md lie in "
      "share/doc/lockstep, "
      "beside the folder\nbin of the program.\n",
      join(pages, ",\n"));
}

std::string man_page(const Program& program, const Subcommand& command, std::string_view version,
                     std::string_view date) {
  static constexpr std::string_view kOperands[] = {
      "", " \\fIscript\\fR [\\fIscript arguments\\fR ...]",
      " \\fIHOST\\fR [\\-\\-] \\fICOMMAND\\fR [\\fIARGUMENT\\fR ...]", " "};
  const Table& table = command.table();
  const Table* shared = shared_with(program, table);
  const std::string name = page_name(table.program);
  std::string out = man_heading(name, version, date);
  out += fmt::format(".SH NAME\n{} \\- {}\n", roff(name), roff(command.summary));
  out += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR [\\fIoptions\\fR]{}{}\n", roff(table.program),
                     kOperands[static_cast<std::size_t>(table.operands)],
                     table.shown_names.empty() ? "" : roff(table.shown_names));
  out += fmt::format(".SH DESCRIPTION\n{}\n", roff(table.summary));
  if (!table.details.empty()) out += fmt::format(".PP\n{}\n", roff(table.details));
  if (!table.examples.empty())
    out += fmt::format(".SH EXAMPLES\n.nf\n{}\n.fi\n", roff(table.examples));
  out += ".SH OPTIONS\n";
  if (shared != nullptr)
    out += fmt::format("All options of\n.BR {} (1),\nand:\n", roff(page_name(shared->program)));
  for (const Group& group : table.groups) {
    if (is_in(shared, group)) continue;
    if (table.groups.size() > 1) out += fmt::format(".SS {}\n", roff(group.title));
    for (const Option& option : group.options)
      out += man_option(option);
  }
  if (table.operands == Operands::script) out += kExitStatus;
  if (!table.variables.empty() && shared == nullptr) {
    out += ".SH ENVIRONMENT\n";
    for (const Variable& variable : table.variables)
      out += man_variable(variable);
  }
  if (!table.epilog.empty()) out += fmt::format(".SH NOTES\n{}\n", roff(table.epilog));
  return out + man_see_also(program, name);
}

std::string man_overview(const Program& program, std::string_view version, std::string_view date) {
  std::string out = man_heading(program.root.name, version, date);
  out +=
      ".SH NAME\nlockstep \\- start a training command on every rank and supervise the ranks\n"
      ".SH SYNOPSIS\n\\fBlockstep\\fR \\fIcommand\\fR [\\fIoptions\\fR]\n"
      ".SH DESCRIPTION\nStarts the workers of a PyTorch job, as torchrun does: all ranks start, "
      "fail and recover\nin lockstep.\n"
      "Called through a link named\n.BR torchrun ,\nthe program is\n.BR \"lockstep run\" .\n"
      ".SH COMMANDS\n";
  for (const Node& node : listed_rows(program)) {
    if (node.path.empty()) continue;
    out += fmt::format(".TP\n.B {}\n{}.\n", roff(node.path), roff(node.row->summary));
    if (node.row->table != nullptr)
      out += fmt::format("See\n.BR {} (1).\n", roff(page_name(node.row->table().program)));
  }
  return out + man_see_also(program, program.root.name);
}

// Escapes text for a cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string out(text);
  replace_all(out, "|", "\\|");
  return out;
}

std::string code(std::string_view text) {
  return text.empty() ? std::string() : fmt::format("`{}`", cell(text));
}

// A value with "|" would end the cell, also inside of backticks.
std::string markdown_row(const Option& option) {
  std::string name = option.letter != 0 ? fmt::format("`-{}`, ", option.letter) : std::string();
  name += code(fmt::format("--{}{}{}", option.name, option.takes_word() ? " " : "",
                           option.kind == Kind::flag ? "" : option.metavar));
  std::string meaning(option.help);
  if (!option.choices.empty())
    meaning += fmt::format("{}one of {}", meaning.empty() ? "" : "; ", choices(option));
  return fmt::format("| {} | {} | {} | {} |\n", name, code(option.shown_default), code(option.env),
                     cell(meaning));
}

std::string markdown_section(const Program& program, const Table& table) {
  const Table* shared = shared_with(program, table);
  std::string out = fmt::format("\n## {}\n\n{}\n", table.program, table.summary);
  if (!table.examples.empty()) out += fmt::format("\n```sh\n{}\n```\n", table.examples);
  if (!table.details.empty()) out += fmt::format("\n{}\n", table.details);
  if (shared != nullptr) out += fmt::format("\nAll options of `{}`, and:\n", shared->program);
  for (const Group& group : table.groups) {
    if (is_in(shared, group)) continue;
    if (table.groups.size() > 1) out += fmt::format("\n### {}\n", group.title);
    out += "\n| option | default | variable | meaning |\n|---|---|---|---|\n";
    for (const Option& option : group.options)
      out += markdown_row(option);
  }
  if (!table.variables.empty() && shared == nullptr) {
    out += "\n### Environment\n\n| variable | meaning |\n|---|---|\n";
    for (const Variable& variable : table.variables)
      out +=
          fmt::format("| `{}={}` | {} |\n", variable.name, variable.metavar, cell(variable.help));
  }
  if (!table.epilog.empty() && shared == nullptr) out += fmt::format("\n{}\n", table.epilog);
  return out;
}

}  // namespace

std::vector<ManPage> man_pages(const Program& program, std::string_view version,
                               std::string_view date) {
  std::vector<ManPage> pages{
      {std::string(program.root.name), man_overview(program, version, date)}};
  for (const Node& node : listed_rows(program)) {
    if (node.row->table != nullptr)
      pages.push_back(
          {page_name(node.row->table().program), man_page(program, *node.row, version, date)});
  }
  return pages;
}

std::string options_markdown(const Program& program) {
  std::string out =
      "# Every option\n\n"
      "Made from the option tables by `./dev docs`; the rules behind them are in\n"
      "[command-line.md](command-line.md).\n";
  for (const Table* table : tables_of(program))
    out += markdown_section(program, *table);
  return out;
}

}  // namespace lockstep::cli
