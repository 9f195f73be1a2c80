#include "sync/own_rules.h"

#include "base/environment.h"
#include "base/text.h"
#include "io/fd.h"
#include "sync/confined.h"
#include "sync/git_files.h"
#include "sync/ignore.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <utility>

namespace lockstep::sync {
namespace {

constexpr std::size_t kMostRules = 4UL << 20;  // of one ignore file
constexpr std::size_t kMostDepth = 512;

std::string read_or_nothing(const std::string& path) {
  return io::read_file(path, kMostRules).value_or("");
}

// Returns the user's own excludes file: the last configuration that names one wins, as in git, else
// the default place.
std::string users_excludes(const std::string& git_folder) {
  const std::string home = env_text("HOME");
  const std::string xdg =
      env_text("XDG_CONFIG_HOME").empty() ? home + "/.config" : env_text("XDG_CONFIG_HOME");
  std::string named;
  for (const std::string& config : {std::string("/etc/gitconfig"), xdg + "/git/config",
                                    home + "/.gitconfig", git_folder + "/config"})
    if (std::string found = excludes_file_in(read_or_nothing(config), home); !found.empty())
      named = std::move(found);
  return named.empty() ? xdg + "/git/ignore" : named;
}

using Rules = std::shared_ptr<const IgnoreRules>;

class Walk {
 public:
  enum class Ignores { hold, do_not };
  Walk(std::string top, Ignores ignores) : top_(std::move(top)), ignores_(ignores) {}
  // below: the root, relative to the top of its repository.
  Result<std::vector<std::string>> run(const std::string& below);

 private:
  void begin_repository(const std::string& base);
  Status folder(int fd, const std::string& path, std::size_t depth);
  Status each(int fd, const std::string& path, const dirent& found, std::size_t depth);
  bool is_ignored(const std::string& path, bool is_folder) const;

