#include "sync/wildmatch.h"

#include <cctype>
#include <cstddef>
#include <string>

namespace lockstep::sync {
namespace {

using Byte = unsigned char;

// The result of a comparison. The kinds of failure tell callers which further tries cannot help.
enum class Found {
  match,
  no_match,
  no_match_to_the_end,   // no later start in the text can match either
  no_match_until_stars,  // only an outer "**" can still match
};

// Patterns with many stars take exponential time; a project's ignore file must not hang a sync.
constexpr std::size_t kMostSteps = 1UL << 20;
// Each star is a call inside the one before. A longer pattern could overflow the stack.
constexpr std::size_t kMostPattern = 4096;

bool is_special(Byte c) {
  return c == '*' || c == '?' || c == '[' || c == '\\';
}

bool is_in_named_class(std::string_view name, Byte c) {
  if (name == "alnum") return std::isalnum(c) != 0;
  if (name == "alpha") return std::isalpha(c) != 0;
  if (name == "blank") return c == ' ' || c == '\t';
  if (name == "cntrl") return std::iscntrl(c) != 0;
  if (name == "digit") return std::isdigit(c) != 0;
  if (name == "graph") return std::isgraph(c) != 0;
  if (name == "lower") return std::islower(c) != 0;
  if (name == "print") return std::isprint(c) != 0;
  if (name == "punct") return std::ispunct(c) != 0;
  if (name == "space") return std::isspace(c) != 0;
  if (name == "upper") return std::isupper(c) != 0;
  if (name == "xdigit") return std::isxdigit(c) != 0;
  return false;
}

bool is_class_name(std::string_view name) {
  for (const std::string_view known : {"alnum", "alpha", "blank", "cntrl", "digit", "graph",
                                       "lower", "print", "punct", "space", "upper", "xdigit"})
    if (name == known) return true;
  return false;
}

class Match {
 public:
  Match(std::string_view pattern, std::string_view text, Slashes slashes)
      : pattern_(pattern), text_(text), apart_(slashes == Slashes::apart) {}

  // Matches the pattern from `p` on with the text from `t` on.
  Found from(std::size_t p, std::size_t t);

 private:
  Byte pattern(std::size_t at) const {
    return at < pattern_.size() ? static_cast<Byte>(pattern_[at]) : Byte{0};
  }
  Byte text(std::size_t at) const {
    return at < text_.size() ? static_cast<Byte>(text_[at]) : Byte{0};
  }
  struct Stars {
    Found found = Found::no_match;
    bool decided = true;  // false: continue at p and t
    std::size_t p = 0;
    std::size_t t = 0;
  };
  Stars stars(std::size_t begin, std::size_t p, std::size_t t);
  Found stretch(std::size_t p, std::size_t t, bool over_slashes);
  // p: at the '['; left at the ']'.
  Found bracket(std::size_t& p, Byte c) const;
  // Matches one member of the class at p. `before`: the last plain byte, with which a range may
  // begin.
  bool member(std::size_t& p, Byte& current, Byte before, Byte c, bool& matched) const;

