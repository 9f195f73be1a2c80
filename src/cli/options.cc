// Follows argparse's consume_optional and _parse_optional step by step, because scripts for
// torchrun rely on odd rules, too. Names of functions in comments are argparse's.
#include "cli/options.h"

#include "base/text.h"
#include "cli/meant.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::cli {
namespace {

using Failed = tl::unexpected<ParseFailure>;

Failed refuse(std::string message, std::string hint = {}) {
  return Failed(ParseFailure{ExitCode::usage,
                             Error{Errc::invalid_input, std::move(message), std::move(hint)}});
}

std::string folded(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

// Python's int() and float() accept 1_000, and so does _negative_number_matcher.
bool digits_with_underscores(std::string_view text) {
  if (text.empty() || text.front() == '_' || text.back() == '_') return false;
  if (text.find("__") != std::string_view::npos) return false;
  return text.find_first_not_of("0123456789_") == std::string_view::npos;
}

// argparse's _negative_number_matcher; text starts with '-'.
bool looks_negative(std::string_view text) {
  text.remove_prefix(1);
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return digits_with_underscores(text);
  return (dot == 0 || digits_with_underscores(text.substr(0, dot))) &&
         digits_with_underscores(text.substr(dot + 1));
}

// A possible reading of a word as an option. An abbreviation may have several readings.
struct Match {
  const Option* option = nullptr;  // nullptr: an unknown option
  std::optional<std::string> attached;
  bool equals = false;  // '=' stands before `attached`
  bool is_short = false;
};

struct Action {
  const Option* option;
  std::string value;
};

class Parser {
 public:
  Parser(const Table& table, std::span<const std::string> args, const GetEnv& env)
      : table_(table), args_(args), env_(env) {
    for (const Group& group : table.groups) {
      for (const Option& option : group.options)
        options_.push_back(&option);
    }
  }

  ParseResult run();

 private:
  using Step = tl::expected<void, ParseFailure>;

  Step read_env_flags();
  Step read_env_values();
  void take_names(std::size_t& at, bool all);
  Step read_words();
  Step consume_option(std::size_t& at);
  tl::expected<Action, ParseFailure> resolve(Match& match, std::size_t& next);
  Step apply(const Action& action);
  void take_script(std::size_t at);

  // Returns all readings of the word as an option; empty: the word is a positional.
  std::vector<Match> classify(const std::string& word) const;
  std::vector<Match> classify_long(std::string_view word) const;
  const Option* by_letter(char letter) const;
  Failed unknown_option() const;

  const Table& table_;
  std::span<const std::string> args_;
  const GetEnv& env_;
  std::vector<const Option*> options_;
  Parsed parsed_;
  std::optional<std::string> unknown_;  // the first unknown option
  std::string_view implied_;            // the option of the last word, if it took its implied value
};

const Option* Parser::by_letter(char letter) const {
  for (const Option* option : options_) {
    if (option->letter == letter) return option;
  }
  return nullptr;
}

std::vector<Match> Parser::classify_long(std::string_view word) const {
  const std::size_t equals = word.find('=');
  const std::string name = folded(word.substr(2, equals == word.npos ? equals : equals - 2));
  Match match;
  if (equals != word.npos) match.attached = std::string(word.substr(equals + 1));
  match.equals = equals != word.npos;
  std::vector<Match> theirs;
  std::vector<Match> ours;
  for (const Option* option : options_) {
    match.option = option;
    // The full name always wins, also where other options begin with the same letters.
    if (option->name == name) return {match};
    if (option->name.starts_with(name)) (option->own ? ours : theirs).push_back(match);
  }
  // An option of ours must not make an abbreviation ambiguous that works with torchrun.
  return theirs.empty() ? ours : theirs;
}

std::vector<Match> Parser::classify(const std::string& word) const {
  if (word.size() < 2 || word[0] != '-') return {};
  if (word[1] == '-') {
    std::vector<Match> matches = classify_long(word);
    if (!matches.empty()) return matches;
  } else if (const Option* option = by_letter(word[1])) {
    Match match{option, std::nullopt, false, true};
    if (word.size() > 2) {
      match.equals = word[2] == '=';
      match.attached = word.substr(match.equals ? 3 : 2);
    }
    return {match};
  }
  // _parse_optional takes negative numbers, and words with a space, as positionals.
  if (looks_negative(word) || word.find(' ') != std::string::npos) return {};
  return {Match{}};
}

// Finds the option's value in the word itself or in the next word. For a bundle of letters
// ("-mr3"), takes the first flag and makes `match` the rest of the bundle, without an option if the
// rest is unknown.
tl::expected<Action, ParseFailure> Parser::resolve(Match& match, std::size_t& next) {
  const Option& option = *match.option;
  const auto reject = [&option](std::string_view what) {
    return refuse(fmt::format("argument --{}: {}", option.name, what));
  };
  if (option.kind == Kind::flag) {
    if (!match.attached) return Action{&option, "1"};
    const std::string rest = *match.attached;
    if (!match.is_short || rest.empty() || match.equals || rest[0] == '-')
      return reject(fmt::format("ignored explicit argument '{}'", printable(rest)));
    match.option = by_letter(rest[0]);
    if (match.option == nullptr) {
      if (!unknown_) unknown_ = "-" + rest;
      return Action{&option, "1"};
    }
    match.equals = rest.size() > 1 && rest[1] == '=';
    match.attached = rest.substr(match.equals ? 2 : 1);
    if (match.attached->empty() && !match.equals) match.attached.reset();
    return Action{&option, "1"};
  }
  if (match.attached) return Action{&option, *match.attached};
  if (!option.implied.empty()) return Action{&option, std::string(option.implied)};
  // argparse never takes a word that looks like an option for a value. Such a value needs "=".
  if (next >= args_.size() || args_[next] == "--" || !classify(args_[next]).empty())
    return reject("expected one argument");
  return Action{&option, args_[next++]};
}

Parser::Step Parser::consume_option(std::size_t& at) {
  const std::string& word = args_[at];
  std::vector<Match> matches = classify(word);
  if (matches.size() > 1) {
    std::vector<std::string> names;
    names.reserve(matches.size());
    for (const Match& match : matches)
      names.push_back(fmt::format("--{}", match.option->name));
    return refuse(
        fmt::format("ambiguous option: {} could match {}", printable(word), join(names, ", ")));
  }
  ++at;
  Match match = std::move(matches.front());
  if (match.option == nullptr) {
    // argparse reports unknown options at the end only, after errors of known options.
    if (!unknown_) unknown_ = word;
    return {};
  }
  // consume_optional reads a whole bundle before acting, so an error in the bundle wins over -h.
  std::vector<Action> actions;
  while (match.option != nullptr) {
    const Option* before = match.option;
    const bool bundle = before->kind == Kind::flag && match.attached.has_value();
    auto action = resolve(match, at);
    if (!action) return Failed(std::move(action).error());
    actions.push_back(std::move(*action));
    if (!bundle) break;
  }
  for (const Action& action : actions) {
    if (auto applied = apply(action); !applied) return applied;
    if (!parsed_.ended_by.empty()) break;
  }
  return {};
}

Parser::Step Parser::apply(const Action& action) {
  const Option& option = *action.option;
  const std::string shown = printable(action.value);
  const bool bad_int = option.kind == Kind::integer && !parse_int(action.value);
  const bool bad_number = option.kind == Kind::number && !python_float(action.value);
  if (bad_int || bad_number)
    return refuse(fmt::format("argument --{}: invalid {} value: '{}'", option.name,
                              bad_int ? "int" : "float", shown));
  const auto& choices = option.choices;
  if (!choices.empty() &&
      std::find(choices.begin(), choices.end(), action.value) == choices.end()) {
    const std::vector<std::string> names(choices.begin(), choices.end());
    return refuse(fmt::format("argument --{}: invalid choice: '{}' (choose from {})", option.name,
                              shown, join(names, ", ")));
  }
  parsed_.values[std::string(option.name)] = action.value;
  if (option.field.repeats) parsed_.lists[std::string(option.name)].push_back(action.value);
  // The command line replaced a flag of the environment.
  parsed_.variables.erase(std::string(option.name));
  if (option.ends_parsing) parsed_.ended_by = option.name;
  implied_ = !option.implied.empty() && action.value == option.implied ? option.name : "";
  return {};
}

void Parser::take_script(std::size_t at) {
  parsed_.script = args_[at];
  parsed_.valueless = implied_;
  const auto rest = args_.subspan(at + 1);
  parsed_.script_args.assign(rest.begin(), rest.end());
}

// Takes one name. all: takes the rest of the words, since no option follows "--".
void Parser::take_names(std::size_t& at, bool all) {
  do {
    parsed_.names.push_back(args_[at++]);
  } while (all && at < args_.size());
}

Parser::Step Parser::read_words() {
  std::size_t at = 0;
  while (at < args_.size() && parsed_.ended_by.empty()) {
    const bool rest_is_positional = args_[at] == "--";
    if (rest_is_positional || classify(args_[at]).empty()) {
      if (rest_is_positional && ++at == args_.size()) break;
      if (table_.operands == Operands::names) {
        take_names(at, rest_is_positional);
        continue;
      }
      if (table_.operands == Operands::none) {
        if (!unknown_) unknown_ = args_[at];
        ++at;
        continue;
      }
      take_script(at);
      parsed_.dashes = rest_is_positional;
      // argparse matches the script with (-*A-*), which drops a "--" right behind the script. A
      // later
      // "--" stays.
      auto& rest = parsed_.script_args;
      if (!rest_is_positional && !rest.empty() && rest.front() == "--") rest.erase(rest.begin());
      break;
    }
    if (auto step = consume_option(at); !step) return step;
  }
  return {};
}

// torchrun reads these variables while building the parser, before argv. A bad value is an uncaught
// exception there, so the exit code is 1 instead of the parser's 2.
Parser::Step Parser::read_env_flags() {
  for (const Option* option : options_) {
    if (option->env.empty() || option->kind != Kind::flag) continue;
    const auto text = env_(option->env);
    if (!text) continue;
    const auto number = parse_int(*text);
    if (!number)
      return Failed(ParseFailure{
          ExitCode::failed, Error{Errc::invalid_input,
                                  fmt::format("{}: invalid literal for int() with base 10: '{}'",
                                              option->env, printable(*text)),
                                  fmt::format("use {0}=1 to switch --{1} on, {0}=0 for off",
                                              option->env, option->name)}});
    if (*number == 0) continue;
    parsed_.values[std::string(option->name)] = "1";
    parsed_.variables[std::string(option->name)] = option->env;
  }
  return {};
}

// A variable replaces a default. argparse converts a default to the option's type but does not
// check it against the choices, and so do we.
Parser::Step Parser::read_env_values() {
  for (const Option* option : options_) {
    if (option->env.empty() || option->kind == Kind::flag || parsed_.has(option->name)) continue;
    auto text = env_(option->env);
    if (!text) continue;
    Option unchecked = *option;
    unchecked.choices.clear();
    if (auto applied = apply({&unchecked, *text}); !applied) {
      ParseFailure failure = std::move(applied).error();
      failure.error.hint =
          fmt::format("the value comes from the environment variable {}", option->env);
      return Failed(std::move(failure));
    }
    parsed_.variables[std::string(option->name)] = option->env;
  }
  return {};
}

Failed Parser::unknown_option() const {
  const std::string name = folded(unknown_->substr(0, unknown_->find('=')));
  const std::size_t start = name.find_first_not_of('-');
  std::string hint;
  if (start != 0 && start != std::string::npos) {
    if (const auto meant = meant_option(table_, std::string_view(name).substr(start)))
      hint = fmt::format("did you mean --{}?", *meant);
  }
  return refuse(fmt::format("unrecognized arguments: {}", printable(*unknown_)), hint);
}

ParseResult Parser::run() {
  if (auto step = read_env_flags(); !step) return Failed(std::move(step).error());
  if (auto step = read_words(); !step) return Failed(std::move(step).error());
  // --help and --version work even if a variable or another word is wrong.
  if (!parsed_.ended_by.empty()) return std::move(parsed_);
  if (auto step = read_env_values(); !step) return Failed(std::move(step).error());
  if (unknown_) return unknown_option();
  if (table_.operands == Operands::script && !parsed_.script)
    return refuse("the following arguments are required: training_script",
                  fmt::format("{} --help lists the options", table_.program));
  return std::move(parsed_);
}

}  // namespace

std::optional<double> python_float(std::string_view text) {
  if (const auto finite = parse_float(text)) return finite;
  std::string word = to_lower(strip(text));
  const bool negative = word.starts_with('-');
  if (negative || word.starts_with('+')) word.erase(0, 1);
  const double sign = negative ? -1.0 : 1.0;
  if (word == "nan") return std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  if (word == "inf" || word == "infinity") return sign * std::numeric_limits<double>::infinity();
  return std::nullopt;
}

std::optional<std::string> Parsed::text(std::string_view name) const {
  const auto found = values.find(name);
  if (found == values.end()) return std::nullopt;
  return found->second;
}

// The parser has already refused values that are not of the option's kind.
void detail::set_field(bool& field, const std::string& /*value*/) {
  field = true;
}

void detail::set_field(std::string& field, const std::string& value) {
  field = value;
}

void detail::set_field(std::int64_t& field, const std::string& value) {
  field = parse_int(value).value_or(field);
}

void detail::set_field(double& field, const std::string& value) {
  field = python_float(value).value_or(field);
}

void detail::set_field(std::vector<std::string>& field, const std::string& value) {
  field.push_back(value);
}

Option help_option() {
  return {.name = "help", .help = "this text", .letter = 'h', .ends_parsing = true};
}

Option version_option() {
  return {.name = "version", .help = "the version", .ends_parsing = true};
}

std::vector<const Option*> options_of(const Table& table) {
  std::vector<const Option*> options;
  for (const Group& group : table.groups) {
    for (const Option& option : group.options)
      options.push_back(&option);
  }
  return options;
}

void fill_fields(const Table& table, const Parsed& parsed, const std::type_info& owner,
                 void* target) {
  for (const Group& group : table.groups) {
    for (const Option& option : group.options) {
      if (option.field.owner == nullptr || *option.field.owner != owner) continue;
      if (const auto list = parsed.lists.find(option.name); list != parsed.lists.end()) {
        for (const std::string& value : list->second)
          option.field.set(target, value);
      } else if (const auto value = parsed.text(option.name)) {
        option.field.set(target, *value);
      }
    }
  }
}

ParseResult parse_options(const Table& table, std::span<const std::string> args,
                          const GetEnv& env) {
  return Parser(table, args, env).run();
}

}  // namespace lockstep::cli
