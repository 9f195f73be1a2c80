#include "sync/scan.h"

#include "base/text.h"
#include "sync/confined.h"
#include "sync/git_files.h"
#include "sync/ignore.h"
#include "sync/own_rules.h"
#include "sync/piece_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace lockstep::sync {
namespace {

// Applies the .lockstepignore files of the tree. Fast for sorted paths, because it keeps the rules
// of the current folders.
class OwnIgnores {
 public:
  explicit OwnIgnores(Confined& tree) : tree_(tree) {}
  bool drop(std::string_view path);

 private:
  // The folders above the last path, the root first.
  struct Level {
    std::string folder;
    std::shared_ptr<const IgnoreRules> rules = {};  // nullptr: no file here
    bool dropped = false;
    bool any_rules = false;  // here or in a folder above
  };
  void enter(std::string_view folder);
  bool decide(std::string_view path, bool is_folder) const;

  Confined& tree_;
  std::vector<Level> levels_;
};

bool OwnIgnores::decide(std::string_view path, bool is_folder) const {
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level)
    if (level->rules)
      if (const auto said = level->rules->about(path, is_folder)) return *said;
  return false;
}

void OwnIgnores::enter(std::string_view folder) {
  Level level{.folder = std::string(folder)};
  if (!levels_.empty()) {
    level.any_rules = levels_.back().any_rules;
    level.dropped = levels_.back().dropped || (level.any_rules && decide(folder, true));
  }
  const auto fd = tree_.folder(folder);
  // Nothing in a dropped folder can be taken back, as in git.
  if (fd && !level.dropped) {
    const std::string text = read_rules(*fd, ".lockstepignore");
    if (!text.empty()) level.rules = std::make_shared<IgnoreRules>(text, level.folder);
  }
  level.any_rules = level.any_rules || level.rules;
  levels_.push_back(std::move(level));
}

bool OwnIgnores::drop(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::string_view folder = path.substr(0, slash == std::string_view::npos ? 0 : slash);
  const auto is_above = [folder](const std::string& above) {
    return above.empty() || (folder.starts_with(above) &&
                             (folder.size() == above.size() || folder[above.size()] == '/'));
  };
  // Leave the folders of the last path that do not contain this path.
  while (!levels_.empty() && !is_above(levels_.back().folder))
    levels_.pop_back();
  if (levels_.empty()) enter("");
  while (levels_.back().folder.size() != folder.size()) {
    const std::size_t from = levels_.back().folder.empty() ? 0 : levels_.back().folder.size() + 1;
    enter(folder.substr(0, std::min(folder.find('/', from), folder.size())));
  }
  const Level& level = levels_.back();
  return level.dropped || (level.any_rules && decide(path, false));
}

class Scanner {
 public:
  Scanner(const std::string& root, Confined tree, By by)
      : root_(root), tree_(std::move(tree)), ignores_(tree_), by_(by) {}
  Result<Scan> run();

 private:
  Result<std::vector<std::string>> paths_in(const std::string& folder);
  Status add_repository(const std::string& below);
  Status add(const std::string& path);

  const std::string& root_;
  Confined tree_;
  OwnIgnores ignores_;
  By by_;
  Scan scan_;
  bool remarked_ = false;
};

Result<std::vector<std::string>> Scanner::paths_in(const std::string& folder) {
  if (by_ == By::nothing) return all_files(folder);
  if (const std::string top = by_ == By::git ? git_top_of(folder) : ""; !top.empty()) {
    // git reads a repository's settings at once, and settings of another user's repository could
    // run programs.
    const Status owned = check_git_owner(top);
    auto paths = owned ? git_files(folder) : Failure(owned.error());
    if (paths) return paths;
    // A missing git needs no remark. A refusal by git does, once.
    if (paths.error().code != Errc::not_found && !std::exchange(remarked_, true))
      scan_.remarks.push_back(paths.error().message + "; the ignore files were read without it");
  }
  return files_by_own_rules(folder);
}

// below: "" or the path of a repository inside the root.
Status Scanner::add_repository(const std::string& below) {
  LOCKSTEP_TRY_ASSIGN(auto paths, paths_in(below.empty() ? root_ : root_ + "/" + below));
  if (!below.empty())
    for (std::string& path : paths)
      path.insert(0, below + "/");
  // Neighbours share their open folder in Confined.
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  scan_.manifest.reserve(scan_.manifest.size() + paths.size());
  for (const std::string& path : paths)
    LOCKSTEP_TRY(add(path));
  return {};
}

Status Scanner::add(const std::string& path) {
  if (!check_path(path)) return {};  // such as the .git of an inner repository
  if (last_part(path).starts_with(draft_of(""))) {
    scan_.drafts.push_back(path);
    return {};
  }
  if (by_ != By::nothing && ignores_.drop(path)) return {};
  LOCKSTEP_TRY_ASSIGN(const auto info, tree_.look(path));
  if (!info) return {};  // deleted, or behind a link that is sent as a link
  if (S_ISDIR(info->st_mode)) {
    // An inner repository. A submodule that was not fetched is an empty folder.
    return is_git_top(root_ + "/" + path) ? add_repository(path) : Status{};
  }
  LOCKSTEP_TRY_ASSIGN(auto entry, tree_.entry(path, *info));
  if (entry)
    scan_.manifest.push_back(std::move(*entry));
  else
    scan_.special.push_back(path);
  return {};
}

Result<Scan> Scanner::run() {
  LOCKSTEP_TRY(add_repository(""));
  sort(scan_.manifest);
  if (scan_.manifest.size() > kMostEntries)
    return fail(Errc::invalid_input,
                fmt::format("{} files are too many to send", scan_.manifest.size()));
  return std::move(scan_);
}

}  // namespace

Result<Scan> scan(const std::string& root, By by) {
  LOCKSTEP_TRY_ASSIGN(Confined tree, Confined::open(root));
  Scanner scanner(root, std::move(tree), by);
  return scanner.run();
}

}  // namespace lockstep::sync
