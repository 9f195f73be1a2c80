#include "setup/inputs.h"

#include "io/digest.h"
#include "io/fd.h"
#include "setup/requirements.h"

#include <fmt/core.h>

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <system_error>
#include <vector>

namespace lockstep::setup {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 1'000'000;    // in one folder
constexpr std::size_t kMostRequirements = 1000;  // files of requirements in one step
constexpr std::size_t kLongestFile = 4UL << 20;  // one file of requirements, in bytes
// Version control and caches change without any effect on an install.
constexpr std::array<std::string_view, 3> kSkipped = {".git", "__pycache__", ".tox"};

bool is_skipped(const std::string& name) {
  return std::find(kSkipped.begin(), kSkipped.end(), name) != kSkipped.end() ||
         name.ends_with(".pyc") || name.ends_with(".egg-info");
}

// An environment inside the project changes with every install and must not undo the steps'
// digests.
bool is_environment(const std::string& folder) {
  struct stat info {};
  return stat((folder + "/pyvenv.cfg").c_str(), &info) == 0 ||
         stat((folder + "/conda-meta").c_str(), &info) == 0;
}

// Returns the relative paths of all files below `top`, sorted, so that the digest does not depend
// on the order of directory entries.
Result<std::vector<std::string>> list_folder(const std::string& top) {
  std::vector<std::string> paths;
  std::vector<std::string> folders = {""};
  while (!folders.empty()) {
    const std::string folder = folders.back();
    folders.pop_back();
    std::error_code trouble;
    fs::directory_iterator entry(fmt::format("{}/{}", top, folder), trouble);
    for (; !trouble && entry != fs::directory_iterator(); entry.increment(trouble)) {
      const std::string name = entry->path().filename().string();
      if (is_skipped(name)) continue;
      std::string path = folder;
      path += path.empty() ? "" : "/";
      path += name;
      if (paths.size() == kMostFiles)
        return fail(Errc::invalid_input, top + " has more than a million files",
                    "install from a separate folder");
      // A link to a folder counts as a link: following it could leave the project, or loop.
      if (entry->symlink_status(trouble).type() == fs::file_type::directory) {
        if (!is_environment(fmt::format("{}/{}", top, path))) folders.push_back(path);
      } else {
        paths.push_back(std::move(path));
      }
    }
    if (trouble) return fail_sys(fmt::format("read {}/{}", top, folder), trouble.value());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Adds `shown` in place of the path, so that a copy of the folder elsewhere has the same digest.
Status add_entry(io::Digest& digest, const std::string& path, const std::string& shown) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return {};  // removed since the folder was listed
    return fail_sys("read " + path, errno);
  }
  digest.add(shown);
  if (S_ISLNK(info.st_mode)) {
    std::error_code trouble;
    digest.add("link");
    digest.add(fs::read_symlink(path, trouble).string());
  } else if (S_ISREG(info.st_mode)) {
    digest.add((info.st_mode & S_IXUSR) != 0 ? "program" : "file");
    return digest.add_file(path);
  }
  return {};
}

// Collects the inputs of one step. Follows files of requirements into each other.
class Inputs {
 public:
  explicit Inputs(std::string folder) : folder_(std::move(folder)) {}

  Status add_content(const std::string& path) {
    LOCKSTEP_TRY_ASSIGN(const std::string content, digest_of_path(path));
    digest_.add(path);
    digest_.add(content);
    from_here_ = true;
    return {};
  }

  Status add_references(const std::vector<Reference>& references, const std::string& beside) {
    for (const Reference& each : references) {
      // pip resolves -r and -c against the file with the option, other paths against the working
      // folder.
      if (each.kind == Reference::Kind::requirements) {
        LOCKSTEP_TRY(add_requirements(absolute(each.path, beside)));
      } else {
        LOCKSTEP_TRY(add_content(absolute(each.path, folder_)));
      }
    }
    return {};
  }

  Status add_requirements(const std::string& path) {
    // Files of requirements may include each other in a circle.
    if (!seen_.insert(path).second) return {};
    if (seen_.size() > kMostRequirements)
      return fail(
          Errc::invalid_input,
          path +
              " is one file too many: at most 1000 files of requirements may include each other");
    const auto text = io::read_file(path, kLongestFile);
    digest_.add(path);
    digest_.add(text ? *text : std::string_view("missing"));
    if (!text) return {};  // pip reports a missing file better
    if (text->size() == kLongestFile)
      return fail(Errc::invalid_input, path + " has more than 4 MiB of requirements");
    return add_references(references_in_file(*text), path.substr(0, path.rfind('/')));
  }

  void add(std::string_view part) { digest_.add(part); }
  std::string hex() { return digest_.hex(); }
  bool from_here() const { return from_here_; }

 private:
  static std::string absolute(const std::string& path, const std::string& beside) {
    return path.starts_with('/') ? path : fs::path(beside + "/" + path).lexically_normal().string();
  }

  io::Digest digest_;
  std::string folder_;
  std::set<std::string> seen_;
  bool from_here_ = false;
};

Status add_all(Inputs& inputs, const Spec& spec, const std::string& path,
               const std::string& folder) {
  if (spec.kind == Spec::Kind::tree || spec.kind == Spec::Kind::wheel)
    LOCKSTEP_TRY(inputs.add_content(path));
  if (spec.kind == Spec::Kind::requirements || spec.kind == Spec::Kind::conda)
    LOCKSTEP_TRY(inputs.add_requirements(path));
  return inputs.add_references(references_in_arguments(spec.args), folder);
}

}  // namespace

Result<std::string> digest_of_path(const std::string& path) {
  io::Digest digest;
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    LOCKSTEP_TRY_ASSIGN(const auto paths, list_folder(path));
    for (const std::string& each : paths)
      LOCKSTEP_TRY(add_entry(digest, fmt::format("{}/{}", path, each), each));
  } else {
    LOCKSTEP_TRY(add_entry(digest, path, ""));
  }
  return digest.hex();
}

Result<std::string> digest_of_inputs(const Spec& spec, const std::string& path,
                                     const std::string& folder, std::string_view commit) {
  Inputs inputs(folder);
  inputs.add(spec.text);
  inputs.add(path);
  inputs.add(folder);
  inputs.add(commit);
  LOCKSTEP_TRY(add_all(inputs, spec, path, folder));
  return inputs.hex();
}

Result<bool> installs_from_here(const Spec& spec, const std::string& path,
                                const std::string& folder) {
  Inputs inputs(folder);
  LOCKSTEP_TRY(add_all(inputs, spec, path, folder));
  return inputs.from_here();
}

}  // namespace lockstep::setup
