// Ignore files as git reads them: lines of patterns, and which of them decides about a name. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::sync {

class IgnoreRules {
 public:
  // text: of one ignore file. base: its folder, relative to the root: "" or "a/b".
  IgnoreRules(std::string_view text, std::string base);

  // path: relative to the root. True: ignored; false: named by "!"; nullopt: no line is about it.
  // A name in an ignored folder is ignored as well, which is the caller's to know.
  std::optional<bool> about(std::string_view path, bool is_folder) const;
  bool empty() const { return patterns_.empty(); }

 private:
  struct Pattern {
    std::string text;
    bool ignores = true;          // false: "!" stood before it
    bool only_folders = false;    // "/" stood behind it
    bool any_folder = false;      // no "/" in it: matches the last part of a path
    std::size_t plain_bytes = 0;  // before its first special character
  };
  void add(std::string_view line);
  bool matches(const Pattern& pattern, std::string_view path) const;

  std::string base_;
  std::vector<Pattern> patterns_;
};

}  // namespace lockstep::sync
