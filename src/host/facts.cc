// Gathers the facts of this machine.
#include "host/facts.h"

#include "base/environment.h"
#include "base/text.h"
#include "host/cgroup_limits.h"
#include "host/cpus.h"
#include "host/identity.h"
#include "host/logout.h"
#include "host/nvidia_smi_command.h"
#include "host/sysfs.h"
#include "io/own_folders.h"

#include <fmt/core.h>

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace lockstep::host {
namespace {

Space space_at(const std::string& root, const std::string& path) {
  Space space{.path = path};
  struct statvfs info {};
  if (statvfs((root + path).c_str(), &info) != 0) return space;
  space.there = true;
  const auto block = static_cast<std::int64_t>(info.f_frsize);
  space.total = static_cast<std::int64_t>(info.f_blocks) * block;
  // f_bavail leaves out the blocks reserved for root.
  space.free = static_cast<std::int64_t>(info.f_bavail) * block;
  // Some file systems, such as btrfs, have no fixed number of files and report 0.
  if (info.f_files > 0) space.files_free = static_cast<std::int64_t>(info.f_favail);
  space.writable =
      (info.f_flag & ST_RDONLY) == 0 && access((root + path).c_str(), W_OK | X_OK) == 0;
  space.no_exec = (info.f_flag & ST_NOEXEC) != 0;
  return space;
}

// Parses a line such as "MemTotal:       24576 kB". Returns bytes.
std::int64_t meminfo(std::string_view text, std::string_view name) {
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with(name) || line.size() == name.size() || line[name.size()] != ':') continue;
    const auto words = split(strip(std::string_view(line).substr(name.size() + 1)), ' ');
    return parse_int(words.front()).value_or(0) * 1024;
  }
  return 0;
}

std::string user_name(const std::string& root) {
  // Read the file instead of calling getpwuid(), which may load modules (io/system_names.h).
  for (const std::string& line : split(read_text(root + "/etc/passwd").value_or(""), '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() > 2 && parse_int(fields[2]) == std::int64_t{geteuid()}) return fields[0];
  }
  // The user of a directory service is not in /etc/passwd.
  return env_text("USER", std::to_string(geteuid()));
}

// Containers that share a kernel and a network are one machine to a job: their ports are shared.
std::string machine_id(const std::string& root) {
  std::array<char, 64> network{};
  // The boot id tells kernels apart, and the network namespace tells containers apart.
  const std::string link = root + "/proc/self/ns/net";
  const ssize_t size = readlink(link.c_str(), network.data(), network.size());
  return read_text(root + "/proc/sys/kernel/random/boot_id").value_or("?") + " " +
         std::string(network.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
}

// Finds a program in PATH and asks for its version.
ProgramFacts program(const std::string& name, const RunCommand& run) {
  std::vector<std::string> folders = split(env_text("PATH", "/usr/bin:/bin"), ':');
  // uv's own installer uses these folders, which are not in the PATH of sshd.
  if (name == "uv")
    for (const char* below : {"/.local/bin", "/.cargo/bin"})
      folders.push_back(io::home_folder() + below);
  for (const std::string& folder : folders) {
    const std::string file = fmt::format("{}/{}", folder, name);
    // Relative entries of PATH would mean another program in each folder.
    if (folder.starts_with('/') && access(file.c_str(), X_OK) == 0) return program_facts(file, run);
  }
  return {};
}

const char* vendor_name(GpuVendor vendor) {
  switch (vendor) {
    case GpuVendor::nvidia:
      return "nvidia";
    case GpuVendor::amd:
      return "amd";
    case GpuVendor::intel:
      return "intel";
  }
  return "";
}

void add_gpus(const std::string& root, const RunCommand& run, Facts& facts) {
  auto gpus = visible_cuda_gpus(root, gpu_environment(), run);
  for (Gpu& gpu : visible_xpu_gpus(root, gpu_environment()))
    gpus.push_back(std::move(gpu));
  const bool asks = std::any_of(gpus.begin(), gpus.end(),
                                [](const Gpu& gpu) { return gpu.vendor == GpuVendor::nvidia; });
  // The driver's files have no memory size, so ask nvidia-smi, but only if there is an NVIDIA GPU.
  const auto told = asks && run ? run(nvidia_smi_query_command()) : std::nullopt;
  const auto rows = parse_nvidia_smi_query(told.value_or(""));
  for (const Gpu& gpu : gpus) {
    GpuFacts each{.vendor = vendor_name(gpu.vendor), .uuid = gpu.uuid};
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const NvidiaRow& other) {
      return gpu.vendor == GpuVendor::nvidia &&
             // Without a UUID the position must do.
             (gpu.uuid.empty() ? other.index == gpu.index : other.uuid == gpu.uuid);
    });
    if (row != rows.end()) {
      each.name = row->name;
      each.uuid = row->uuid;
      each.memory = row->memory;
    } else if (gpu.vendor == GpuVendor::nvidia) {
      // nvidia-smi is missing or failed: the driver still knows the model.
      each.name = nvidia_model(root, gpu.pci);
    } else {
      // amdgpu shows name and memory of a GPU in these files.
      const std::string device = root + "/sys/bus/pci/devices/" + gpu.pci;
      each.name = read_text(device + "/product_name").value_or("");
      each.memory = parse_int(read_text(device + "/mem_info_vram_total").value_or("")).value_or(0);
    }
    facts.gpus.push_back(std::move(each));
  }
  for (const char* module : {"nvidia", "amdgpu", "xe"})
    if (facts.driver.empty() && !gpus.empty())
      facts.driver = read_text(fmt::format("{}/sys/module/{}/version", root, module)).value_or("");
}

