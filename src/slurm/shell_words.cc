#include "slurm/shell_words.h"

#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <iterator>
#include <utility>

namespace lockstep::slurm {
namespace {

constexpr std::size_t kMostCommands = 100000;

// Returns the length of "NAME=", "NAME+=" or "NAME[0]=" at the beginning of a word; 0: none.
std::size_t assignment_length(std::string_view word) {
  std::size_t i = 0;
  while (i < word.size() && is_name_char(word[i]))
    ++i;
  if (i == 0 || std::isdigit(static_cast<unsigned char>(word[0])) != 0) return 0;
  if (i < word.size() && word[i] == '[') i = std::min(word.find(']', i), word.size() - 1) + 1;
  if (i < word.size() && word[i] == '+') ++i;
  return i < word.size() && word[i] == '=' ? i + 1 : 0;
}

bool is_keyword(std::string_view word) {
  static constexpr std::string_view kWords[] = {"if",   "then", "else",  "elif", "fi", "do",
                                                "done", "!",    "while", "{",    "}",  "until",
                                                "esac", "time", "[[",    "]]"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

// Reads the text once, character by character. Each method handles one kind of character and moves
// at_.
class Reader {
 public:
  Reader(std::string_view text, Expansions expansions) : text_(text), expansions_(expansions) {}

  std::vector<ShellCommand> read() {
    while (at_ < text_.size() && commands_.size() < kMostCommands)
      step();
    end_command("");
    return std::move(commands_);
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool ahead(std::string_view what) const { return text_.substr(at_, what.size()) == what; }

  // Takes a character literally.
  void take() {
    if (peek() == '\n') ++line_;
    word_ += text_[at_++];
    in_word_ = true;
  }

  void step() {
    const char c = peek();
    if (!in_word_) word_line_ = line_;
    if (c == '\\') {
      escape(false);
    } else if (c == '\'') {
      single_quotes();
    } else if (c == '"') {
      double_quotes();
    } else if (c == '$' || c == '`') {
      expansion();
    } else if (c == '#' && !in_word_) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == ' ' || c == '\t' || c == '\r') {
      end_word();
      ++at_;
    } else if (c == '\n') {
      if (target_ == Target::output && !in_word_) command_.outputs.emplace_back();
      end_command("");
      ++at_;
      ++line_;
      skip_here_documents();
    } else if (c == '(' && array_begins()) {
      array();
    } else if (c == '<' || c == '>' || (c == '&' && peek(1) == '>')) {
      redirection();
    } else if (c == ';' || c == '&' || c == '|' || c == '(' || c == ')') {
      control();
    } else {
      take();
    }
  }

  void escape(bool in_quotes) {
    const char next = peek(1);
    if (next == '\n') {
      at_ += 2;
      ++line_;
      return;
    }
    // Inside double quotes a backslash is literal unless it escapes one of these.
    if (in_quotes && next != '$' && next != '`' && next != '"' && next != '\\') return take();
    ++at_;
    if (at_ < text_.size()) take();
  }

  void single_quotes() {
    in_word_ = true;
    for (++at_; at_ < text_.size() && peek() != '\'';)
      take();
    ++at_;
  }

  void double_quotes() {
    in_word_ = true;
    for (++at_; at_ < text_.size() && peek() != '"';) {
      if (peek() == '\\') {
        escape(true);
      } else if (peek() == '$' || peek() == '`') {
        expansion();
      } else {
        take();
      }
    }
    ++at_;
  }

  // Returns the position of the bracket or backquote that closes the one at `from`, looking through
  // quotes.
  std::size_t closing(std::size_t from, char open, char close) const {
    int depth = 0;
    for (std::size_t i = from; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c == '\\') {
        ++i;
      } else if (c == '\'' && open == '(') {
        i = std::min(text_.find('\'', i + 1), text_.size());
      } else if (c == close && (open != close || i != from)) {
        if (open == close || --depth == 0) return i;
      } else if (c == open) {
        ++depth;
      }
    }
    return text_.size() - 1;
  }

  void expansion() {
    const char c = peek();
    const char next = peek(1);
    const bool expands = c == '`' || next == '{' || next == '(' || is_name_char(next);
    if (!expands) {
      // $'...' is a quoted word. A '$' at the end of a word is literal.
      if (c == '$' && next == '\'') ++at_;
      return c == '$' && next == '\'' ? single_quotes() : take();
    }
    if (expansions_ == Expansions::mark) word_ += kExpandedHere;
    std::size_t last = at_ + 1;
    if (c == '`') {
      last = closing(at_, '`', '`');
    } else if (next == '(' || next == '{') {
      last = closing(at_ + 1, next, next == '(' ? ')' : '}');
    } else {
      while (last + 1 < text_.size() && is_name_char(text_[last + 1]))
        ++last;
    }
    while (at_ <= last && at_ < text_.size())
      take();
  }

  // Only "NAME=(" begins an array; "f(" is a function and "(" a subshell.
  bool array_begins() const {
    return !in_array_ && in_word_ && command_.words.empty() &&
           assignment_length(word_) == word_.size() && !word_.empty();
  }

  // Joins an array's words with spaces: A=(one two) -> "one two".
  void array() {
    const std::size_t last = closing(at_, '(', ')');
    Reader reader(text_.substr(at_ + 1, last - at_ - 1), expansions_);
    reader.in_array_ = true;
    const auto inner = reader.read();
    bool first = true;
    for (const ShellCommand& each : inner)
      for (const auto* list : {&each.assignments, &each.words})
        for (const std::string& word : *list) {
          if (!first) word_ += ' ';
          word_ += word;
          first = false;
        }
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(last), '\n'));
    at_ = last + 1;
  }

