// Reads steps out of lines.
#include "logs/step_line.h"

#include "base/text.h"

#include <regex.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::logs {
namespace {

constexpr double kMostSteps = 1e15;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Walks a line from left to right.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  void skip_space() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\t'))
      text_.remove_prefix(1);
  }
  bool take(char c) {
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  // An integer, with commas or underscores between digits: "1,234".
  std::optional<std::int64_t> integer() {
    std::size_t size = 0;
    std::string digits;
    while (size < text_.size() && digits.size() < 16) {
      const char c = text_[size];
      const bool joins = (c == ',' || c == '_') && size > 0 && size + 3 < text_.size() &&
                         is_digit(text_[size + 1]) && is_digit(text_[size + 2]) &&
                         is_digit(text_[size + 3]);
      if (!is_digit(c) && !joins) break;
      if (is_digit(c)) digits += c;
      ++size;
    }
    text_.remove_prefix(size);
    return digits.empty() || digits.size() > 15 ? std::nullopt : parse_int(digits);
  }
  std::optional<double> number() {
    const auto whole = integer();
    if (!whole) return std::nullopt;
    if (text_.size() < 2 || text_[0] != '.' || !is_digit(text_[1]))
      return static_cast<double>(*whole);
    text_.remove_prefix(1);
    double part = 0;
    for (double unit = 0.1; !text_.empty() && is_digit(text_.front()); unit /= 10) {
      part += unit * (text_.front() - '0');
      text_.remove_prefix(1);
    }
    return static_cast<double>(*whole) + part;
  }
  bool at_end() const { return text_.empty(); }
  char front() const { return text_.empty() ? '\0' : text_.front(); }

 private:
  std::string_view text_;
};

// Returns the line that a terminal shows: behind the last carriage return, without colours.
std::string shown_line(std::string_view line) {
  while (line.ends_with('\n') || line.ends_with('\r'))
    line.remove_suffix(1);
  if (const std::size_t at = line.rfind('\r'); at != std::string_view::npos)
    line.remove_prefix(at + 1);
  std::string shown;
  for (std::size_t at = 0; at < line.size() && shown.size() < StepPattern::kMostLine; ++at) {
    if (line[at] != '\x1b') {
      shown += line[at];
      continue;
    }
    // ESC [ numbers letter
    if (at + 1 < line.size() && line[at + 1] == '[') ++at;
    while (at + 1 < line.size() && !is_letter(line[at + 1]))
      ++at;
    ++at;
  }
  return shown;
}

// tqdm and Lightning: "Epoch 0:  12%|#2   | 123/1000 [00:10<01:20, 11.0it/s]".
std::optional<StepLine> bar_step(std::string_view line) {
  const std::size_t bar = line.find("%|");
  const std::size_t close = bar == std::string_view::npos ? bar : line.find('|', bar + 2);
  if (close == std::string_view::npos || bar == 0 || !is_digit(line[bar - 1])) return std::nullopt;
  Reader reader(line.substr(close + 1));
  reader.skip_space();
  const auto step = reader.number();
  if (!step || !reader.take('/')) return std::nullopt;
  const auto total = reader.number();
  reader.skip_space();
  // Bytes of a download have units: "1.2G/3.4G".
  if (!total || reader.front() != '[') return std::nullopt;
  return StepLine{.step = *step, .total = static_cast<std::int64_t>(*total)};
}

// Trainer: "{'loss': 1.2, 'learning_rate': 5e-05, 'epoch': 0.5}".
std::optional<StepLine> trainer_step(std::string_view line) {
  line = strip(line);
  if (!line.starts_with('{') || !line.ends_with('}')) return std::nullopt;
  for (const std::string_view name : {"'step': ", "\"step\": ", "'epoch': ", "\"epoch\": "}) {
    const std::size_t at = line.find(name);
    if (at == std::string_view::npos) continue;
    Reader reader(line.substr(at + name.size()));
    reader.take('\'');  // newer versions print texts
    if (const auto number = reader.number())
      return StepLine{.step = *number, .is_epoch = name[1] == 'e'};
  }
  return std::nullopt;
}