  std::string_view pattern_;
  std::string_view text_;
  bool apart_;
  std::size_t steps_ = 0;
};

Found Match::from(std::size_t p, std::size_t t) {
  // Follows dowild() in git's wildmatch.c.
  const std::size_t begin = p;
  for (; pattern(p) != 0; ++p, ++t) {
    if (++steps_ > kMostSteps) return Found::no_match_to_the_end;
    const Byte c = text(t);
    if (c == 0 && pattern(p) != '*') return Found::no_match_to_the_end;
    switch (pattern(p)) {
      case '?':
        if (apart_ && c == '/') return Found::no_match;
        break;
      case '*': {
        const Stars after = stars(begin, p, t);
        if (after.decided) return after.found;
        p = after.p;
        t = after.t;
        break;
      }
      case '[':
        if (const Found found = bracket(p, c); found != Found::match) return found;
        break;
      case '\\':
        ++p;
        [[fallthrough]];
      default:
        if (c != pattern(p)) return Found::no_match;
    }
  }
  return text(t) == 0 ? Found::match : Found::no_match;
}

Match::Stars Match::stars(std::size_t begin, std::size_t p, std::size_t t) {
  bool over_slashes = !apart_;
  const std::size_t first = p++;
  if (pattern(p) == '*') {
    while (pattern(p) == '*')
      ++p;
    const bool stands_alone =
        (first == begin || pattern(first - 1) == '/') &&
        (pattern(p) == 0 || pattern(p) == '/' || (pattern(p) == '\\' && pattern(p + 1) == '/'));
    if (apart_ && stands_alone) {
      // "a/**/b" also matches "a/b".
      if (pattern(p) == '/' && from(p + 1, t) == Found::match) return {Found::match};
      over_slashes = true;
    }
  }
  const std::size_t slash = text_.find('/', t);
  if (pattern(p) == 0) {
    const bool all = over_slashes || slash == std::string_view::npos;
    return {all ? Found::match : Found::no_match_until_stars};
  }
  // A star before a slash stands for the rest of one path part.
  if (!over_slashes && pattern(p) == '/') {
    if (slash == std::string_view::npos) return {Found::no_match_to_the_end};
    return {Found::no_match, false, p, slash};
  }
  return {stretch(p, t, over_slashes)};
}

// Lets the star take one more byte at a time until the rest of the pattern matches the rest of the
// text.
Found Match::stretch(std::size_t p, std::size_t t, bool over_slashes) {
  for (; text(t) != 0; ++t) {
    if (++steps_ > kMostSteps) return Found::no_match_to_the_end;
    if (!is_special(pattern(p))) {
      // Skip to the next place where the plain character matches.
      while (text(t) != 0 && text(t) != pattern(p) && (over_slashes || text(t) != '/'))
        ++t;
      if (text(t) != pattern(p))
        return over_slashes ? Found::no_match_to_the_end : Found::no_match_until_stars;
    }
    const Found found = from(p, t);
    if (found != Found::no_match) {
      if (!over_slashes || found != Found::no_match_until_stars) return found;
    } else if (!over_slashes && text(t) == '/') {
      return Found::no_match_until_stars;
    }
  }
  return Found::no_match_to_the_end;
}

Found Match::bracket(std::size_t& p, Byte c) const {
  ++p;
  const bool negated = pattern(p) == '^' || pattern(p) == '!';
  if (negated) ++p;
  bool matched = false;
  Byte before = 0;
  // A ']' at the very start is a member of the class.
  do {
    Byte current = pattern(p);
    if (current == 0 || !member(p, current, before, c, matched)) return Found::no_match_to_the_end;
    before = current;
    ++p;
  } while (pattern(p) != ']');
  if (matched == negated || (apart_ && c == '/')) return Found::no_match;
  return Found::match;
}

bool Match::member(std::size_t& p, Byte& current, Byte before, Byte c, bool& matched) const {
  if (current == '\\') {
    current = pattern(++p);
    matched = matched || c == current;
    return current != 0;
  }
  if (current == '-' && before != 0 && pattern(p + 1) != 0 && pattern(p + 1) != ']') {
    Byte last = pattern(++p);
    if (last == '\\') last = pattern(++p);
    matched = matched || (last != 0 && c >= before && c <= last);
    current = 0;  // the end of a range cannot begin another range
    return last != 0;
  }
  if (current == '[' && pattern(p + 1) == ':') {
    const std::size_t end = pattern_.find(']', p + 2);
    if (end == std::string_view::npos) return false;
    if (end > p + 2 && pattern(end - 1) == ':') {
      const std::string_view name = pattern_.substr(p + 2, end - p - 3);
      matched = matched || is_in_named_class(name, c);
      p = end;
      current = 0;
      return is_class_name(name);
    }
  }
  matched = matched || c == current;
  return true;
}

}  // namespace

bool wildmatch(std::string_view pattern, std::string_view text, Slashes slashes) {
  return pattern.size() <= kMostPattern && Match(pattern, text, slashes).from(0, 0) == Found::match;
}

}  // namespace lockstep::sync
