#include "container/enter.h"

#include "base/environment.h"
#include "base/id.h"
#include "base/log.h"
#include "base/text.h"
#include "container/attend.h"
#include "container/fetch.h"
#include "container/inside.h"
#include "io/own_folders.h"
#include "io/replace_file.h"
#include "proc/find_in_path.h"
#include "proc/process_tree.h"
#include "proc/signals.h"
#include "proc/spawn.h"
#include "proc/tool_output.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

namespace lockstep::container {
namespace {

namespace fs = std::filesystem;

PathKind ask_path(const std::string& path) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0) return PathKind::missing;
  if (S_ISDIR(facts.st_mode)) return PathKind::folder;
  return S_ISREG(facts.st_mode) ? PathKind::file : PathKind::other;
}

bool exists(const std::string& path) {
  return ask_path(path) != PathKind::missing;
}

std::vector<Entry> list_folder(const std::string& folder) {
  std::vector<Entry> entries;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    Entry entry{.name = at->path().filename(), .folder = false, .link = {}};
    std::error_code error;
    if (at->is_symlink(error)) {
      entry.link = fs::read_symlink(at->path(), error);
    } else {
      entry.folder = at->is_directory(error);
    }
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

std::string temporary_folder() {
  const std::string folder = env_text("TMPDIR");
  return folder.starts_with('/') && exists(folder) ? folder : "/tmp";
}

// The folders that Lockstep's own files are in, on both sides.
std::vector<std::string> own_folders(const Options& options, const std::string& working) {
  std::vector<std::string> folders = options.folders;
  folders.push_back(io::state_folder());
  for (const std::string& folder : folders)
    (void)io::make_folders(folder);
  folders.insert(folders.end(), {working, "/tmp", temporary_folder(), env_text("XDG_RUNTIME_DIR")});
  std::erase_if(folders, [](const std::string& folder) { return !exists(folder); });
  return folders;
}

bool holds_nvidia(const char* folder) {
  const std::vector<Entry> entries = list_folder(folder);
  return std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return entry.name.find("nvidia") != std::string::npos;
  });
}

Devices devices() {
  return {.nvidia = exists("/dev/nvidiactl"),
          .nvidia_cdi = holds_nvidia("/etc/cdi") || holds_nvidia("/var/run/cdi"),
          .infiniband = exists("/dev/infiniband")};
}

// The environment of the runtime: the job's, and what inside() reads.
std::vector<std::string> environment(const Plan& plan, const Chosen& chosen,
                                     const std::string& tether_folder) {
  std::vector<std::string> variables;
  const auto is_named = [&plan](std::string_view name) {
    return std::find(plan.named.begin(), plan.named.end(), name) != plan.named.end();
  };
  const bool by_lines = chosen.runtime->name == "enroot";
  const std::string_view prefix = chosen.runtime->prefix;
  const std::string apptainer(prefix.substr(0, prefix.find("ENV_")));
  // Of two variables with the same name, apptainer takes the first.
  const auto is_replaced = [&](std::string_view name) {
    if (prefix.empty()) return false;
    if (name.starts_with(prefix)) return is_named(name.substr(prefix.size()));
    return name == apptainer + "_HOME" || (name == apptainer + "_NO_EVAL" && !plan.named.empty());
  };
  for (std::string& entry : proc::own_environment()) {
    const std::string name = entry.substr(0, entry.find('='));
    if ((stays_outside(name) && !is_named(name)) || is_replaced(name)) continue;
    // enroot writes variables into a file, a line each, so that a second line would be another one.
    if (by_lines && entry.find('\n') != entry.npos) continue;
    if (!prefix.empty() && name != "HOME" && is_named(name))
      variables.push_back(std::string(prefix) + entry);
    variables.push_back(std::move(entry));
  }
  const auto add = [&variables](std::string_view name, std::string_view value) {
    variables.push_back(fmt::format("{}={}", name, value));
  };
  if (!prefix.empty()) {
    // Without these, HOME is the account's, and what stands in $(...) in a value is run.
    add(apptainer + "_HOME", env_text("HOME"));
    if (!plan.named.empty()) add(apptainer + "_NO_EVAL", "1");
  }
  add(kTetherVariable, fmt::format("{}/fifo", kTetherInside));
  add(kTetherFolderVariable, tether_folder);
  const mode_t mask = umask(0);  // there is no other way to ask
  umask(mask);
  add(kMaskVariable, fmt::format("{:o}", mask));
  add(kRuntimeVariable, fmt::format("{};{}", chosen.runtime->name, chosen.why));
  add(kFolderVariable, plan.folder);
  return variables;
}

