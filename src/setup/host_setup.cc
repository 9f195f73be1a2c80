#include "setup/host_setup.h"

#include "base/environment.h"
#include "base/exit_codes.h"
#include "base/text.h"
#include "io/own_folders.h"
#include "io/replace_file.h"
#include "setup/environment_maker.h"
#include "setup/inputs.h"
#include "setup/overlay.h"
#include "setup/places.h"
#include "setup/step_log.h"
#include "setup/toolchain_probe.h"

#include <fmt/core.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace lockstep::setup {
namespace {

namespace fs = std::filesystem;
using Kind = Spec::Kind;
using Clock = std::chrono::steady_clock;

// An environment named once stays the project's. Leaving --system out of the next install changes
// nothing, so the hint must name a flag.
constexpr const char* kOwnInstead =
    "give --venv auto, the project's own environment, which sees the host's PyTorch";
constexpr std::size_t kMostShown = 500;
constexpr std::size_t kCommitDigits = 40;

void say(std::string_view line) {
  // stdout is for the answer alone, which the client parses.
  std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
}

bool is_folder(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool is_commit(std::string_view text) {
  return text.size() == kCommitDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

class HostSetup {
 public:
  HostSetup(const SetupRequest& request, const std::vector<std::string>& wheels)
      : request_(request), wheels_(wheels) {}

  SetupAnswer run();

 private:
  Attempt<void> carry_out();
  Attempt<void> prepare();
  Attempt<void> open_log();
  Attempt<void> step(std::size_t index);
  Attempt<void> carry_out(const Spec& spec, const Resolved& resolved, const std::string& digest,
                          const std::string& name);
  Attempt<Resolved> resolve(const Spec& spec);
  Attempt<std::string> commit_of(const Spec& spec);
  Attempt<void> add_local(const Spec& spec, const std::string& path);
  bool goes_into_overlay(const Spec& spec) const;
  Attempt<bool> add_overlay(const std::string& wheel);
  Attempt<std::vector<Argv>> plan(const Spec& spec, const Resolved& resolved);
  Attempt<void> run_commands(const std::vector<Argv>& commands);
  std::vector<std::string> tool_environment() const;
  std::string place() const;
  std::string folder_for_tools() const { return is_folder(folder_) ? folder_ : "/"; }
  Status keep_log() const;

  const SetupRequest& request_;
  const std::vector<std::string>& wheels_;
  std::vector<Spec> specs_;
  std::vector<std::string> names_;  // names of the steps in the log
  std::string folder_;              // the project's folder
  std::string uv_;
  std::size_t next_wheel_ = 0;
  std::optional<EnvironmentMaker> maker_;
  std::optional<EnvironmentFiles> files_;
  io::Fd lock_;
  std::optional<Interpreter> interpreter_;
  StepLog log_;
  SetupAnswer answer_;
};

// Send the answer after a failure as well: it lists the finished steps.
SetupAnswer HostSetup::run() {
  const auto done = carry_out();
  if (!done) {
    answer_.code = done.error().code;
    answer_.error = done.error().error.message;
    answer_.hint = done.error().error.hint;
    for (const std::string& line : done.error().tail)
      answer_.tail.push_back(printable(line, kMostShown));
  }
  return std::move(answer_);
}

tl::unexpected<Trouble> as_trouble(const Error& error, int code = 1) {
  return tl::make_unexpected(Trouble{error, code, {}});
}

Attempt<void> HostSetup::carry_out() {
  auto specs = parse_specs(request_.specs);
  if (!specs) return as_trouble(specs.error(), 2);
  specs_ = std::move(*specs);
  // A relative folder is below the home, as over ssh.
  const std::string& given = request_.folder;
  folder_ = plain_folder(given.starts_with('/') ? given : io::home_folder() + "/" + given);
  // Several projects may share an environment, so a step's name includes the project's folder.
  for (const Spec& each : specs_)
    names_.push_back(folder_ + "\n" + each.text);
  if (auto prepared = prepare(); !prepared) return prepared;
  for (std::size_t i = 0; i < specs_.size(); ++i)
    if (auto done = step(i); !done) return done;
  // Record the environment last: a failed install must not lead commands into a half-made one.
  if (auto kept = keep_environment(folder_, answer_.environment); !kept)
    return as_trouble(kept.error());
  return {};
}

// A request of only local: specs and overlays needs no environment. The recorded one stays.
Attempt<void> HostSetup::prepare() {
  if (request_.use_uv) uv_ = find_program("uv", {".local/bin/uv", ".cargo/bin/uv"});
  maker_.emplace(request_, specs_, folder_, uv_, say);
  const bool any = std::any_of(specs_.begin(), specs_.end(), [this](const Spec& each) {
    return each.kind != Kind::local && !goes_into_overlay(each);
  });
  if (!any && request_.choice == SetupRequest::Choice::project) {
    const auto kept = find_environment(folder_);
    if (!kept) return as_trouble(kept.error());
    answer_.environment = kept->value_or(Environment{});
    return {};
  }
  auto chosen = maker_->choose();
  if (!chosen) return tl::make_unexpected(chosen.error());
  answer_.environment = *chosen;
  files_.emplace(place());
  if (auto made = files_->make(); !made) return as_trouble(made.error());
  // Held until this object is destroyed: two installs must not change one environment at a time.
  auto held = hold(*files_, place(), say);
  if (!held) return as_trouble(held.error());
  lock_ = std::move(*held);
  if (auto made = maker_->make(answer_.environment, *files_); !made) return made;
  return open_log();
}

std::string HostSetup::place() const {
  const Environment& environment = answer_.environment;
  return environment.prefix.empty() ? environment.python : environment.prefix;
}

Attempt<void> HostSetup::open_log() {
  const std::string& python = answer_.environment.python;
  // A new conda environment has no Python before its first step.
  if (access(python.c_str(), X_OK) == 0) {
    auto asked = ask_interpreter(python, files_->interpreter());
    if (!asked) return as_trouble(asked.error());
    interpreter_ = std::move(*asked);
  }
  // A damaged log only costs time: all steps are done again.
  log_ = StepLog::read(io::read_file(files_->log(), 64UL << 20).value_or(""));
  log_.open(identity_of(python),
            interpreter_ ? state_of_packages(*interpreter_, answer_.environment.prefix) : "");
  return {};
}

Status HostSetup::keep_log() const {
  return io::keep_record(files_->log(), log_.print());
}

Attempt<void> HostSetup::step(std::size_t index) {
  const Spec& spec = specs_[index];
  const auto began = Clock::now();
  const std::string label =
      fmt::format("step {} of {}: {}", index + 1, specs_.size(), printable(spec.text));
  StepAnswer& told = answer_.steps.emplace_back(StepAnswer{spec.text, StepAnswer::State::failed});
  const auto fails = [&](const Trouble& why) {
    Trouble named = why;
    named.error = std::move(named.error).within(label);
    return tl::make_unexpected(std::move(named));
  };
  const auto resolved = resolve(spec);
  if (!resolved) return fails(resolved.error());
  if (spec.kind == Kind::local) {
    if (auto added = add_local(spec, resolved->path); !added) return fails(added.error());
    told.state = StepAnswer::State::done;
    return {};
  }
  if (goes_into_overlay(spec)) {
    const auto made = add_overlay(resolved->path);
    if (!made) return fails(made.error());
    told.state = *made ? StepAnswer::State::done : StepAnswer::State::unchanged;
    told.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    return {};
  }
  // The digest needs the commit, because a branch is only a moving name.
  const auto digest = digest_of_inputs(spec, resolved->path, folder_, resolved->commit);
  if (!digest) return fails({digest.error()});
  if (!request_.force && log_.holds(names_, index, *digest)) {
    say(label + ": unchanged");
    told.state = StepAnswer::State::unchanged;
    return {};
  }
  say(label);
  if (auto done = carry_out(spec, *resolved, *digest, names_[index]); !done)
    return fails(done.error());
  told.state = StepAnswer::State::done;
  told.seconds = std::chrono::duration<double>(Clock::now() - began).count();
  return {};
}

Attempt<void> HostSetup::carry_out(const Spec& spec, const Resolved& resolved,
                                   const std::string& digest, const std::string& name) {
  // Log the step before any change, so that a killed install does not count as done.
  log_.starting(name);
  if (auto kept = keep_log(); !kept) return as_trouble(kept.error());
  Attempt<void> done;
  auto commands = plan(spec, resolved);
  if (commands) {
    done = run_commands(*commands);
  } else {
    done = tl::make_unexpected(commands.error());
  }
  // A conda step may have replaced the Python, and with it the folders of packages.
  if (spec.kind == Kind::conda && done) {
    if (auto opened = open_log(); !opened) return opened;
  }
  // A failed step may have changed the environment, too.
  log_.finished(name, done ? digest : "",
                interpreter_ ? state_of_packages(*interpreter_, answer_.environment.prefix) : "");
  if (auto kept = keep_log(); !kept && done) return as_trouble(kept.error());
  return done;
}

Attempt<Resolved> HostSetup::resolve(const Spec& spec) {
  Resolved resolved;
  if (spec.kind == Kind::wheel) {
    // Wheels arrive in the order of their specs.
    if (next_wheel_ >= wheels_.size()) return trouble(2, "the wheel was not sent");
    resolved.path = wheels_[next_wheel_++];
  } else if (spec.kind == Kind::git) {
    auto commit = commit_of(spec);
    if (!commit) return tl::make_unexpected(commit.error());
    resolved.commit = std::move(*commit);
  } else if (!spec.subject.empty()) {
    std::string path = spec.subject;
    if (path.starts_with('~')) path = io::home_folder() + path.substr(1);
    if (!path.starts_with('/')) path = folder_ + "/" + path;
    path = fs::path(path).lexically_normal().string();
    while (path.size() > 1 && path.ends_with('/'))
      path.pop_back();
    if (spec.kind == Kind::requirements && is_folder(path)) path += "/requirements.txt";
    const bool folder = spec.kind == Kind::tree || spec.kind == Kind::local;
    const bool there = folder ? is_folder(path) : access(path.c_str(), R_OK) == 0;
    // pip also installs archives by path.
    const bool archive = spec.kind == Kind::tree && access(path.c_str(), R_OK) == 0;
    if (!there && !archive)
      return trouble(
          1, fmt::format("there is no {} {} on this host", folder ? "folder" : "file", path),
          is_folder(folder_) ? "" : "lockstep sync sends the project");
    resolved.path = std::move(path);
  }
  // uv needs to know about files of this host, see install_plan().
  auto from_here = installs_from_here(spec, resolved.path, folder_);
  if (!from_here) return as_trouble(from_here.error());
  resolved.from_here = *from_here;
  return resolved;
}

// Returns the ref's present commit: a branch moves, and then the step must be repeated. A ref
// unknown to the repository is passed on as a short commit id.
Attempt<std::string> HostSetup::commit_of(const Spec& spec) {
  if (is_commit(spec.ref)) return spec.ref;
  const std::string git = find_program("git");
  if (git.empty()) return trouble(kExitNotFound, "git is not on this host", "install git there");
  const std::string ref = spec.ref.empty() ? "HEAD" : spec.ref;
  std::string commit;
  // GIT_TERMINAL_PROMPT=0 makes git fail instead of waiting for a password.
  const auto ended = run_tool(
      {{git, "ls-remote", "--", spec.subject, ref, ref + "^{}"}, {"GIT_TERMINAL_PROMPT=0"}},
      [&](std::string_view line) {
        const std::size_t tab = line.find('\t');
        if (tab == std::string_view::npos || !is_commit(line.substr(0, tab))) return;
        // For an annotated tag git lists the tag object first, then the commit as "TAG^{}".
        if (commit.empty() || line.ends_with("^{}")) commit = line.substr(0, tab);
      });
  if (!ended) return as_trouble(ended.error());
  if (ended->code != 0)
    return tl::make_unexpected(
        Trouble{{Errc::unavailable,
                 "git can't ask the repository: " + printable(telling_line(ended->tail)),
                 {},
                 0},
                ended->code,
                ended->tail});
  return commit.empty() ? spec.ref : commit;
}

Attempt<void> HostSetup::add_local(const Spec& spec, const std::string& path) {
  auto& local = answer_.environment.local;
  if (path.find(':') != std::string::npos)
    return trouble(1, path + " has a ':' in the name, which divides the folders of PYTHONPATH");
  if (std::find(local.begin(), local.end(), path) == local.end()) local.push_back(path);
  say(fmt::format("{}: {} is on the path", spec.text, path));
  return {};
}

bool HostSetup::goes_into_overlay(const Spec& spec) const {
  return request_.overlay && spec.kind == Kind::wheel;
}

// Replaces an earlier overlay of the same package. Returns false if this overlay was there before.
Attempt<bool> HostSetup::add_overlay(const std::string& wheel) {
  Environment& environment = answer_.environment;
  OverlayRequest request{.wheel = wheel,
                         .sha256 = request_.wheels.at(next_wheel_ - 1).sha256,
                         .python = environment.python,
                         .local = environment.local};
  // Without an environment, check the overlay with the Python that commands will find.
  if (request.python.empty()) {
    auto python = choose_python(request_.python.empty() ? "python3" : request_.python);
    if (!python) return as_trouble(python.error(), kExitNotFound);
    request.python = std::move(*python);
  }
  const auto made = make_overlay(request, say);
  if (!made) return as_trouble(made.error());
  std::erase_if(environment.local, [&](const std::string& each) {
    return each.starts_with(overlays_folder() + "/") && same_package(base_name(each), made->key);
  });
  // The newest overlay comes first on the path.
  environment.local.insert(environment.local.begin(), made->path);
  say(fmt::format("{}: imported from {}", join(made->imported, ", "), made->path));
  return made->made;
}

Attempt<std::vector<Argv>> HostSetup::plan(const Spec& spec, const Resolved& resolved) {
  const Environment& environment = answer_.environment;
  if (spec.kind == Kind::conda) {
    const bool exists = is_folder(environment.prefix + "/conda-meta");
    // An interrupted `conda env create` leaves a folder without conda-meta, which would block a new
    // one.
    std::error_code failed;
    if (!exists && environment.prefix.starts_with(io::data_folder() + "/conda/"))
      fs::remove_all(environment.prefix, failed);
    return std::vector<Argv>{
        conda_plan(maker_->conda(), {"-p", environment.prefix, exists}, resolved.path, spec.args)};
  }
  if (!interpreter_)
    return trouble(kExitNotFound, fmt::format("there is no Python in {}", place()),
                   "name python in the conda file");
  if (uv_.empty() && interpreter_->pip.empty())
    return trouble(1, fmt::format("{} has no pip", interpreter_->python),
                   environment.kind == Environment::Kind::system
                       ? fmt::format("install pip there (as root: apt install python3-pip), or {}",
                                     kOwnInstead)
                       : std::string("add pip to the environment, or install uv there"));
  return install_plan(spec, resolved, {interpreter_->python, interpreter_->pip, uv_});
}

Attempt<void> HostSetup::run_commands(const std::vector<Argv>& commands) {
  std::error_code failed;
  const std::string build = files_->build();
  fs::remove_all(build, failed);
  // setuptools keeps built files in the project's tree and reuses stale ones by their times. With
  // build_base they go to a fresh folder.
  if (auto made = io::make_folders(build + "/out"); !made) return as_trouble(made.error());
  // DIST_EXTRA_CONFIG names this file, and setuptools reads it in addition to the project's
  // setup.cfg.
  if (auto written =
          io::write_file(build + "/setup.cfg", "[build]\nbuild_base = " + build + "/out\n");
      !written)
    return as_trouble(written.error());
  Attempt<void> done;
  for (const Argv& argv : commands) {
    const auto ended = run_tool({argv, tool_environment(), folder_for_tools()},
                                [](std::string_view line) { say("  " + std::string(line)); });
    if (!ended) {
      done = as_trouble(ended.error());
    } else if (ended->code != 0) {
      const std::string line = telling_line(ended->tail);
      // PEP 668: Debian and others forbid pip to change the system's Python.
      const bool managed = line.find("externally-managed") != std::string::npos;
      done = tl::make_unexpected(Trouble{
          {Errc::unavailable, fmt::format("code {}: {}", ended->code, printable(line)),
           managed ? fmt::format("{}; or add --break-system-packages to the spec", kOwnInstead)
                   : "",
           0},
          ended->code,
          ended->tail});
    }
    if (!done) break;
  }
  fs::remove_all(build, failed);
  return done;
}

std::vector<std::string> HostSetup::tool_environment() const {
  // No prompts and no progress bars: no user is at a terminal here.
  std::vector<std::string> env = {"PIP_DISABLE_PIP_VERSION_CHECK=1",
                                  "PIP_NO_INPUT=1",
                                  "PIP_PROGRESS_BAR=off",
                                  "UV_NO_PROGRESS=1",
                                  "GIT_TERMINAL_PROMPT=0",
                                  "PYTHONUNBUFFERED=1",
                                  "DIST_EXTRA_CONFIG=" + files_->build() + "/setup.cfg"};
  Environment environment = answer_.environment;
  environment.local.clear();  // a folder on PYTHONPATH could shadow the modules of pip itself
  std::vector<std::string> own = {"PATH=" + env_text("PATH")};
  for (std::string& each : variables_of(environment, own))
    env.push_back(std::move(each));
  return env;
}

}  // namespace

SetupAnswer set_up(const SetupRequest& request, const std::vector<std::string>& wheels) {
  return HostSetup(request, wheels).run();
}

}  // namespace lockstep::setup
