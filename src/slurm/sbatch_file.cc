#include "slurm/sbatch_file.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace lockstep::slurm {
namespace {

constexpr std::size_t kMostWords = 16384;
constexpr std::string_view kMagic = "#SBATCH";
// An older spelling that sbatch still reads.
constexpr std::string_view kOldMagic = "#SLURM";

bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

bool is_blank_or_comment(std::string_view line) {
  const std::string_view text = strip(line);
  return text.empty() || text.front() == '#';
}

// Returns whether a text begins with the word "hetjob" in any case, or the older "packjob".
bool begins_component(std::string_view text) {
  for (const std::string_view word : {"hetjob", "packjob"})
    if (to_lower(text.substr(0, word.size())) == word &&
        (text.size() == word.size() || is_space(text[word.size()])))
      return true;
  return false;
}

std::string_view without_leading_space(std::string_view text) {
  while (!text.empty() && is_space(text.front()))
    text.remove_prefix(1);
  return text;
}

// Reads words as get_argument() of sbatch does. An empty word ends the line as well: `--comment ""`
// hides all options behind it.
class WordReader {
 public:
  explicit WordReader(std::string_view line) : rest_(line) {}

  Result<std::string> next() {
    rest_ = without_leading_space(rest_);
    std::string word;
    if (rest_.empty() || begins_component(rest_)) return word;
    if (rest_.front() == ':')
      return fail(Errc::invalid_input, "a word begins with ':'",
                  "write the components of a heterogeneous job as '#SBATCH hetjob'");
    char quote = 0;
    std::size_t i = 0;
    for (; i < rest_.size() && (quote != 0 || !is_space(rest_[i])); ++i) {
      const char c = rest_[i];
      if (c == '\\') {
        // Outside quotes, a backslash in front of a space is dropped and the space still ends the
        // word.
        if (i + 1 < rest_.size() && (quote != 0 || !is_space(rest_[i + 1]))) word += rest_[++i];
      } else if (quote != 0 && c == quote) {
        quote = 0;
      } else if (quote == 0 && (c == '"' || c == '\'')) {
        quote = c;
      } else if (quote == 0 && c == '#') {
        break;
      } else {
        word += c;
      }
    }
    if (quote != 0)
      return fail(Errc::invalid_input, fmt::format("the quote {} is not closed", quote),
                  "close the quote on the same line");
    rest_.remove_prefix(std::min(i, rest_.size()));
    return word;
  }