// Refuses paths and variables that enroot would take for something else.
Status check_enroot(const Plan& plan, const Chosen& chosen) {
  if (chosen.runtime->name != "enroot") return {};
  for (const Mount& mount : plan.mounts)
    for (const std::string* path : {&mount.from, &mount.to})
      if (path->find_first_of(" \t") != std::string::npos)
        return fail(Errc::invalid_input,
                    fmt::format("enroot cannot mount {}: the path has a space", printable(*path)));
  for (const std::string& name : plan.named)
    if (env_text(name).find('\n') != std::string::npos)
      return fail(Errc::invalid_input,
                  fmt::format("enroot cannot pass {}: the value has several lines", name));
  return {};
}

Result<Request> request_of(const Plan& plan, const Chosen& chosen, const Words& words,
                           const std::vector<std::string>& variables) {
  Request request{.program = chosen.program,
                  .image = {},
                  .name = "lockstep-" + random_uuid4().substr(0, 13),
                  .mounts = plan.mounts,
                  .named = plan.named,
                  .variables = {},
                  .of_image = {},
                  .devices = devices(),
                  .user = geteuid(),
                  .group = getegid(),
                  .binary = {},
                  .command = words,
                  .list = list_folder};
  LOCKSTEP_TRY(check_enroot(plan, chosen));
  LOCKSTEP_TRY_ASSIGN(request.binary, proc::own_executable());
  LOCKSTEP_TRY_ASSIGN(request.image, fetch_image(chosen, plan.image));
  LOCKSTEP_TRY_ASSIGN(request.of_image, image_variables(chosen, request.image));
  request.command.front().insert(0, kFolderInside);
  for (const std::string& entry : variables)
    request.variables.push_back(entry.substr(0, entry.find('=')));
  return request;
}

// Copies our binary if the file has no name any more: the kernel does not mount such a file. A
// Slurm job removes the name of a binary that was carried to the node for one launch.
Status copy_unlinked(std::string& binary, const std::string& copy) {
  if (exists(binary)) return {};
  std::error_code failed;
  if (!fs::copy_file("/proc/self/exe", copy, failed))
    return fail_sys("write " + copy, failed.value());
  binary = copy;
  return {};
}

// Makes the folder with the FIFO, and beside the FIFO the files that the runtime needs.
Status make_folder(const std::string& folder, const std::string& tether, const Chosen& chosen,
                   Request& request) {
  if (mkdir(folder.c_str(), 0700) != 0) return fail_sys("make " + folder, errno);
  if (mkfifo(tether.c_str(), 0600) != 0) return fail_sys("make " + tether, errno);
  LOCKSTEP_TRY(copy_unlinked(request.binary, fmt::format("{}/{}", folder, kBinaryCopy)));
  if (chosen.runtime->name != "enroot") return {};
  request.script = fmt::format("{}/{}", folder, kScriptName);
  return io::replace_file(request.script, std::string(kScript));
}

// Removes what is left of the folder of the FIFO. Returns whether the process inside has run.
bool clean(const std::string& folder, const std::string& tether) {
  const bool ran = unlink(tether.c_str()) != 0;  // the process inside has removed the name
  for (const std::string_view name : {kBinaryCopy, kScriptName})
    (void)unlink(fmt::format("{}/{}", folder, name).c_str());
  (void)rmdir(folder.c_str());
  return ran;
}

// Takes the recorded code: `docker run` gives 0 for a job that failed if podman 4.3 serves the API.
// Without a record, a failure of the runtime counts, but not its success.
Result<int> code_of_job(int fifo, const Chosen& chosen, const proc::Exit& exit) {
  if (const auto code = recorded_code(fifo)) return *code;
  if (exit.signal != 0)
    log::error("{} was killed by {}, and the job with it", chosen.runtime->name,
               proc::signal_name(exit.signal));
  if (!exit.ok()) return exit.shell_code();
  return fail(Errc::unavailable,
              fmt::format("{} ended with exit code 0, but the process in the container was killed "
                          "before it recorded how the job ended",
                          chosen.runtime->name));
}

Failure not_started(const Plan& plan, const Chosen& chosen, const proc::Exit& exit) {
  return fail(Errc::denied,
              fmt::format("{} started no container of the image {} (exit code {})",
                          chosen.runtime->name, printable(plan.image.text), exit.shell_code()));
}

}  // namespace

