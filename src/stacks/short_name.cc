// Reads the part of the Itanium C++ ABI's names that says which function it is.
#include "base/text.h"
#include "stacks/native_symbols.h"

#include <optional>

namespace lockstep::stacks {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class NameReader {
 public:
  explicit NameReader(std::string_view left) : left_(left) {}

  // Returns nothing for a name of another form.
  std::optional<std::string> read() {
    // A function inside of a function, as a lambda: the outer one tells enough.
    const bool local = take('Z');
    std::string name;
    bool good = true;
    if (take('N')) {
      while (good && take_any("rVKRO")) {
      }
      while (good && !take('E'))
        good = part(name);
    } else {
      if (take_text("St")) name = "std";
      good = part(name);
    }
    if (!good || name.empty()) return {};
    if (local) name += "::{local}";
    return name;
  }

 private:
  char next() const { return left_.empty() ? '\0' : left_.front(); }
  bool take(char c) {
    if (next() != c || left_.empty()) return false;
    left_.remove_prefix(1);
    return true;
  }
  bool take_any(std::string_view set) {
    if (left_.empty() || set.find(next()) == std::string_view::npos) return false;
    left_.remove_prefix(1);
    return true;
  }
  bool take_text(std::string_view text) {
    if (!left_.starts_with(text)) return false;
    left_.remove_prefix(text.size());
    return true;
  }
  // Skips the rest of "S1_" or "T_".
  bool skip_index() {
    while (take_any("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
    }
    return take('_');
  }
  void skip_digits() {
    while (take_any("0123456789")) {
    }
  }

  std::optional<std::string_view> source_name() {
    std::size_t size = 0;
    while (is_digit(next()) && size < kMostSymbolName) {
      size = size * 10 + static_cast<std::size_t>(next() - '0');
      left_.remove_prefix(1);
    }
    if (size == 0 || size > left_.size()) return {};
    const std::string_view name = left_.substr(0, size);
    left_.remove_prefix(size);
    return name;
  }

  bool add(std::string& to, std::string_view name) {
    if (!to.empty()) to += "::";
    to += name.starts_with("_GLOBAL__N") ? "{anonymous}" : name;
    last_ = name;
    return true;
  }

  // Reads one part of a nested name. false: an unknown part.
  bool part(std::string& to) {
    while (take('L')) {
    }
    if (is_digit(next())) {
      const auto name = source_name();
      return name && add(to, *name);
    }
    if (take('I')) {
      to += "<>";
      return skip_arguments();
    }
    if (take('B')) return source_name().has_value();  // "[abi:cxx11]"
    if (take_text("St")) return add(to, "std");
    if (take('C')) return !last_.empty() && take_any("12345") && add(to, last_);
    if (take('D')) {
      const std::string name = "~" + std::string(last_);
      return !last_.empty() && take_any("012345") && add(to, name);
    }
    if (take_text("Ul")) return add(to, "{lambda}") && skip_lambda();
    // Two letters: operator() and others.
    if (left_.size() > 2 && next() >= 'a' && next() <= 'z' && !left_.starts_with("cv")) {
      left_.remove_prefix(2);
      return add(to, "operator");
    }
    return false;
  }

  bool skip_lambda() {
    if (!skip_arguments()) return false;
    skip_digits();
    return take('_');
  }

  // Skips the value of a template's argument: "b1E", "i64E", "N3foo4KindE1E", "4Kind1E".
  bool skip_literal() {
    if (take('N')) {
      if (!skip_arguments()) return false;
    } else if (is_digit(next())) {
      if (!source_name()) return false;
    } else if (!take_any("abcdefghijklmnopqrstuvwxyz")) {
      return false;
    }
    take('n');
    skip_digits();
    return take('E');
  }

  // Skips types and values up to the 'E' that ends them.
  bool skip_arguments() {
    // No recursion: a foreign name may nest hundreds of lists.
    std::string open = "I";  // the lists that an 'E' has not closed yet
    while (!open.empty()) {
      const char c = next();
      if (left_.empty()) return false;
      if (is_digit(c)) {
        if (!source_name()) return false;
        continue;
      }
      left_.remove_prefix(1);
      if (c == 'E') {
        const bool lambda = open.back() == 'l';
        open.pop_back();
        if (lambda) {
          skip_digits();
          if (!take('_')) return false;
        }
      } else if (c == 'I' || c == 'N' || c == 'J' || c == 'F') {
        open += c;
      } else if (c == 'U' && take('l')) {
        open += 'l';
      } else if (c == 'L') {
        if (!skip_literal()) return false;
      } else if (c == 'S') {
        if (!take_any("tabsiod") && !skip_index()) return false;
      } else if (c == 'T') {
        if (!skip_index()) return false;
      } else if (c == 'A') {
        skip_digits();
        if (!take('_')) return false;
      } else if (c == 'D') {
        if (!take_any("pnisuhfdeac")) return false;
      } else if (c == 'C') {
        if (!take_any("12345")) return false;
      } else if ((c < 'a' || c > 'z') && std::string_view("PROKVGM").find(c) == std::string::npos) {
        return false;
      }
    }
    return true;
  }

  std::string_view left_;
  std::string last_;
};

}  // namespace

std::string short_name(std::string_view symbol) {
  symbol = symbol.substr(0, kMostSymbolName);
  if (symbol.starts_with("_Z"))
    if (const auto name = NameReader(symbol.substr(2)).read()) return printable(*name);
  return printable(symbol);
}

}  // namespace lockstep::stacks
