// The command line, driven by tables of rows. Reads argv exactly as Python's argparse (3.14) does
// with torchrun's table, and prints help from the same rows. One superset: '-' and '_' are equal
// anywhere in a long name, so a prefix that torchrun refuses only because of an option's two
// spellings is accepted.
#pragma once

#include "base/error.h"
#include "cli/exit_code.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <vector>

namespace lockstep::cli {

enum class Kind { flag, text, integer, number };

// The place of an option's value: a field of the struct that the table is parsed for. The field's
// type decides the option's kind. `into` makes Fields.
struct Field {
  Kind kind = Kind::flag;
  const std::type_info* owner = nullptr;  // the struct's type; nullptr: the option has no field
  void (*set)(void* target, const std::string& value) = nullptr;  // target: an object of that type
  bool repeats = false;  // a list: the option may be given several times
};

struct Option {
  std::string_view name;  // long name with dashes, without the leading two
  Field field = {};
  Kind kind = field.kind;  // a row without a field must set this
  std::string_view metavar = {};
  std::string_view help = {};
  std::string_view shown_default = {};  // for help only
  std::string_view env = {};            // variable that replaces the default
  char letter = 0;                      // short form
  std::vector<std::string_view> choices = {};
  bool own = false;           // not an option of torchrun, whose rows win in abbreviations
  bool shapes_job = false;    // decides where a job runs, or on how many nodes
  bool ends_parsing = false;  // the words behind it are not read (--help)
  // The option's value if the user gives none. Such an option takes a value only behind "=":
  // "--spot" and "--spot=prefer". The metavar is the whole tail: "[=prefer]".
  std::string_view implied = {};

  bool takes_word() const { return kind != Kind::flag && implied.empty(); }
};

struct Group {
  std::string_view title;
  std::vector<Option> options;
};

// An environment variable of the command, but of no option (see Option::env).
struct Variable {
  std::string_view name;
  std::string_view metavar;
  std::string_view help;
};

// The operands. From a script or a place on, the parser takes all words unread.
enum class Operands {
  none,
  script,   // a script and its arguments; the parser refuses a line without a script
  command,  // a place and a command for it; the subcommand checks both
  names,    // words among the options, in any order; the subcommand checks them
};

struct Table {
  std::string_view program;        // "lockstep run"
  std::string_view summary;        // one sentence, on the line under the usage line
  std::string_view examples = {};  // two or three whole command lines, a line each
  std::string_view details = {};   // the paragraphs under the examples
  std::string_view epilog;         // lines at the end of help
  Operands operands = Operands::script;
  std::vector<Group> groups;
  std::vector<Variable> variables = {};
  std::string_view shown_names = {};  // Operands::names, for the usage line: "NAME"
};

struct Parsed {
  // Values by long name, as typed, checked for their kind. A flag that is on is "1". Absent: use
  // the default.
  std::map<std::string, std::string, std::less<>> values;
  // All values of options that may be given more than once, in the order given.
  std::map<std::string, std::vector<std::string>, std::less<>> lists;
  // For values from the environment: long name -> name of the variable.
  std::map<std::string, std::string, std::less<>> variables;
  std::string ended_by;  // long name of the option that ended parsing, or empty
  bool dashes = false;   // "--" stood right in front of the script
  // Long name of the option right in front of the script, if it took its implied value.
  std::string valueless;
  std::optional<std::string> script;
  std::vector<std::string> script_args;
  std::vector<std::string> names;  // Operands::names

  // Return whether the option was given, and its value as typed; nullopt: not given.
  bool has(std::string_view name) const { return values.find(name) != values.end(); }
  std::optional<std::string> text(std::string_view name) const;
};

// Return the rows that every table has.
Option help_option();
Option version_option();

// Returns the options of all groups.
std::vector<const Option*> options_of(const Table& table);

// Use fill(), which checks the types.
void fill_fields(const Table& table, const Parsed& parsed, const std::type_info& owner,
                 void* target);
// Sets the fields of target whose options were given. Other fields keep their defaults. Skips the
// rows of other structs, because a table may fill several structs.
template <class T>
void fill(const Table& table, const Parsed& parsed, T& target) {
  fill_fields(table, parsed, typeid(T), &target);
}

struct ParseFailure {
  ExitCode exit_code = ExitCode::usage;  // failed: where torchrun's parser raises
  Error error;
};

// Reads a number as Python's float() does, "nan" and "inf" included.
std::optional<double> python_float(std::string_view text);

using ParseResult = tl::expected<Parsed, ParseFailure>;
using GetEnv = std::function<std::optional<std::string>(std::string_view name)>;

// Parses the words by the table. Starts nothing and prints nothing. args: without the program's
// name. env: reads a variable.
ParseResult parse_options(const Table& table, std::span<const std::string> args, const GetEnv& env);

std::string usage_line(const Table& table);  // "usage: lockstep run [options] script [...]"
std::string help_text(const Table& table);   // at most 80 columns
// Returns a group's part of help_text, with its heading.
std::string help_group(const Group& group);

namespace detail {

inline constexpr Kind kind_of(const bool* /*field*/) {
  return Kind::flag;
}
inline constexpr Kind kind_of(const std::string* /*field*/) {
  return Kind::text;
}
inline constexpr Kind kind_of(const std::int64_t* /*field*/) {
  return Kind::integer;
}
inline constexpr Kind kind_of(const double* /*field*/) {
  return Kind::number;
}
inline constexpr Kind kind_of(const std::vector<std::string>* /*field*/) {
  return Kind::text;
}
template <class Value>
constexpr Kind kind_of(const std::optional<Value>* /*field*/) {
  return kind_of(static_cast<const Value*>(nullptr));
}

void set_field(bool& field, const std::string& value);
void set_field(std::string& field, const std::string& value);
void set_field(std::int64_t& field, const std::string& value);
void set_field(double& field, const std::string& value);
void set_field(std::vector<std::string>& field, const std::string& value);
template <class Value>
void set_field(std::optional<Value>& field, const std::string& value) {
  set_field(field.emplace(), value);
}

template <class Owner, class Value, Value Owner::*member>
constexpr Field field_at(std::integral_constant<Value Owner::*, member> /*which*/) {
  return {kind_of(static_cast<const Value*>(nullptr)), &typeid(Owner),
          [](void* target, const std::string& value) {
            set_field(static_cast<Owner*>(target)->*member, value);
          },
          std::is_same_v<Value, std::vector<std::string>>};
}

}  // namespace detail

// into<&Options::host> is the value of a row's `field`.
template <auto member>
inline constexpr Field into = detail::field_at(std::integral_constant<decltype(member), member>{});

}  // namespace lockstep::cli