Result<Plan> make_plan(const Options& options) {
  std::error_code failed;
  const std::string working = fs::current_path(failed);
  if (failed) return fail_sys("find the current folder", failed.value());
  Plan plan;
  LOCKSTEP_TRY_ASSIGN(plan.image, read_image(options.image, working, ask_path));
  std::vector<Mount> wanted;
  if (!options.mounts.empty()) {
    LOCKSTEP_TRY_ASSIGN(wanted, read_mounts(options.mounts, working));
    for (const Mount& mount : wanted)
      if (!exists(mount.from))
        return fail(Errc::not_found, fmt::format("--container-mounts: {}: no such file or folder",
                                                 printable(mount.from)));
  }
  LOCKSTEP_TRY_ASSIGN(plan.mounts, all_mounts(wanted, own_folders(options, working)));
  plan.folder = options.workdir.empty() ? working : options.workdir;
  if (!plan.folder.starts_with('/'))
    return fail(Errc::invalid_input,
                fmt::format("--container-workdir must be an absolute path, got {}",
                            printable(plan.folder)));
  if (options.variables.empty()) return plan;
  for (std::string& name : split(options.variables, ',')) {
    if (!is_variable_name(name))
      return fail(Errc::invalid_input,
                  fmt::format("--container-env must be a list of names of variables, got '{}'",
                              printable(name.substr(0, name.find('=')))),
                  "as --container-env HF_TOKEN,PATH; the values are those of this environment");
    plan.named.push_back(std::move(name));
  }
  return plan;
}

Result<Chosen> choose_here(const Plan& plan) {
  return choose_runtime(plan.image, [](std::string_view program) {
    return proc::find_in_path(std::string(program)).value_or(std::string());
  });
}

Status check_here(const std::string& image, const std::string& folder, const std::string& path,
                  bool may_come) {
  const auto read = read_image(image, folder, ask_path);
  if (!read && may_come && read.error().code == Errc::not_found) return {};
  if (!read) return Failure(read.error());
  const auto chosen = choose_runtime(*read, [&path](std::string_view program) {
    return proc::find_executable(std::string(program), path).value_or(std::string());
  });
  return chosen ? Status() : Status(Failure(chosen.error()));
}

std::string choice_on_nodes(const std::string& image, const std::string& folder) {
  const auto read = read_image(image, folder, ask_path);
  if (!read)
    return fmt::format("{}; each node looks for the image again, and chooses a runtime by its kind",
                       printable(read.error().message));
  return fmt::format("{} is {}, and each node runs it by {}", printable(image),
                     kind_words(read->kind), join(programs_for(*read), ", or else "));
}

Result<int> enter(const Plan& plan, const Chosen& chosen, const Words& words) {
  const std::string folder =
      fmt::format("{}/lockstep-container-{}", temporary_folder(), random_uuid4());
  const std::string tether = folder + "/fifo";
  const std::vector<std::string> variables = environment(plan, chosen, folder);
  LOCKSTEP_TRY_ASSIGN(Request request, request_of(plan, chosen, words, variables));
  request.mounts.push_back({.from = folder, .to = std::string(kTetherInside)});
  if (const Status made = make_folder(folder, tether, chosen, request); !made) {
    (void)clean(folder, tether);
    return Failure(made.error());
  }
  // This process is a writer from now until its end, so the reader inside sees the end.
  const io::Fd fifo(open(tether.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  proc::SpawnSpec spec;
  spec.executable = chosen.program;
  spec.argv = chosen.runtime->start(request);
  spec.env = variables;
  spec.die_with_parent = false;  // podman must live to clean up
  // `sleep 9 & exec lockstep run ...` hands us children that do not belong to the job.
  const std::vector<pid_t> inherited = proc::children_of(getpid());
  if (chosen.runtime->mounts_by_process) proc::become_subreaper();
  auto child = fifo ? proc::spawn(spec) : Result<proc::Child>(fail_sys("open " + tether, errno));
  if (!child) {
    (void)clean(folder, tether);
    return Failure(child.error());
  }
  wipe_secrets();
  int stopped_by = 0;
  const proc::Exit exit = attend(*child, [&](int signal) {
    const auto byte = static_cast<unsigned char>(signal);
    (void)!write(fifo.get(), &byte, 1);
    // Nothing runs inside yet.
    if (!proc::is_stop_signal(signal) || !exists(tether)) return;
    stopped_by = signal;
    child->signal_group(SIGKILL);
  });
  // A killed runtime leaves the job and the process that mounts the image. A runtime that has ended
  // by itself leaves nothing.
  if (chosen.runtime->mounts_by_process)
    (void)proc::sweep_descendants({inherited.begin(), inherited.end()}, kSweepLimit);
  if (clean(folder, tether)) return code_of_job(fifo.get(), chosen, exit);
  if (stopped_by != 0)
    return Failure(Error{Errc::canceled, "stopped before the container ran", {}, stopped_by});
  return not_started(plan, chosen, exit);
}

}  // namespace lockstep::container
