#include "slurm/shell_variables.h"

#include "base/text.h"
#include "slurm/shell_words.h"

#include <cctype>
#include <cstdint>

namespace lockstep::slurm {
namespace {

constexpr std::size_t kMostBytes = 64U << 10;

std::string_view name_at(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && is_name_char(text[n]))
    ++n;
  return text.substr(0, n);
}

// Evaluates whole numbers with + - * / %, names and parentheses, which is all that scripts compute
// with.
class Arithmetic {
 public:
  Arithmetic(std::string_view text, const Lookup& lookup) : text_(text), lookup_(lookup) {}

  // Returns the value; nullopt: something unknown remains.
  std::optional<std::int64_t> value() {
    const std::int64_t result = sum();
    skip();
    return failed_ || at_ < text_.size() ? std::nullopt : std::optional(result);
  }

 private:
  // Above any real value, and small enough that no product overflows.
  static constexpr std::int64_t kMost = 1'000'000'000;

  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == kExpandedHere))
      ++at_;
  }
  bool accept(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::int64_t bounded(std::int64_t value) {
    if (value > kMost || value < -kMost) failed_ = true;
    return failed_ ? 0 : value;
  }

  std::int64_t sum() {
    std::int64_t value = product();
    while (!failed_) {
      if (accept('+')) {
        value = bounded(value + product());
      } else if (accept('-')) {
        value = bounded(value - product());
      } else {
        break;
      }
    }
    return value;
  }

  std::int64_t product() {
    std::int64_t value = factor();
    while (!failed_) {
      if (accept('*')) {
        value = bounded(value * factor());
      } else if (accept('/')) {
        value = divided(value, factor(), false);
      } else if (accept('%')) {
        value = divided(value, factor(), true);
      } else {
        break;
      }
    }
    return value;
  }

  std::int64_t divided(std::int64_t value, std::int64_t by, bool rest) {
    if (by == 0) failed_ = true;
    if (failed_) return 0;
    return rest ? value % by : value / by;
  }

  std::int64_t factor() {
    if (accept('(')) {
      // Each level is a recursive call, so bound the depth.
      if (++depth_ > 20) failed_ = true;
      const std::int64_t value = failed_ ? 0 : sum();
      if (!accept(')')) failed_ = true;
      --depth_;
      return value;
    }
    const bool braces = accept('$') && accept('{');
    const std::string_view name = name_at(text_.substr(at_));
    at_ += name.size();
    if (braces && !accept('}')) failed_ = true;
    if (name.empty()) failed_ = true;
    if (failed_) return 0;
    auto value = parse_int(name);
    if (!value)
      if (const auto text = lookup_(name)) value = parse_int(*text);
    if (!value) failed_ = true;
    return bounded(value.value_or(0));
  }

  std::string_view text_;
  const Lookup& lookup_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool failed_ = false;
};

struct Piece {
  std::size_t length = 0;
  std::optional<std::string> value;
};

// Reads "${A:-default}" and "${A[@]}". An unknown variable keeps its text: the default may not
// apply on the node.
Piece braces(std::string_view text, const Lookup& lookup) {
  const std::size_t end = text.find('}');
  if (end == std::string_view::npos) return {text.size(), std::nullopt};
  const std::string_view inside = text.substr(2, end - 2);
  const std::string_view name = name_at(inside);
  std::string_view rest = inside.substr(name.size());
  if (rest.starts_with("[@]") || rest.starts_with("[*]")) rest.remove_prefix(3);
  const bool plain = rest.empty() || rest.starts_with(":-") || rest.starts_with("-");
  Piece piece{end + 1, std::nullopt};
  if (!name.empty() && plain) piece.value = lookup(name);
  // ":-" replaces an empty value, too.
  if (rest.starts_with(":-") && piece.value && piece.value->empty()) {
    const std::string_view other = rest.substr(2);
    piece.value = other.find('$') == std::string_view::npos ? std::optional(std::string(other))
                                                            : std::nullopt;
  }
  return piece;
}

// Reads the expansion at the beginning of a text: its length, and its value if known.
Piece piece_at(std::string_view text, const Lookup& lookup) {
  if (text.starts_with("$((")) {
    const std::size_t end = text.find("))");
    if (end == std::string_view::npos) return {text.size(), std::nullopt};
    const auto value = Arithmetic(text.substr(3, end - 3), lookup).value();
    return {end + 2, value ? std::optional(std::to_string(*value)) : std::nullopt};
  }
  if (text.starts_with("${")) return braces(text, lookup);
  if (!text.starts_with("$")) return {};
  const std::string_view name = name_at(text.substr(1));
  if (name.empty()) return {};
  return {1 + name.size(), lookup(name)};
}

}  // namespace

std::string put_values(std::string_view text, const Lookup& lookup) {
  std::string out;
  // Values are not expanded again, so a variable that contains itself cannot loop.
  for (std::size_t i = 0; i < text.size() && out.size() < kMostBytes; ++i) {
    Piece piece;
    if (text[i] == kExpandedHere) piece = piece_at(text.substr(i + 1), lookup);
    if (!piece.value) {
      out += text[i];
      continue;
    }
    out += *piece.value;
    i += piece.length;
  }
  out.resize(std::min(out.size(), kMostBytes));
  return out;
}

}  // namespace lockstep::slurm