  std::string top_;
  Ignores ignores_;
  std::size_t skip_ = 0;      // bytes of the root's path below the top, cut from each result
  std::vector<Rules> rules_;  // the last one decides first
  std::vector<std::string> paths_;
};

// base: path of the repository below the top. Its rules replace those of the outer repository, as
// in git.
void Walk::begin_repository(const std::string& base) {
  const std::string git = git_folder_of(base.empty() ? top_ : top_ + "/" + base);
  rules_.clear();
  rules_.push_back(std::make_shared<IgnoreRules>(read_or_nothing(users_excludes(git)), base));
  rules_.push_back(std::make_shared<IgnoreRules>(read_or_nothing(git + "/info/exclude"), base));
}

Result<std::vector<std::string>> Walk::run(const std::string& below) {
  begin_repository("");
  LOCKSTEP_TRY_ASSIGN(Confined tree, Confined::open(top_));
  // Ignore files of the folders above the root.
  for (std::size_t from = 0; from < below.size();) {
    LOCKSTEP_TRY_ASSIGN(const int fd, tree.folder(below.substr(0, from == 0 ? 0 : from - 1)));
    rules_.push_back(std::make_shared<IgnoreRules>(read_rules(fd, ".gitignore"),
                                                   below.substr(0, from == 0 ? 0 : from - 1)));
    from = std::min(below.find('/', from), below.size()) + 1;
  }
  skip_ = below.empty() ? 0 : below.size() + 1;
  LOCKSTEP_TRY_ASSIGN(const int root, tree.folder(below));
  LOCKSTEP_TRY(folder(root, below, 0));
  return std::move(paths_);
}

bool Walk::is_ignored(const std::string& path, bool is_folder) const {
  if (ignores_ == Ignores::do_not) return false;
  for (auto rules = rules_.rbegin(); rules != rules_.rend(); ++rules)
    if (const auto said = (*rules)->about(path, is_folder)) return *said;
  return false;
}

Status Walk::folder(int fd, const std::string& path, std::size_t depth) {
  const auto shown = [&] { return printable(path.empty() ? top_ : path); };
  if (depth > kMostDepth) return fail(Errc::invalid_input, shown() + " lies too deep");
  const int readable = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (readable < 0) return fail_sys(shown(), errno);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(fdopendir(readable), closedir);
  if (!listing) {
    close(readable);
    return fail_sys(shown(), ENOMEM);
  }
  std::vector<Rules> before;
  if (depth != 0 && faccessat(fd, ".git", F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
      is_git_top(top_ + "/" + path)) {
    // Rules of the outer repository do not reach into an inner repository. Restore them afterwards.
    before = rules_;
    begin_repository(path);
  }
  const std::size_t count = rules_.size();
  if (std::string text = read_rules(fd, ".gitignore"); !text.empty())
    rules_.push_back(std::make_shared<IgnoreRules>(text, path));
  for (errno = 0; const dirent* found = readdir(listing.get()); errno = 0)
    LOCKSTEP_TRY(each(fd, path, *found, depth));
  if (errno != 0) return fail_sys("read " + shown(), errno);
  // The folder's rules end with the folder.
  rules_.resize(count);
  if (!before.empty()) rules_ = std::move(before);
  return {};
}

Status Walk::each(int fd, const std::string& path, const dirent& found, std::size_t depth) {
  // Some file systems do not report the type in readdir().
  const std::string name = found.d_name;
  if (name == "." || name == ".." || name == ".git") return {};
  unsigned char type = found.d_type;
  if (type == DT_UNKNOWN) {
    struct stat info {};
    if (fstatat(fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return {};  // removed meanwhile
    type = S_ISDIR(info.st_mode) ? DT_DIR : DT_REG;
  }
  std::string full = path.empty() ? name : path + "/" + name;
  if (is_ignored(full, type == DT_DIR)) return {};
  if (type != DT_DIR) {
    paths_.push_back(full.substr(skip_));
    return {};
  }
  // O_NOFOLLOW: the folder may have become a link since readdir().
  const io::Fd inner(openat(fd, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!inner) return errno == ENOENT ? Status{} : Status(fail_sys(printable(full), errno));
  return folder(inner.get(), full, depth + 1);
}

}  // namespace

// git does not follow a link named .gitignore either. O_NONBLOCK: the name may be a FIFO.
std::string read_rules(int folder, const char* name) {
  const io::Fd fd(openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return {};
  std::string text;
  char bytes[4096];
  ssize_t got = 0;
  while (text.size() < kMostRules && (got = read(fd.get(), bytes, sizeof bytes)) > 0)
    text.append(bytes, static_cast<std::size_t>(got));
  return text;
}

std::string excludes_file_in(std::string_view config, const std::string& home) {
  std::string found;
  bool in_core = false;
  for (const std::string& raw : split(config, '\n')) {
    const std::string_view line = strip(raw);
    if (line.starts_with('[')) in_core = to_lower(line.substr(0, line.find(']') + 1)) == "[core]";
    const std::size_t equals = line.find('=');
    if (!in_core || equals == std::string_view::npos) continue;
    if (to_lower(strip(line.substr(0, equals))) != "excludesfile") continue;
    std::string_view value = strip(line.substr(equals + 1));
    // git allows quotes around a value.
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
      value = value.substr(1, value.size() - 2);
    found = value.starts_with("~/") ? home + std::string(value.substr(1)) : std::string(value);
  }
  return found;
}

Result<std::vector<std::string>> files_by_own_rules(const std::string& root) {
  // In a repository that this user does not trust, the rules above the root do not count.
  std::string top = git_top_of(root);
  if (top.empty() || top == "/" || (top != root && !check_git_owner(top))) top = root;
  Walk walk(top, Walk::Ignores::hold);
  return walk.run(root == top ? "" : root.substr(top.size() + 1));
}

Result<std::vector<std::string>> all_files(const std::string& root) {
  Walk walk(root, Walk::Ignores::do_not);
  return walk.run("");
}

}  // namespace lockstep::sync
