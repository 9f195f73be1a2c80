#include "container/fetch.h"

#include "base/fnv.h"
#include "base/log.h"
#include "base/text.h"
#include "container/attend.h"
#include "host/identity.h"
#include "io/file_lock.h"
#include "io/own_folders.h"
#include "io/replace_file.h"
#include "proc/signals.h"
#include "proc/spawn.h"
#include "proc/tool_output.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

namespace lockstep::container {
namespace {

// podman's first command after a boot may rebuild its storage.
constexpr proc::ToolLimits kAsking{.patience = std::chrono::minutes(2)};

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string whole_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A file that changes is another image.
std::string key_of(const Chosen& chosen, const Image& image) {
  std::string text = fmt::format("{}\n{}\n", chosen.runtime->name, image.place);
  struct stat facts {};
  if (image.place.starts_with('/') && stat(image.place.c_str(), &facts) == 0)
    text += fmt::format("{} {}.{}", facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec);
  return fmt::format("lockstep-{:016x}", fnv1a(text));
}

// podman and docker see the form by themselves.
Result<bool> is_docker_archive(const Image& image) {
  if (image.text.starts_with("docker-archive:")) return true;
  if (image.text.starts_with("oci-archive:")) return false;
  const Words ask = {"tar", "-tf", image.place, "manifest.json", "./manifest.json"};
  auto listed = proc::tool_output(ask, proc::own_environment(), kAsking);
  if (listed) return !listed->out.empty();  // tar fails if one of the names is missing
  Error error = std::move(listed.error()).within("look into " + printable(image.text));
  error.hint = "docker-archive:FILE and oci-archive:FILE need no tar";
  return Failure(std::move(error));
}

// known: of the request. A file without a record of ours is the rest of an interrupted fetch.
bool is_here(const Fetch& fetch, const std::string& known) {
  if (fetch.have.empty()) return !known.empty() && access(fetch.image.c_str(), F_OK) == 0;
  const auto said = proc::tool_output(fetch.have, proc::own_environment(), kAsking);
  if (!said || !said->exit.ok()) return false;
  return fetch.line.empty() ||
         ("\n" + said->out).find("\n" + fetch.line + "\n") != std::string::npos;
}

// Runs `get`. Its progress goes to stderr, its output to the file.
Status run_get(const Chosen& chosen, const Image& image, const Words& words,
               const std::string& output) {
  const io::Fd file(open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) return fail_sys("write " + output, errno);
  proc::SpawnSpec spec;
  spec.executable = chosen.program;
  spec.argv = words;
  spec.env = proc::own_environment();
  spec.stdout_fd = file.get();
  LOCKSTEP_TRY_ASSIGN(auto child, proc::spawn(spec));
  int stopped_by = 0;
  const proc::Exit exit = attend(child, [&](int signal) {
    if (!proc::is_stop_signal(signal)) return;
    child.signal_group(stopped_by == 0 ? SIGTERM : SIGKILL);
    stopped_by = signal;
  });
  if (stopped_by != 0)
    return Failure(Error{Errc::canceled,
                         fmt::format("stopped while {} fetched the image {}", chosen.runtime->name,
                                     printable(image.text)),
                         {},
                         stopped_by});
  if (exit.ok()) return {};
  return fail(Errc::unavailable,
              fmt::format("{} could not fetch the image {} (exit code {})", chosen.runtime->name,
                          printable(image.text), exit.shell_code()));
}

// Returns the folder that images are unpacked into, or a folder above it. nullopt: unknown.
std::optional<std::string> storage_of(const Chosen& chosen) {
  if (chosen.runtime->storage == nullptr) return std::nullopt;
  const auto said =
      proc::tool_output(chosen.runtime->storage(chosen.program), proc::own_environment(), kAsking);
  if (!said || !said->exit.ok()) return std::nullopt;
  std::string folder(strip(said->out));
  // The storage of a docker on another machine is not here.
  if (!folder.starts_with('/')) return std::nullopt;
  const bool is_made_at_first_use = chosen.runtime->name == "enroot";
  while (is_made_at_first_use && folder.size() > 1 && access(folder.c_str(), F_OK) != 0)
    folder.erase(std::max<std::size_t>(folder.rfind('/'), 1));
  return folder;
}

// Refuses a file that is larger than the room in the runtime's storage: unpacked it needs at least
// as much. Layers may be compressed, so a smaller file may not fit either.
Status check_room(const Chosen& chosen, const Image& image, const std::string& path) {
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) return {};
  const auto folder = storage_of(chosen);
  struct statvfs info {};
  if (!folder || statvfs(folder->c_str(), &info) != 0 || info.f_blocks == 0) return {};
  const std::string why = no_room(static_cast<std::uint64_t>(file.st_size),
                                  std::uint64_t{info.f_bavail} * info.f_frsize, *folder);
  if (why.empty()) return {};
  return fail(
      Errc::exhausted, fmt::format("no room for the image {}: {}", printable(image.text), why),
      fmt::format("make room there, or point {}'s storage elsewhere", chosen.runtime->name));
}

Result<std::string> fetched(const Chosen& chosen, const Image& image, const Fetch& fetch,
                            const std::string& output) {
  if (!fetch.import.empty()) LOCKSTEP_TRY(run_get(chosen, image, fetch.import, output));
  if (!fetch.file.empty()) LOCKSTEP_TRY(check_room(chosen, image, fetch.file));
  if (!fetch.drop.empty()) (void)proc::tool_output(fetch.drop, proc::own_environment(), kAsking);
  LOCKSTEP_TRY(run_get(chosen, image, fetch.get, output));
  if (!fetch.part.empty() && rename(fetch.part.c_str(), fetch.image.c_str()) != 0)
    return fail_sys("write " + fetch.image, errno);
  if (fetch.id.empty()) return fetch.image;
  Words ask = fetch.id;
  ask.push_back(loaded_name(whole_file(output)));
  LOCKSTEP_TRY_ASSIGN(const auto said, proc::tool_output(ask, proc::own_environment(), kAsking));
  std::string id(strip(said.out));
  if (said.exit.ok() && !id.empty()) return id;
  return fail(Errc::corrupt, fmt::format("{} has loaded {}, but names no image",
                                         chosen.runtime->name, printable(image.text)));
}

// Another job may fetch for long, so a signal ends the wait.
Result<io::FileLock> take_lock(const std::string& path, const Image& image) {
  LOCKSTEP_TRY_ASSIGN(io::FileLock lock, io::FileLock::open(path));
  bool told = false;
  while (true) {
    LOCKSTEP_TRY_ASSIGN(const bool taken, lock.try_lock());
    if (taken) return lock;
    if (!std::exchange(told, true))
      log::warning("waits for another job that fetches the image {}", printable(image.text));
    if (const int signal = proc::take_stop_signal(std::chrono::milliseconds(200)); signal != 0)
      return Failure(Error{
          Errc::canceled,
          fmt::format("stopped while another job fetched the image {}", printable(image.text)),
          {},
          signal});
  }
}

Result<std::string> folder_in_tmp() {
  LOCKSTEP_TRY_ASSIGN(const std::string own, io::own_folder_in("/tmp", 0));
  std::string folder = own + "/containers/";
  LOCKSTEP_TRY(io::make_folders(folder));
  return folder;
}

// Returns the folder for locks and records. On nodes whose cache cannot be written, as with a
// read-only home, the locks lie in this user's folder in /tmp.
Result<std::string> lock_folder(const std::string& usual) {
  if (io::make_folders(usual) && access(usual.c_str(), W_OK) == 0) return usual;
  return folder_in_tmp();
}

// Returns the folder for a file as large as the image, on a disk of this node: the cache may be in
// a home that all nodes share. check_room() looks at the disk of the runtime's storage.
Result<std::string> scratch_folder(const Chosen& chosen) {
  const auto storage = storage_of(chosen);
  if (storage && access(storage->c_str(), W_OK) == 0) return *storage + "/";
  return folder_in_tmp();
}

}  // namespace