std::int64_t limit_value(rlim_t limit) {
  return limit == RLIM_INFINITY ? INT64_MAX : static_cast<std::int64_t>(limit);
}

}  // namespace

std::string version_in(std::string_view output) {
  const std::string line(output.substr(0, output.find('\n')));
  for (const std::string& word : split(line, ' '))
    if (!word.empty() && word.front() >= '0' && word.front() <= '9')
      return std::string(strip(word));
  return {};
}

std::string os_name(std::string_view os_release) {
  for (const std::string& line : split(os_release, '\n')) {
    if (!line.starts_with("PRETTY_NAME=")) continue;
    // Values may be quoted as for a shell.
    std::string_view name = strip(std::string_view(line).substr(12));
    if (name.size() >= 2 && (name.front() == '"' || name.front() == '\'') &&
        name.back() == name.front())
      name = name.substr(1, name.size() - 2);
    return std::string(name);
  }
  return {};
}

ProgramFacts program_facts(const std::string& path, const RunCommand& run) {
  const auto output = run({path, "--version"});
  return {path, output ? version_in(*output) : ""};
}

Facts gather_facts(const std::string& root, const RunCommand& run) {
  Facts facts;
  utsname here{};
  uname(&here);
  facts.user = user_name(root);
  facts.uid = geteuid();
  facts.host = hostname();
  facts.machine = machine_id(root);
  facts.os = os_name(read_text(root + "/etc/os-release").value_or(""));
  facts.kernel = here.release;
  facts.arch = here.machine;
  const auto cpus = allowed_cpus();
  facts.cpus = cpus ? static_cast<std::int64_t>(cpus->size()) : 0;
  const CgroupLimits limits = cgroup_limits(root);
  facts.cpu_quota = limits.cpus.value_or(0);
  const std::string memory = read_text(root + "/proc/meminfo").value_or("");
  facts.memory = meminfo(memory, "MemTotal");
  facts.memory_available = meminfo(memory, "MemAvailable");
  facts.memory_limit = limits.memory.value_or(0);
  facts.home = space_at(root, io::home_folder());
  facts.tmp = space_at(root, "/tmp");
  facts.shm = space_at(root, "/dev/shm");
  add_gpus(root, run, facts);
  facts.python = program("python3", run);
  facts.rsync = program("rsync", run);
  facts.git = program("git", run);
  facts.uv = program("uv", run);
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  facts.open_files = limit_value(files.rlim_cur);
  facts.open_files_hard = limit_value(files.rlim_max);
  facts.logout_kills = logout_kills(root, facts.user);
  return facts;
}

}  // namespace lockstep::host
