// Text helpers, many with Python's exact rules.
#include "base/text.h"

#include "base/utf8.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace lockstep {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  while (true) {
    const std::size_t end = text.find(separator, start);
    if (end == std::string_view::npos) break;
    parts.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  parts.emplace_back(text.substr(start));
  return parts;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::string_view strip(std::string_view text) {
  // White space as in C's isspace().
  constexpr std::string_view kSpace = " \t\n\r\v\f";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string to_upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

namespace {
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Removes Python's digit-separating underscores. Returns false if one stands anywhere else.
bool drop_underscores(std::string_view text, std::string& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    if (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) || !is_digit(text[i + 1]))
      return false;
  }
  return true;
}
}  // namespace

std::optional<std::int64_t> parse_int(std::string_view text) {
  text = strip(text);
  bool negative = false;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  std::string digits;
  if (text.empty() || !drop_underscores(text, digits)) return std::nullopt;
  if (!std::all_of(digits.begin(), digits.end(), is_digit)) return std::nullopt;
  // The sign goes back for from_chars(): the least int64 has no positive counterpart.
  if (negative) digits.insert(0, "-");
  std::int64_t value = 0;
  const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (ec != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_float(std::string_view text) {
  text = strip(text);
  // from_chars() accepts no plus sign.
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  std::string digits;
  if (text.empty() || !drop_underscores(text, digits)) return std::nullopt;
  double value = 0;
  const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (ec != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value))
    // Python's float() would accept "inf" and "nan". No option wants these.
    return std::nullopt;
  return value;
}

std::string shell_quote(std::string_view text) {
  constexpr std::string_view kHarmless =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./-_";
  if (!text.empty() && text.find_first_not_of(kHarmless) == std::string_view::npos)
    return std::string(text);
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      // A single quote cannot be escaped inside single quotes: end them, add \', start again.
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string shell_join(std::span<const std::string> argv) {
  std::vector<std::string> quoted;
  quoted.reserve(argv.size());
  for (const std::string& arg : argv)
    quoted.push_back(shell_quote(arg));
  return join(quoted, " ");
}

std::string printable(std::string_view bytes, std::size_t limit) {
  std::string out;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t shown = shown_length(bytes.substr(at));
    const std::size_t size = std::max<std::size_t>(shown, 1);
    // Cut between characters, never inside one.
    if (size > limit - at) return out + "...";
    if (shown == 0) {
      append_escaped(bytes[at], out);
    } else {
      out += bytes.substr(at, size);
    }
    at += size;
  }
  return out;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    rows[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j)
    rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + change});
      // The swap of two neighbouring letters is the most common typing error.
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.size()][b.size()];
}

std::optional<std::string> did_you_mean(std::string_view given,
                                        std::span<const std::string> candidates) {
  if (given.size() > 64) return std::nullopt;  // the work is quadratic, and no name is this long
  // At most a third of the letters may be wrong, but one always may.
  std::size_t best = std::max<std::size_t>(1, given.size() / 3) + 1;
  std::optional<std::string> meant;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(given, candidate);
    // On a tie the earlier candidate wins.
    if (distance >= best) continue;
    best = distance;
    meant = candidate;
  }
  return meant;
}

}  // namespace lockstep