// A word with a number behind it: "iteration 100/ 500 |", "step: 100  loss: 2.1", "[Epoch 0 Batch
// 12]", "Step 100: loss".
std::optional<StepLine> word_step(std::string_view line) {
  static constexpr std::array<std::string_view, 8> kWords = {
      "global_step", "global step", "iteration", "step", "iter", "batch", "steps", "it"};
  const std::string lower = to_lower(line);
  for (const std::string_view word : kWords) {
    for (std::size_t at = lower.find(word); at != std::string::npos;
         at = lower.find(word, at + 1)) {
      if (at > 0 && (is_letter(lower[at - 1]) || is_digit(lower[at - 1]))) continue;
      Reader reader(std::string_view(lower).substr(at + word.size()));
      if (is_letter(reader.front()) || is_digit(reader.front())) continue;
      reader.skip_space();
      const bool marked = reader.take(':') || reader.take('=') || reader.take('#') ||
                          reader.take('[') || reader.take('|');
      reader.skip_space();
      const auto step = reader.integer();
      if (!step) continue;
      // "step 0.5 s": a time.
      if (reader.front() == '.' || is_letter(reader.front())) continue;
      StepLine found{.step = static_cast<double>(*step)};
      reader.skip_space();
      if (reader.take('/')) {
        reader.skip_space();
        found.total = reader.integer();
      }
      // "it 5 works": a short word needs a mark, or a total.
      if (word == "it" && !marked && !found.total) continue;
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace

struct StepPattern::Compiled {
  regex_t regex{};
  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    if (made) regfree(&regex);
  }
  bool made = false;
};

Result<StepPattern> StepPattern::make(const std::string& pattern) {
  const auto refuse = [&pattern](const std::string& why) {
    return fail(Errc::invalid_input, "--progress '" + printable(pattern) + "' " + why,
                "write an extended regular expression with the step in parentheses, as "
                "'step ([0-9]+)'");
  };
  if (pattern.empty() || pattern.size() > kMostPattern)
    return refuse("must have 1 to " + std::to_string(kMostPattern) + " bytes");
  // The library compiles what stands before a + twice: 20 of them in each other need 8 GB.
  if (std::count(pattern.begin(), pattern.end(), '+') > kMostPluses)
    return refuse("must have at most " + std::to_string(kMostPluses) + " +, use * instead");
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '\0' || pattern[at] == '\n') return refuse("must be one line");
    if (pattern[at] == '{') return refuse("must have no {, since repeats cost too much time");
    if (pattern[at] != '\\') continue;
    if (++at < pattern.size() && is_digit(pattern[at]))
      return refuse("must have no back references, which cost too much time");
  }
  auto compiled = std::make_shared<Compiled>();
  const int failed = regcomp(&compiled->regex, pattern.c_str(), REG_EXTENDED);
  if (failed != 0) {
    char why[200];
    regerror(failed, &compiled->regex, why, sizeof why);
    return refuse(std::string("is not a regular expression: ") + why);
  }
  compiled->made = true;
  if (compiled->regex.re_nsub == 0) return refuse("has no group");
  return StepPattern(std::move(compiled));
}

std::optional<StepLine> StepPattern::match(std::string_view line) const {
  std::string text(line.substr(0, kMostLine));
  std::replace(text.begin(), text.end(), '\0', ' ');
  std::array<regmatch_t, 2> found{};
  if (regexec(&compiled_->regex, text.c_str(), found.size(), found.data(), 0) != 0 ||
      found[1].rm_so < 0)
    return std::nullopt;
  const auto begin = static_cast<std::size_t>(found[1].rm_so);
  std::string group = text.substr(begin, static_cast<std::size_t>(found[1].rm_eo) - begin);
  replace_all(group, ",", "");
  const auto step = parse_float(group);
  if (!step || !(*step >= 0 && *step <= kMostSteps)) return std::nullopt;
  return StepLine{.step = *step, .guessed = false};
}

std::optional<StepLine> guessed_step(std::string_view line) {
  const std::string shown = shown_line(line.substr(line.size() > 4096 ? line.size() - 4096 : 0));
  if (auto step = bar_step(shown)) return step;
  if (auto step = trainer_step(shown)) return step;
  return word_step(shown);
}

std::optional<StepLine> step_of(std::string_view line, const std::optional<StepPattern>& pattern) {
  return pattern ? pattern->match(line) : guessed_step(line);
}

}  // namespace lockstep::logs
