#include "rows/table.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <set>
#include <utility>

namespace lockstep::rows {
namespace {

constexpr std::size_t kMostName = 64;
// All values of a row go through arguments and the environment, whose size the kernel limits.
constexpr std::size_t kMostValue = 4096;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMostName && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '.'; });
}

// A value becomes an argument, a part of a variable, and a word on a terminal.
bool is_value(std::string_view text) {
  return text.size() <= kMostValue && std::none_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

std::string variable_of(std::string_view name) {
  std::string variable = "LOCKSTEP_SWEEP_" + to_upper(name);
  std::replace_if(
      variable.begin(), variable.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return variable;
}

// Two names must not share a variable: "lr.a" and "lr-a" would.
Status check_names(const std::vector<std::string>& names) {
  if (names.size() > kMostNames)
    return fail(Errc::invalid_input, fmt::format("a sweep has at most {} names", kMostNames));
  // The last two are Lockstep's own.
  std::set<std::string> variables = {variable_of("row"), variable_of("part"), variable_of("table")};
  for (const std::string& name : names) {
    if (!is_name(name))
      return fail(Errc::invalid_input, fmt::format("'{}' is not a name", printable(name, 80)),
                  "a name begins with a letter, and has letters, digits, '_', '-' and '.'");
    if (!variables.insert(variable_of(name)).second)
      return fail(
          Errc::invalid_input,
          fmt::format("'{}' is given twice, or is a name of Lockstep's own (row, part, table)",
                      name));
  }
  return {};
}

Status check_value(const std::string& name, const std::string& value) {
  if (is_value(value)) return {};
  return fail(Errc::invalid_input,
              fmt::format("the value '{}' of {} has a control character or over {} bytes",
                          printable(value, 60), name, kMostValue));
}

Failure too_many_rows() {
  return fail(Errc::invalid_input, fmt::format("a sweep has at most {} rows", kMostRows),
              "make several sweeps, or sample the rows into a --sweep-file");
}

// Reads "0-4", both ends included. nullopt: the text is a value by itself, as "1e-3".
std::optional<std::pair<std::int64_t, std::int64_t>> range_of(std::string_view text) {
  const std::size_t dash = text.find('-');
  // A dash in front is the sign of a number.
  if (dash == std::string_view::npos || dash == 0 || dash + 1 == text.size()) return {};
  const auto number = [](std::string_view digits) -> std::optional<std::int64_t> {
    // Leading zeros belong to dates and the like.
    if (digits.size() > 1 && digits.front() == '0') return {};
    if (!std::all_of(digits.begin(), digits.end(), is_digit)) return {};
    return parse_int(digits);
  };
  const auto first = number(text.substr(0, dash));
  const auto last = number(text.substr(dash + 1));
  if (!first || !last || *last < *first) return {};
  return std::pair(*first, *last);
}

struct Field {
  std::string text;
  bool quoted = false;
};

// Reads one CSV record from the beginning of `rest`, and removes it with its line end.
Result<std::vector<Field>> take_record(std::string_view& rest) {
  std::vector<Field> fields(1);
  while (true) {
    Field& field = fields.back();
    if (rest.starts_with('"')) {
      field.quoted = true;
      rest.remove_prefix(1);
      while (true) {
        const std::size_t quote = rest.find('"');
        if (quote == std::string_view::npos)
          return fail(Errc::invalid_input, "a double quote is never closed");
        field.text.append(rest.substr(0, quote));
        rest.remove_prefix(quote + 1);
        if (!rest.starts_with('"')) break;
        field.text += '"';
        rest.remove_prefix(1);
      }
      if (!rest.empty() && rest.front() != ',' && rest.front() != '\r' && rest.front() != '\n')
        return fail(Errc::invalid_input, "text follows a closing double quote");
    } else {
      const std::size_t end = std::min(rest.find_first_of(",\r\n"), rest.size());
      field.text = std::string(strip(rest.substr(0, end)));
      rest.remove_prefix(end);
    }
    if (!rest.starts_with(',')) break;
    rest.remove_prefix(1);
    fields.emplace_back();
  }
  if (rest.starts_with('\r')) rest.remove_prefix(1);
  if (rest.starts_with('\n')) rest.remove_prefix(1);
  return fields;
}

struct Axis {
  std::string name;
  std::vector<std::string> values;
};

Result<Axis> read_axis(std::string_view text) {
  const std::size_t equals = text.find('=');
  const auto bad = [&](const std::string& what) {
    return fail(Errc::invalid_input, fmt::format("--sweep '{}': {}", printable(text, 200), what),
                "as --sweep lr=1e-3,3e-4 or --sweep seed=0-4");
  };
  if (equals == std::string_view::npos) return bad("there is no '='");
  Axis axis{.name = std::string(text.substr(0, equals)), .values = {}};
  std::string_view rest = text.substr(equals + 1);
  if (rest.empty()) return bad("there are no values");
  auto fields = take_record(rest);
  if (!fields) return bad(fields.error().message);
  if (!rest.empty()) return bad("a value has a line end");
  for (const Field& field : *fields) {
    if (const auto range = field.quoted ? std::nullopt : range_of(field.text)) {
      if (range->second - range->first >= static_cast<std::int64_t>(kMostRows))
        return too_many_rows();
      // Counts from 0: the last value may be the largest number.
      for (std::int64_t step = 0; step <= range->second - range->first; ++step)
        axis.values.push_back(std::to_string(range->first + step));
    } else {
      axis.values.push_back(field.text);
    }
    if (axis.values.size() > kMostRows) return too_many_rows();
  }
  for (const std::string& value : axis.values)
    LOCKSTEP_TRY(check_value(axis.name, value));
  return axis;
}

std::string csv_field(const std::string& text) {
  // take_record() strips blanks, and read_csv() skips an empty line: quote such a field.
  const bool plain = text == strip(text) && text.find_first_of(",\"\r\n") == std::string::npos;
  if (plain && !text.empty()) return text;
  std::string quoted = text;
  replace_all(quoted, "\"", "\"\"");
  return "\"" + quoted + "\"";
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields)
    line += (line.empty() ? "" : ",") + csv_field(field);
  return line + "\n";
}

}  // namespace

