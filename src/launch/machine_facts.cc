#include "launch/machine_facts.h"

#include "base/environment.h"
#include "base/id.h"
#include "base/text.h"
#include "host/cpus.h"
#include "host/gpus.h"
#include "io/fd.h"
#include "proc/helper_output.h"
#include "proc/spawn.h"
#include "proc/tool_output.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace lockstep::launch {
namespace {

FileKind file_kind(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return FileKind::missing;
  if (S_ISREG(found.st_mode)) return FileKind::file;
  return S_ISDIR(found.st_mode) ? FileKind::directory : FileKind::other;
}

Result<SecretFile> secret_file(const std::string& path, std::size_t limit) {
  const io::Fd file(open(
      path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // O_NONBLOCK: opening a fifo would block
  if (!file) return fail_sys(path, errno);
  struct stat about {};
  // Look at the open file: the path may name another file by now.
  if (fstat(file.get(), &about) != 0) return fail_sys(path, errno);
  if (!S_ISREG(about.st_mode)) return fail(Errc::invalid_input, path + " is not a plain file");
  SecretFile found{std::string(limit, '\0'), about.st_mode & 07777U};
  std::size_t size = 0;
  while (size < limit) {
    const ssize_t got = read(file.get(), found.bytes.data() + size, limit - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_sys(path, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  found.bytes.resize(size);
  return found;
}

// Checks the interpreter of a script. If the interpreter is missing, execve() reports the script
// itself as missing, which misleads users.
Status check_interpreter(const std::string& path) {
  const auto head = io::read_file(path, 256);
  if (!head || !head->starts_with("#!")) return {};
  const std::string line = split(head->substr(2), '\n').front();
  const std::string interpreter = split(strip(line), ' ').front();
  if (interpreter.empty() || access(interpreter.c_str(), X_OK) == 0) return {};
  return fail_sys(fmt::format("{}: its interpreter {}", path, printable(interpreter)), errno);
}

Result<std::string> find_program(const std::string& name) {
  const std::string path = env_text("PATH", "/bin:/usr/bin");
  auto in_path = proc::find_executable(name, path);
  const std::string here = "./" + name;
  if (!in_path && access(here.c_str(), F_OK) == 0)  // as in a shell, this folder is not searched
    in_path.error().hint = "it is in this folder: write " + here;
  LOCKSTEP_TRY_ASSIGN(std::string found, std::move(in_path));
  struct stat about {};
  if (stat(found.c_str(), &about) != 0) return fail_sys(found, errno);
  if (S_ISDIR(about.st_mode)) return fail_sys(found, EISDIR);
  if (access(found.c_str(), X_OK) != 0) return fail_sys(found, errno);
  LOCKSTEP_TRY(check_interpreter(found));
  return found;
}

std::vector<std::string> program_folders() {
  std::vector<std::string> folders;
  std::error_code error;
  const auto add = [&folders, &error](const std::filesystem::path& program) {
    if (error || program.empty()) return;
    const auto absolute = std::filesystem::absolute(program, error).lexically_normal();
    if (!error) folders.push_back(absolute.parent_path());
  };
  if (const auto called = find_program(program_invocation_name)) add(*called);
  // A link in another folder may have started this program, so both folders count.
  add(std::filesystem::read_symlink("/proc/self/exe", error));
  return folders;
}

// Asks Python for the devices of an extension, as torchrun does: torch knows at most one such kind
// ("privateuse1"), and its module torch.KIND knows their number. Python must not import from the
// current folder, which may belong to another user. Without a kind, torch is imported only if an
// extension has registered itself, because the import takes seconds.
std::optional<int> custom_devices(const std::string& python, const std::string& kind) {
  constexpr const char* kQuestion = R"(import sys
sys.path[:] = [folder for folder in sys.path if folder]
kind = sys.argv[1]
if not kind:
    from importlib.metadata import entry_points
    if not entry_points(group='torch.backends'): sys.exit()
import torch
name = torch._C._get_privateuse1_backend_name()
if kind in ('', name):
    module = getattr(torch, name, None)
    print("lockstep:%d" % (module.device_count() if module and module.is_available() else 0)))";
  constexpr std::string_view kMarker = "lockstep:";
  // A first import of torch from a busy network file system takes long.
  const auto said = proc::tool_output({python, "-c", kQuestion, kind}, proc::own_environment(),
                                      {.patience = std::chrono::minutes(1)});
  if (!said || !said->exit.ok()) return std::nullopt;
  for (const std::string& line : split(said->out, '\n'))
    if (line.starts_with(kMarker))
      if (const auto count = parse_int(line.substr(kMarker.size())))
        return static_cast<int>(*count);
  return std::nullopt;
}

}  // namespace

Facts machine_facts() {
  Facts facts;
  facts.env = env_variable;
  facts.cpu_count = [] {
    const auto cpus = host::allowed_cpus();
    return cpus ? static_cast<int>(cpus->size()) : 1;
  };
  facts.gpu_count = [] {
    return static_cast<int>(
        host::visible_cuda_gpus("", host::gpu_environment(), proc::helper_output).size());
  };
  facts.xpu_count = [] {
    return static_cast<int>(host::visible_xpu_gpus("", host::gpu_environment()).size());
  };
  facts.custom_devices = custom_devices;
  facts.file_kind = file_kind;
  facts.secret_file = secret_file;
  facts.find_program = find_program;
  facts.uuid = random_uuid4;
  facts.program_folders = program_folders;
  return facts;
}

}  // namespace lockstep::launch
