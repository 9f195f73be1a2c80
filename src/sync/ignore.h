// Ignore files with git's syntax: reads lines of patterns and tells which line decides about a
// path. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::sync {

class IgnoreRules {
 public:
  // text: content of one ignore file. base: its folder relative to the root, "" or "a/b".
  IgnoreRules(std::string_view text, std::string base);

  // Returns true if ignored, false if a "!" line includes the path, nullopt if no line matches.
  // path: relative to the root. Everything in an ignored folder is ignored, too; the caller must
  // check the folders.
  std::optional<bool> about(std::string_view path, bool is_folder) const;
  bool empty() const { return patterns_.empty(); }

 private:
  struct Pattern {
    std::string text;
    bool ignores = true;          // false: the line began with "!"
    bool only_folders = false;    // the line ended with "/"
    bool any_folder = false;      // no "/" inside: compare with the last part of the path
    std::size_t plain_bytes = 0;  // before the first special character
  };
  void add(std::string_view line);
  bool matches(const Pattern& pattern, std::string_view path) const;

  std::string base_;
  std::vector<Pattern> patterns_;
};

}  // namespace lockstep::sync