  // Reads the sign of a redirection; the next word is the file.
  void redirection() {
    // The digits in "2>" are a descriptor, not a word.
    if (!word_.empty() && std::all_of(word_.begin(), word_.end(), [](char c) {
          return std::isdigit(static_cast<unsigned char>(c)) != 0;
        }))
      drop_word();
    end_word();
    if (ahead("<<<")) {
      at_ += 3;
      target_ = Target::input;
    } else if (ahead("<<")) {
      at_ += 2;
      here_strip_ = peek() == '-';
      if (here_strip_) ++at_;
      target_ = Target::here;
    } else {
      const bool input = peek() == '<';
      while (peek() == '<' || peek() == '>' || peek() == '&' || peek() == '|')
        ++at_;
      if (peek() == '(')
        return;  // process substitution: the command inside is read as another command
      target_ = input ? Target::input : Target::output;
    }
  }

  // Ends the command at ";", "&", "|", "&&", "||" or a parenthesis.
  void control() {
    const char c = peek();
    std::string end(1, c);
    if ((c == '&' || c == '|' || c == ';') && peek(1) == c) end += c;
    at_ += end.size();
    if (end == "|" && peek() == '&') ++at_;
    end_command(end == "(" ? "" : end);
  }

  void drop_word() {
    word_.clear();
    in_word_ = false;
  }

  // Puts the finished word where it belongs: into the command, the outputs, or the here-documents
  // to come.
  void end_word() {
    if (!in_word_) return;
    if (command_.line == 0) command_.line = word_line_;
    if (target_ == Target::output) command_.outputs.push_back(std::move(word_));
    if (target_ == Target::here) here_words_.push_back({without_marks(word_), here_strip_});
    if (target_ == Target::none) add_word(std::move(word_));
    target_ = Target::none;
    drop_word();
  }

  void add_word(std::string word) {
    if (command_.words.empty() && is_keyword(word)) return;
    if (command_.words.empty() && assignment_length(word) != 0) {
      command_.assignments.push_back(std::move(word));
    } else {
      command_.words.push_back(std::move(word));
    }
  }

  // Closes the command. An assignment alone is a command, too.
  void end_command(std::string_view end) {
    end_word();
    target_ = Target::none;
    if (!command_.words.empty() || !command_.assignments.empty()) {
      command_.end = end;
      commands_.push_back(std::move(command_));
      // "( ... ) &": the whole subshell runs in the background.
    } else if (end == "&" && !commands_.empty() && commands_.back().end == ")") {
      commands_.back().end = "&";
    }
    command_ = {};
  }

  // The bodies of here-documents begin behind the line with the "<<", in the order of those signs.
  void skip_here_documents() {
    for (const auto& [word, strips] : std::exchange(here_words_, {}))
      while (at_ < text_.size()) {
        const std::size_t end = std::min(text_.find('\n', at_), text_.size());
        std::string_view line = text_.substr(at_, end - at_);
        while (strips && line.starts_with('\t'))
          line.remove_prefix(1);
        at_ = std::min(end + 1, text_.size());
        if (!commands_.empty()) commands_.back().here_last = line_;
        ++line_;
        if (line == word) break;
      }
  }

  struct HereWord {
    std::string word;
    bool strips;
  };
  enum class Target : unsigned char { none, input, output, here };

  std::string_view text_;
  Expansions expansions_;
  std::size_t at_ = 0;
  int line_ = 1;
  int word_line_ = 1;
  std::string word_;
  bool in_word_ = false;
  bool in_array_ = false;  // bash's arrays do not nest
  Target target_ = Target::none;
  bool here_strip_ = false;
  std::vector<HereWord> here_words_;
  ShellCommand command_;
  std::vector<ShellCommand> commands_;
};

}  // namespace

std::vector<ShellCommand> read_shell(std::string_view text, Expansions expansions) {
  return Reader(text, expansions).read();
}

std::string without_marks(std::string_view text) {
  std::string plain(text);
  plain.erase(std::remove(plain.begin(), plain.end(), kExpandedHere), plain.end());
  return plain;
}

std::vector<std::string> expanded_variables(std::string_view text) {
  std::vector<std::string> names;
  bool inside = false;  // inside $(...), where this shell expands everything
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == kExpandedHere) {
      inside = text.substr(i + 1, 2) == "$(" || text.substr(i + 1, 1) == "`";
      continue;
    }
    if (text[i] != '$' || !(inside || (i > 0 && text[i - 1] == kExpandedHere))) continue;
    std::size_t from = i + 1;
    if (from < text.size() && text[from] == '{') ++from;
    if (from < text.size() && (text[from] == '#' || text[from] == '!')) ++from;
    std::size_t to = from;
    while (to < text.size() && is_name_char(text[to]))
      ++to;
    if (to > from) names.emplace_back(text.substr(from, to - from));
  }
  return names;
}

std::vector<std::string> expanded_commands(std::string_view text) {
  std::vector<std::string> commands;
  for (std::size_t at = text.find(kExpandedHere); at != std::string_view::npos;
       at = text.find(kExpandedHere, at + 1)) {
    const std::string_view rest = text.substr(at + 1);
    if (rest.starts_with("$((")) continue;
    if (rest.starts_with("$(")) {
      commands.emplace_back(rest.substr(2, rest.find(')') - 2));
    } else if (rest.starts_with("`")) {
      commands.emplace_back(rest.substr(1, rest.find('`', 1) - 1));
    }
  }
  return commands;
}

}  // namespace lockstep::slurm
