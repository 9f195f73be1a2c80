#include "launchers/argument_split.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace lockstep::launchers {
namespace {

struct Match {
  const ArgumentRow* row = nullptr;  // nullptr: looks like an option, but is unknown
  std::optional<std::string> attached = {};
};

bool digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Returns whether a word is a negative number, which argparse takes as an operand.
bool negative_number(std::string_view word) {
  word.remove_prefix(1);
  const std::size_t dot = word.find('.');
  if (dot == std::string_view::npos) return digits(word);
  return (dot == 0 || digits(word.substr(0, dot))) && digits(word.substr(dot + 1));
}

class Splitter {
 public:
  Splitter(std::string_view launcher, std::span<const ArgumentRow> rows,
           std::span<const std::string> words)
      : launcher_(launcher), rows_(rows), words_(words) {}

  Result<SplitArguments> run();

 private:
  Failure refuse(const std::string& what) const {
    return fail(Errc::invalid_input, fmt::format("{}: {}", launcher_, what));
  }
  const ArgumentRow* by_letter(char letter) const;
  // Returns the matching options: several if ambiguous, none for an operand.
  std::vector<Match> classify(const std::string& word) const;
  std::vector<Match> classify_long(std::string_view word) const;
  Status take(const ArgumentRow& row, std::optional<std::string> attached);
  Status take_letters(const ArgumentRow* row, std::optional<std::string> attached);
  Status take_word();
  void add(const ArgumentRow& row, std::string value);

  std::string_view launcher_;
  std::span<const ArgumentRow> rows_;
  std::span<const std::string> words_;
  std::size_t at_ = 0;
  bool ended_ = false;
  SplitArguments split_;
};

const ArgumentRow* Splitter::by_letter(char letter) const {
  for (const ArgumentRow& row : rows_)
    if (row.letter == letter) return &row;
  return nullptr;
}

std::vector<Match> Splitter::classify_long(std::string_view word) const {
  const std::size_t equals = word.find('=');
  std::string name(word.substr(2, equals == word.npos ? equals : equals - 2));
  // Both spellings of an option are the same, with '-' and with '_'.
  std::replace(name.begin(), name.end(), '_', '-');
  std::optional<std::string> attached;
  if (equals != word.npos) attached = std::string(word.substr(equals + 1));
  std::vector<Match> matches;
  // argparse accepts any unambiguous beginning of a long option.
  for (const ArgumentRow& row : rows_) {
    // A full name wins over longer names with the same beginning.
    if (row.name == name) return {{&row, attached}};
    if (row.name.starts_with(name)) matches.push_back({&row, attached});
  }
  return matches;
}

std::vector<Match> Splitter::classify(const std::string& word) const {
  if (word.size() < 2 || word[0] != '-') return {};
  if (word[1] == '-') {
    auto matches = classify_long(word);
    if (!matches.empty()) return matches;
  } else if (const ArgumentRow* row = by_letter(word[1])) {
    if (word.size() == 2) return {{row}};
    return {{row, word.substr(row->takes_value && word[2] == '=' ? 3 : 2)}};
  }
  // argparse takes a word with a space as an operand, even behind a dash.
  if (negative_number(word) || word.find(' ') != std::string::npos) return {};
  return {Match{}};
}

void Splitter::add(const ArgumentRow& row, std::string value) {
  split_.options.push_back({std::string(row.same.empty() ? row.name : row.same), std::move(value)});
  ended_ = row.ends;
}

Status Splitter::take(const ArgumentRow& row, std::optional<std::string> attached) {
  if (!row.takes_value) {
    if (attached)
      return refuse(
          fmt::format("--{} takes no value, and '{}' is given", row.name, printable(*attached)));
    add(row, {});
    return {};
  }
  if (!attached) {
    // argparse does not take an option as a value.
    if (at_ >= words_.size() || words_[at_] == "--" || !classify(words_[at_]).empty())
      return refuse(fmt::format("--{} needs a value", row.name));
    attached = words_[at_++];
  }
  add(row, std::move(*attached));
  return {};
}

// Reads letters in one word, such as "-mr3": flags first, then at most one option. The rest of the
// word is the option's value.
Status Splitter::take_letters(const ArgumentRow* row, std::optional<std::string> attached) {
  while (!row->takes_value && attached && !attached->empty()) {
    add(*row, {});
    row = by_letter(attached->front());
    if (row == nullptr)
      return refuse(fmt::format("there is no option -{}", printable(attached->substr(0, 1))));
    attached = attached->substr(1);
    if (attached->empty()) attached.reset();
  }
  return take(*row, std::move(attached));
}

// argparse refuses ambiguous and unknown options, even if the script would understand them.
Status Splitter::take_word() {
  const std::string& word = words_[at_];
  const std::vector<Match> matches = classify(word);
  if (matches.size() > 1) {
    std::vector<std::string> names;
    names.reserve(matches.size());
    for (const Match& match : matches)
      names.push_back(fmt::format("--{}", match.row->name));
    return refuse(fmt::format("{} could mean {}", printable(word), join(names, ", ")));
  }
  if (matches.front().row == nullptr)
    return refuse(fmt::format("there is no option {}", printable(word)));
  ++at_;
  if (word[1] == '-') return take(*matches.front().row, matches.front().attached);
  return take_letters(matches.front().row, matches.front().attached);
}

Result<SplitArguments> Splitter::run() {
  while (at_ < words_.size() && !ended_) {
    const bool dashes = words_[at_] == "--";
    if (!dashes && !classify(words_[at_]).empty()) {
      LOCKSTEP_TRY(take_word());
      continue;
    }
    if (dashes) ++at_;
    const auto rest = words_.subspan(at_);
    split_.rest.assign(rest.begin(), rest.end());
    // argparse swallows one "--" directly behind the script, unless another one came before the
    // script.
    if (!dashes && split_.rest.size() > 1 && split_.rest[1] == "--")
      split_.rest.erase(split_.rest.begin() + 1);
    break;
  }
  return std::move(split_);
}

}  // namespace

bool SplitArguments::has(std::string_view name) const {
  return std::any_of(options.begin(), options.end(),
                     [&](const GivenArgument& given) { return given.name == name; });
}

std::string SplitArguments::text(std::string_view name) const {
  // The last value wins, as in argparse.
  for (auto given = options.rbegin(); given != options.rend(); ++given)
    if (given->name == name) return given->value;
  return {};
}

Result<SplitArguments> split_arguments(std::string_view launcher, std::span<const ArgumentRow> rows,
                                       std::span<const std::string> words) {
  return Splitter(launcher, rows, words).run();
}

}  // namespace lockstep::launchers
