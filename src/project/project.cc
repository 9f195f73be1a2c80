#include "project/project.h"

#include "base/environment.h"
#include "base/text.h"
#include "sync/git_files.h"

#include <fmt/core.h>

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

namespace lockstep::project {
namespace {

constexpr const char* kNameIt =
    "go to the project's folder, or name the folder to send (run: --sync DIR)";

// Resolves links: a tree has the same root whatever way the user came.
Result<std::string> real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr),
                                                         &std::free);
  if (!real) return fail_sys(printable(path), errno);
  return std::string(real.get());
}

Result<std::string> real_folder(const std::string& path) {
  LOCKSTEP_TRY_ASSIGN(std::string real, real_path(path));
  struct stat info {};
  if (stat(real.c_str(), &info) != 0) return fail_sys(printable(path), errno);
  if (!S_ISDIR(info.st_mode))
    return fail(Errc::invalid_input, fmt::format("{} must be a folder", printable(path)));
  return real;
}

// The separator matters: "/home/me2" does not lie in "/home/me".
bool lies_in(const std::string& path, const std::string& root) {
  return path == root || root == "/" ||
         (path.size() > root.size() && path.starts_with(root) && path[root.size()] == '/');
}

std::string name_of(const std::string& root) {
  std::string name = root.substr(root.rfind('/') + 1);
  // A name with a dot in front would be the settings of another program in the home there
  // (~/.config).
  name.erase(0, name.find_first_not_of('.'));
  return name.empty() ? "root" : name;
}

// Refuses the home and all folders above: a sync from the wrong folder would otherwise send
// everything that the user has, keys included.
Status check_not_everything(const std::string& root) {
  // Without a usable HOME, only "/" is refused.
  const auto real_home = real_path(env_text("HOME", "/"));
  const std::string& kept = real_home ? *real_home : "/";
  if (root != "/" && !lies_in(kept, root)) return {};
  const char* what = root == kept && root != "/" ? "your home" : "above your home";
  return fail(Errc::invalid_input,
              fmt::format("the project would be all of {}, which is {}", printable(root),
                          root == "/" ? "the whole machine" : what),
              kNameIt);
}

// Refuses a folder that others can write to, such as /tmp: their files would be sent along. Mounts
// of Windows and macOS show every folder like that, but owned by the user and without a sticky bit,
// so is_everybodys() accepts such mounts.
Status check_not_everybodys(const std::string& folder) {
  struct stat info {};
  if (stat(folder.c_str(), &info) != 0) return fail_sys(printable(folder), errno);
  if (!is_everybodys(info.st_mode, info.st_uid, geteuid())) return {};
  return fail(
      Errc::invalid_input,
      fmt::format("{} cannot be a project: the folder has no .git, and any user can write there",
                  printable(folder)),
      kNameIt);
}

// Returns the folder to send if the user names none.
Result<std::string> root_around(const std::string& here) {
  const std::string top = sync::git_top_of(here);
  // git itself refuses a repository of another user, whose config could name programs to run.
  if (Status owned = top.empty() ? Status{} : sync::check_git_owner(top); !owned) {
    Error error = owned.error();
    error.code = Errc::invalid_input;
    error.hint += fmt::format("; else {}", kNameIt);
    return tl::make_unexpected(std::move(error));
  }
  const std::string& root = top.empty() ? here : top;
  LOCKSTEP_TRY(check_not_everything(root));
  if (top.empty()) LOCKSTEP_TRY(check_not_everybodys(root));
  return root;
}

}  // namespace

bool is_everybodys(unsigned int mode, unsigned int owner, unsigned int user) {
  return (mode & S_IWOTH) != 0 && (owner != user || (mode & S_ISVTX) != 0);
}

Result<Project> find_project(const std::string& folder,
                             const std::optional<std::string>& given_root) {
  LOCKSTEP_TRY_ASSIGN(const std::string here, real_folder(folder));
  Project project;
  if (given_root) {
    if (given_root->empty()) return fail(Errc::invalid_input, "the folder to send has no name");
    // A folder that is named counts as wanted, also "/" or a home.
    const bool absolute = given_root->front() == '/';
    LOCKSTEP_TRY_ASSIGN(project.root,
                        real_folder(absolute ? *given_root : here + "/" + *given_root));
  } else {
    LOCKSTEP_TRY_ASSIGN(project.root, root_around(here));
  }
  project.name = name_of(project.root);
  // With a given root outside of the working folder, no folder of the project matches. Commands
  // then run in the root.
  if (here != project.root && lies_in(here, project.root))
    project.folder = here.substr(project.root == "/" ? 1 : project.root.size() + 1);
  return project;
}

Result<std::string> path_in_project(const Project& project, const std::string& path) {
  const std::string start =
      project.root + (project.folder.empty() ? "" : "/" + project.folder) + "/";
  // Remove ".." by the text alone. The path need not exist here: --back may bring a folder that
  // only a host has.
  std::vector<std::string> parts;
  for (std::string& part : split(path.starts_with('/') ? path : start + path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..")
      parts.push_back(std::move(part));
    else if (!parts.empty())
      parts.pop_back();
  }
  const std::string full = "/" + join(parts, "/");
  if (!lies_in(full, project.root))
    return fail(Errc::invalid_input,
                fmt::format("{} is not inside {}", printable(path), printable(project.root)));
  if (full == project.root) return std::string();
  return full.substr(project.root == "/" ? 1 : project.root.size() + 1);
}

std::optional<std::string> path_from_folder(const Project& project, const std::string& path,
                                            const std::string& folder) {
  const auto from = std::filesystem::path(folder).lexically_normal();
  const auto file = (std::filesystem::path(project.name) / path).lexically_normal();
  if (from.is_absolute() == file.is_absolute() && (from.empty() || *from.begin() != ".."))
    return file.lexically_relative(from).string();
  if (file.is_absolute()) return file.string();
  return std::nullopt;
}

}  // namespace lockstep::project
