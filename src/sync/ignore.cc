#include "sync/ignore.h"

#include "sync/wildmatch.h"

#include <utility>

namespace lockstep::sync {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string_view without_trailing_spaces(std::string_view line) {
  std::size_t end = line.size();
  bool in_spaces = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == ' ') {
      if (!std::exchange(in_spaces, true)) end = i;
      continue;
    }
    in_spaces = false;
    // git keeps the line unchanged if a backslash ends it.
    if (line[i] == '\\' && ++i == line.size()) return line;
  }
  return in_spaces ? line.substr(0, end) : line;
}

}  // namespace

IgnoreRules::IgnoreRules(std::string_view text, std::string base) : base_(std::move(base)) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  // git strips a carriage return at the end, and ignores the bytes after a NUL.
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && line.front() != '#') add(line.substr(0, line.find('\0')));
  }
}

void IgnoreRules::add(std::string_view line) {
  line = without_trailing_spaces(line);
  Pattern pattern;
  if (line.starts_with('!')) {
    pattern.ignores = false;
    line.remove_prefix(1);
  }
  if (line.ends_with('/')) {
    pattern.only_folders = true;
    line.remove_suffix(1);
  }
  // As in git: a pattern without a slash matches a name at any depth.
  pattern.any_folder = line.find('/') == std::string_view::npos;
  if (line.starts_with('/')) line.remove_prefix(1);
  const std::size_t special = line.find_first_of("*?[\\");
  pattern.plain_bytes = special == std::string_view::npos ? line.size() : special;
  pattern.text = line;
  patterns_.push_back(std::move(pattern));
}

bool IgnoreRules::matches(const Pattern& pattern, std::string_view path) const {
  const std::string_view text = pattern.text;
  if (pattern.any_folder) {
    const std::string_view name = path.substr(path.rfind('/') + 1);
    if (pattern.plain_bytes == text.size()) return name == text;
    return wildmatch(text, name, Slashes::plain);
  }
  if (!base_.empty()) {
    if (path.size() <= base_.size() || !path.starts_with(base_) || path[base_.size()] != '/')
      return false;
    path.remove_prefix(base_.size() + 1);
  }
  // Compares the plain bytes separately, as git does. The rest is then a pattern of its own, so
  // that in "a**/b" the "**" stands at a beginning.
  if (!path.starts_with(text.substr(0, pattern.plain_bytes))) return false;
  path.remove_prefix(pattern.plain_bytes);
  return wildmatch(text.substr(pattern.plain_bytes), path, Slashes::apart);
}

std::optional<bool> IgnoreRules::about(std::string_view path, bool is_folder) const {
  // The last matching line wins.
  for (auto pattern = patterns_.rbegin(); pattern != patterns_.rend(); ++pattern)
    if ((is_folder || !pattern->only_folders) && matches(*pattern, path)) return pattern->ignores;
  return std::nullopt;
}

}  // namespace lockstep::sync