 private:
  std::string_view rest_;
};

// Returns whether a comment looks like a directive, and what is wrong with it.
bool looks_like_directive(std::string_view line, IgnoredDirective::Why& why) {
  std::string_view text = without_leading_space(line);
  if (text.empty() || text.front() != '#') return false;
  const bool moved = text.size() != line.size();
  std::size_t hashes = 0;
  while (hashes < text.size() && text[hashes] == '#')
    ++hashes;
  std::string_view behind = text.substr(hashes);
  const bool spaced = !behind.empty() && is_space(behind.front());
  behind = without_leading_space(behind);
  if (to_upper(behind.substr(0, 6)) != "SBATCH") return false;
  // An option begins with a dash; prose ("# sbatch then ...") does not.
  const std::string_view words = without_leading_space(behind.substr(6));
  if (!words.starts_with("-")) return false;
  why = hashes > 1                     ? IgnoredDirective::Why::two_hashes
        : moved || spaced              ? IgnoredDirective::Why::space
        : behind.starts_with("SBATCH") ? IgnoredDirective::Why::after_command
                                       : IgnoredDirective::Why::spelling;
  return true;
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  SbatchFile read() {
    if (refused_whole()) return std::move(file_);
    if (text_.starts_with("#!")) file_.shebang = strip(text_.substr(2, text_.find('\n') - 2));
    for (std::size_t at = 0; at < text_.size();) {
      const std::size_t end = std::min(text_.find('\n', at), text_.size());
      ++number_;
      take(text_.substr(at, end - at));
      at = end + 1;
    }
    flush();
    read_options();
    return std::move(file_);
  }

 private:
  void refuse(int line, std::string what, std::string fix) {
    file_.problems.push_back({line, std::move(what), std::move(fix)});
  }

  // Checks the text as a whole. After one of the first three problems sbatch reads nothing else.
  bool refused_whole() {
    if (text_.size() > kMostScriptBytes) {
      refuse(1, fmt::format("the script has {} bytes; Slurm takes 4 MiB", text_.size()),
             "keep data in files of their own");
    } else if (strip(text_).empty()) {
      refuse(1, "the script is empty", "write '#!/bin/bash' and the commands");
    } else if (text_.find('\0') != std::string_view::npos) {
      refuse(1, "the script has a null byte",
             "save the script as plain text, not as a binary or UTF-16");
    }
    if (!file_.problems.empty()) return true;
    if (!text_.starts_with("#!"))
      refuse(1, "the first line is not '#!' with an interpreter", "write #!/bin/bash there");
    const std::size_t crlf = text_.find("\r\n");
    if (crlf != std::string_view::npos)
      refuse(1 + static_cast<int>(
                     std::count(text_.begin(), text_.begin() + static_cast<long>(crlf), '\n')),
             "lines end with CR LF, as on Windows", "run dos2unix on the file");
    return false;
  }

  void take(std::string_view line) {
    if (continued_) return continue_body(line);
    const bool directive = line.starts_with(kMagic) || line.starts_with(kOldMagic);
    if (first_command_ == 0 && directive) return take_directive(line);
    IgnoredDirective::Why why{};
    if (looks_like_directive(line, why)) {
      // Below the first command a second hash is a comment by intention.
      if (first_command_ != 0 && why == IgnoredDirective::Why::two_hashes) return;
      file_.ignored.push_back({number_, why, std::string(line), first_command_});
      return;
    }
    if (is_blank_or_comment(line)) return;
    if (first_command_ == 0) first_command_ = number_;
    body_ = {number_, number_, ""};
    continue_body(line);
  }

  void continue_body(std::string_view line) {
    // An even number of backslashes are escaped backslashes.
    std::size_t slashes = 0;
    while (slashes < line.size() && line[line.size() - 1 - slashes] == '\\')
      ++slashes;
    continued_ = slashes % 2 == 1;
    if (continued_) line.remove_suffix(1);
    body_.last = number_;
    body_.text += line;
    if (!continued_) flush();
  }

  void flush() {
    if (body_.line != 0) file_.body.push_back(std::move(body_));
    body_ = {};
    continued_ = false;
  }

  void take_directive(std::string_view line) {
    const bool old = !line.starts_with(kMagic);
    std::string_view rest = line.substr(old ? kOldMagic.size() : kMagic.size());
    rest = without_leading_space(rest);
    if (begins_component(rest)) end_component();
    auto words = directive_words(rest);
    if (!words) {
      refuse(number_, std::move(words.error().message), std::move(words.error().hint));
      return;
    }
    for (std::string& each : *words)
      if (words_.size() < kMostWords) words_.push_back({std::move(each), number_});
  }

  void end_component() {
    read_options();
    ++component_;
  }

  // sbatch reads all directives of a component as one command line, so an option's value may be in
  // the next directive.
  void read_options() {
    PlacedSettings read = read_placed_settings(words_, UnknownOptions::keep);
    for (Setting& each : read.settings) {
      each.component = component_;
      file_.settings.push_back(std::move(each));
    }
    for (SettingProblem& each : read.problems)
      refuse(each.line, std::move(each.error.message), std::move(each.error.hint));
    if (read.words < words_.size()) {
      const PlacedWord& word = words_[read.words];
      refuse(word.line, fmt::format("'{}' is not an option", printable(word.text, 80)),
             "an option begins with - or --; put a value with spaces into quotes");
    }
    words_.clear();
  }

  std::string_view text_;
  int number_ = 0;
  int first_command_ = 0;
  int component_ = 0;
  bool continued_ = false;
  BodyLine body_;
  std::vector<PlacedWord> words_;
  SbatchFile file_;
};

}  // namespace

Result<std::vector<std::string>> directive_words(std::string_view line) {
  std::vector<std::string> words;
  WordReader reader(line);
  while (words.size() < kMostWords) {
    LOCKSTEP_TRY_ASSIGN(std::string word, reader.next());
    if (word.empty()) break;
    words.push_back(std::move(word));
  }
  return words;
}

// Unlike a shell, sbatch takes a backslash inside quotes as an escape. So escape backslashes and
// quotes.
std::string directive_quote(std::string_view word) {
  std::string quoted = shell_quote(word);
  if (quoted == word) return quoted;
  quoted = "'";
  for (const char c : word) {
    if (c == '\\' || c == '\'') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

SbatchFile read_sbatch_file(std::string_view text) {
  return Scanner(text).read();
}

std::string wrap_script(std::string_view command) {
  return fmt::format("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{}\n", command);
}

}  // namespace lockstep::slurm
