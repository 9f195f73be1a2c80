#include "setup/wheel_scratch.h"

#include "base/environment.h"
#include "base/text.h"
#include "setup/cpu_level.h"
#include "setup/tool.h"

#include <fmt/core.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

namespace lockstep::setup {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kScratch = "lockstep-wheel-";
constexpr std::chrono::hours kScratchStays{24};

// pip with a limit for each file that it writes: a download without end must not fill the disk. A
// source has a few megabytes, so 512 MiB is ample.
constexpr const char* kBoundedPip = R"(import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (512 << 20, 512 << 20))
sys.argv[0] = 'pip'
runpy.run_module('pip', run_name='__main__'))";

void remove_old_scratches(const fs::path& top) {
  std::error_code trouble;
  std::vector<fs::path> old;
  for (fs::directory_iterator at(top, trouble), end; !trouble && at != end; at.increment(trouble)) {
    std::error_code unknown;
    // Only our own folders: TMPDIR is shared.
    if (!at->path().filename().string().starts_with(kScratch)) continue;
    const auto made = fs::last_write_time(at->path(), unknown);
    if (!unknown && made < fs::file_time_type::clock::now() - kScratchStays)
      old.push_back(at->path());
  }
  for (const fs::path& each : old)
    fs::remove_all(each, trouble);
}

// Files left by builds in a project's top folder. A new build would reuse them.
bool is_left_by_builds(const std::string& name) {
  return name == ".git" || name == "build" || name == "dist" || name.ends_with(".egg-info") ||
         name == "__pycache__";
}

// Reads "  Resolved https://github.com/a/b to commit 1f2e...". Empty: another line.
std::string resolved_commit(std::string_view line) {
  constexpr std::string_view kBegin = "Resolved ";
  constexpr std::string_view kTo = " to commit ";
  const std::string_view text = strip(line);
  const std::size_t at = text.rfind(kTo);
  if (!text.starts_with(kBegin) || at == std::string_view::npos) return {};
  return std::string(text.substr(at + kTo.size()));
}

Result<std::string> own_binary() {
  std::error_code trouble;
  const fs::path path = fs::read_symlink("/proc/self/exe", trouble);
  if (trouble) return fail_sys("read /proc/self/exe", trouble.value());
  return path.string();
}

}  // namespace

Result<std::string> make_scratch() {
  std::error_code trouble;
  const fs::path top = fs::temp_directory_path(trouble);
  if (trouble) return fail_sys("use TMPDIR", trouble.value());
  remove_old_scratches(top);
  std::string name = (top / (std::string(kScratch) + "XXXXXX")).string();
  if (mkdtemp(name.data()) == nullptr) return fail_sys("make " + name, errno);
  return name;
}

void remove_scratch(const std::string& scratch) {
  std::error_code trouble;
  if (!scratch.empty()) fs::remove_all(scratch, trouble);
}

Result<FetchedSource> fetch_source(const WheelPlan& plan, const std::string& scratch,
                                   const SayLine& say) {
  const WheelSource& source = plan.source;
  std::string what = source.name;
  if (!source.version.empty()) what += "==" + source.version;
  if (source.kind == WheelSource::Kind::url)
    what = what.empty() ? source.place : what + " @ " + source.place;
  const std::string folder = scratch + "/sdist";
  say(fmt::format("fetching {}", printable(what)));
  FetchedSource fetched;
  // --no-binary: take the source distribution, not a prebuilt wheel.
  const auto ended = run_tool({{plan.python.python, "-c", kBoundedPip, "download", "--no-deps",
                                "--no-build-isolation", "--no-binary", ":all:", "-d", folder, what},
                               pip_variables(),
                               scratch},
                              [&fetched](std::string_view line) {
                                if (auto commit = resolved_commit(line); !commit.empty())
                                  fetched.commit = std::move(commit);
                              });
  if (!ended) return Failure(ended.error());
  if (ended->code != 0)
    return fail(Errc::unavailable,
                fmt::format("{} can't be fetched: {}", printable(what),
                            printable(telling_line(ended->tail))),
                "without internet access, copy the source here and give deepspeed@DIR");
  std::error_code trouble;
  // pip downloads exactly one file.
  for (fs::directory_iterator at(folder, trouble), end; !trouble && at != end;
       at.increment(trouble)) {
    fetched.place = at->path().string();
    return fetched;
  }
  return fail(Errc::unavailable, fmt::format("pip fetched no file for {}", printable(what)));
}

Status copy_source(const std::string& from, const std::string& to) {
  std::error_code trouble;
  fs::create_directories(to, trouble);
  for (fs::directory_iterator at(from, trouble), end; !trouble && at != end;) {
    const std::string name = at->path().filename().string();
    if (!is_left_by_builds(name))
      fs::copy(at->path(), fs::path(to) / name,
               fs::copy_options::recursive | fs::copy_options::copy_symlinks, trouble);
    if (!trouble) at.increment(trouble);
  }
  if (trouble) return fail_sys(fmt::format("copy {} to {}", from, to), trouble.value());
  // setuptools_scm and the like compute the version from git. GIT_OPTIONAL_LOCKS=0 keeps git from
  // writing through the link.
  if (fs::exists(from + "/.git", trouble))
    fs::create_symlink(from + "/.git", to + "/.git", trouble);
  return {};
}

Result<std::vector<std::string>> compiler_variables(const WheelPlan& plan,
                                                    const std::string& scratch) {
  std::vector<std::string> variables;
  if (plan.level == kNative) return variables;
  // Build scripts add -march=native themselves, so a wrapper around the compiler has to replace it.
  LOCKSTEP_TRY_ASSIGN(const std::string own, own_binary());
  std::error_code trouble;
  const auto value = [](const char* name, const char* otherwise) {
    const std::string given = env_text(name);
    return given.empty() ? std::string(otherwise) : given;
  };
  // This binary acts as the compiler when called by these names.
  for (const auto& [name, link, otherwise] :
       {std::tuple{"CC", "lockstep-gcc", "cc"}, std::tuple{"CXX", "lockstep-g++", "c++"}}) {
    const std::string path = scratch + "/" + link;
    // A link, not a copy: the binary finds its role by its name.
    fs::create_symlink(own, path, trouble);
    if (trouble) return fail_sys("make " + path, trouble.value());
    variables.push_back(fmt::format("{}={}", name, path));
    variables.push_back(fmt::format("LOCKSTEP_WHEEL_{}={}", name, value(name, otherwise)));
  }
  const int gcc = plan.tools.gcc_version ? plan.tools.gcc_version->major : 0;
  variables.push_back(fmt::format("LOCKSTEP_WHEEL_LEVEL={}", plan.level));
  variables.push_back("LOCKSTEP_WHEEL_MARCH=" + march_of(plan.level, gcc));
  variables.push_back("LOCKSTEP_WHEEL_CHANGED=" + scratch + "/changed");
  return variables;
}

std::vector<std::string> wheel_command(const WheelPlan& plan, const std::string& source,
                                       const std::string& out) {
  // --no-build-isolation: compile against the installed torch, not against a fresh one.
  return {plan.python.python,     "-m",          "pip", "wheel", "-v", "--no-deps",
          "--no-build-isolation", "--wheel-dir", out,   source};
}

std::vector<std::string> pip_variables() {
  return {"PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_INPUT=1",       "PIP_PROGRESS_BAR=off",
          "GIT_TERMINAL_PROMPT=0",           "GIT_OPTIONAL_LOCKS=0", "PYTHONUNBUFFERED=1",
          "PYTHONDONTWRITEBYTECODE=1"};
}

}  // namespace lockstep::setup