Result<std::string> fetch_image(const Chosen& chosen, const Image& image) {
  const std::string usual = io::cache_folder() + "/containers/";
  const std::string key = key_of(chosen, image);
  FetchRequest request{.program = chosen.program,
                       .image = image,
                       .key = key + "." + host::node_name(),
                       .file = usual + key + ".sif",
                       .known = {}};
  std::string record = key;
  if (const Fetch only = chosen.runtime->fetch(request); only.get.empty()) {
    if (only.have.empty() || is_here(only, {})) return only.image;
    return fail(Errc::not_found,
                fmt::format("--container {}: no such file or folder, and {} has no such image",
                            printable(image.text), chosen.runtime->name),
                fmt::format("docker://{} fetches an image of a registry", printable(image.text)));
  } else if (only.part.empty()) {
    // The runtime's storage is the node's own, and the home may be on every node.
    record = request.key;
  }
  LOCKSTEP_TRY_ASSIGN(const std::string folder, lock_folder(usual));
  if (folder != usual) {
    request.known = first_line(usual + record);
    const Fetch before = chosen.runtime->fetch(request);
    if (is_here(before, request.known)) return before.image;
    request.file = folder + key + ".sif";
  }
  const std::string scratch_name = record + ".sqsh";
  record.insert(0, folder);
  LOCKSTEP_TRY_ASSIGN(const auto lock, take_lock(record + ".lock", image));
  request.known = first_line(record);
  Fetch fetch = chosen.runtime->fetch(request);
  if (is_here(fetch, request.known)) return fetch.image;
  if (image.kind == ImageKind::archive && !fetch.part.empty()) {
    LOCKSTEP_TRY_ASSIGN(request.docker_archive, is_docker_archive(image));
  }
  if (!fetch.import.empty()) {
    LOCKSTEP_TRY_ASSIGN(request.scratch, scratch_folder(chosen));
    request.scratch += scratch_name;
  }
  fetch = chosen.runtime->fetch(request);
  log::info("{} fetches the image {}", chosen.runtime->name, printable(image.text));
  const std::string output = record + ".out";
  // The record stands for a whole fetch. The scratch file may be left from a killed fetch, and
  // enroot overwrites no file.
  for (const std::string& path : {record, request.scratch})
    (void)unlink(path.c_str());
  auto name = fetched(chosen, image, fetch, output);
  for (const std::string& path : {output, request.scratch})
    (void)unlink(path.c_str());
  if (name) LOCKSTEP_TRY(io::replace_file(record, *name + "\n"));
  return name;
}

Result<std::vector<std::string>> image_variables(const Chosen& chosen, const std::string& image) {
  std::vector<std::string> names;
  if (chosen.runtime->variables == nullptr) return names;
  LOCKSTEP_TRY_ASSIGN(const auto said,
                      proc::tool_output(chosen.runtime->variables(chosen.program, image),
                                        proc::own_environment(), kAsking));
  if (!said.exit.ok())
    return fail(Errc::unavailable,
                fmt::format("{} does not tell the variables of {}: {}", chosen.runtime->name,
                            printable(image), printable(strip(said.err))));
  for (const std::string& line : split(said.out, '\n'))
    if (const std::size_t end = line.find('='); end != line.npos)
      names.push_back(line.substr(0, end));
  return names;
}

}  // namespace lockstep::container