Result<Table> grid(const std::vector<std::string>& axes) {
  Table table;
  table.rows = {{}};
  for (const std::string& text : axes) {
    LOCKSTEP_TRY_ASSIGN(const Axis axis, read_axis(text));
    table.names.push_back(axis.name);
    if (table.rows.size() * axis.values.size() > kMostRows) return too_many_rows();
    std::vector<std::vector<std::string>> longer;
    for (const auto& row : table.rows)
      for (const std::string& value : axis.values) {
        longer.push_back(row);
        longer.back().push_back(value);
      }
    table.rows = std::move(longer);
  }
  LOCKSTEP_TRY(check_names(table.names));
  return table;
}

Result<Table> read_csv(std::string_view text) {
  if (text.size() > kMostFile)
    return fail(Errc::invalid_input, fmt::format("the file of rows has over {} bytes", kMostFile));
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // Excel's mark
  Table table;
  std::size_t line = 0;
  while (!text.empty()) {
    ++line;
    LOCKSTEP_TRY_ASSIGN(auto fields, take_record(text));
    if (fields.size() == 1 && fields[0].text.empty() && !fields[0].quoted) continue;
    std::vector<std::string> values;
    for (Field& field : fields)
      values.push_back(std::move(field.text));
    if (table.names.empty()) {
      LOCKSTEP_TRY(check_names(values));
      table.names = std::move(values);
      continue;
    }
    if (values.size() != table.names.size())
      return fail(Errc::invalid_input, fmt::format("line {} has {} values for {} names", line,
                                                   values.size(), table.names.size()));
    for (std::size_t i = 0; i < values.size(); ++i)
      LOCKSTEP_TRY(check_value(table.names[i], values[i]));
    if (table.rows.size() == kMostRows) return too_many_rows();
    table.rows.push_back(std::move(values));
  }
  if (table.rows.empty())
    return fail(Errc::invalid_input, "there are no rows",
                "the first line has the names, each other line the values of a row");
  return table;
}

std::string print_csv(const Table& table) {
  std::string text = csv_line(table.names);
  for (const auto& row : table.rows)
    text += csv_line(row);
  return text;
}

std::string row_text(const Table& table, std::size_t row) {
  std::string text;
  for (std::size_t i = 0; i < table.names.size(); ++i)
    text += (text.empty() ? "" : " ") + table.names[i] + "=" + table.rows[row][i];
  return text;
}

std::string filled(std::string_view word, const Table& table, std::size_t row) {
  std::string text;
  while (true) {
    const std::size_t brace = word.find('{');
    text.append(word.substr(0, brace));
    if (brace == std::string_view::npos) return text;
    word.remove_prefix(brace);
    const std::size_t end = word.find('}');
    if (end == std::string_view::npos) return text.append(word);
    const std::string_view name = word.substr(1, end - 1);
    const auto at = std::find(table.names.begin(), table.names.end(), name);
    if (at != table.names.end()) {
      text += table.rows[row][static_cast<std::size_t>(at - table.names.begin())];
    } else if (name == "row") {
      text += std::to_string(row);
    } else {
      // Another brace may begin inside: "{x{lr}".
      text += '{';
      word.remove_prefix(1);
      continue;
    }
    word.remove_prefix(end + 1);
  }
}

std::vector<std::string> row_variables(const Table& table, std::size_t row) {
  std::vector<std::string> variables = {fmt::format("{}={}", variable_of("row"), row)};
  for (std::size_t i = 0; i < table.names.size(); ++i)
    variables.push_back(variable_of(table.names[i]) + "=" + table.rows[row][i]);
  return variables;
}

Result<Values> wanted_values(std::string_view text) {
  LOCKSTEP_TRY_ASSIGN(const auto fields, take_record(text));
  Values values;
  for (const Field& field : fields) {
    const std::size_t equals = field.text.find('=');
    if (equals == std::string::npos)
      return fail(Errc::invalid_input,
                  fmt::format("'{}' is not NAME=VALUE", printable(field.text, 60)));
    values.emplace_back(field.text.substr(0, equals), field.text.substr(equals + 1));
  }
  return values;
}

bool has_values(const Table& table, std::size_t row, const Values& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& value) {
    const auto at = std::find(table.names.begin(), table.names.end(), value.first);
    return at != table.names.end() &&
           table.rows[row][static_cast<std::size_t>(at - table.names.begin())] == value.second;
  });
}

Result<std::vector<std::size_t>> read_row_set(std::string_view text, std::size_t rows) {
  std::set<std::size_t> found;
  for (const std::string& part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const auto number = [](std::string_view digits) -> std::optional<std::size_t> {
      std::size_t value = 0;
      const auto [end, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (error != std::errc() || end != digits.data() + digits.size()) return {};
      return value;
    };
    const std::string_view whole = part;
    const auto first = number(whole.substr(0, dash));
    const auto last = dash == std::string::npos ? first : number(whole.substr(dash + 1));
    if (!first || !last || *last < *first)
      return fail(Errc::invalid_input,
                  fmt::format("'{}' is not a row or a range of rows", printable(part, 60)),
                  "as 3,7,12-40");
    if (*last >= rows)
      return fail(Errc::invalid_input,
                  fmt::format("there is no row {}: the last one is {}", *last, rows - 1));
    for (std::size_t row = *first; row <= *last; ++row)
      found.insert(row);
  }
  return std::vector<std::size_t>(found.begin(), found.end());
}

std::string print_row_set(const std::vector<std::size_t>& rows) {
  std::string text;
  for (std::size_t at = 0; at < rows.size();) {
    std::size_t end = at;
    while (end + 1 < rows.size() && rows[end + 1] == rows[end] + 1)
      ++end;
    if (!text.empty()) text += ',';
    text += end == at ? std::to_string(rows[at]) : fmt::format("{}-{}", rows[at], rows[end]);
    at = end + 1;
  }
  return text;
}

}  // namespace lockstep::rows
