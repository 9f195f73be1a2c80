#include "slurm/node_probe.h"

#include "base/id.h"
#include "base/text.h"
#include "host/gpus.h"
#include "io/fd.h"
#include "proc/tool_output.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

namespace lockstep::slurm {
namespace {

// Returns why a write fails; empty if it succeeds. Free space as statvfs() tells it does not
// include quotas, so write a real file.
std::string trouble_of_writing(const std::string& folder) {
  constexpr std::size_t kSize = 64U << 10;
  const std::string path = folder + "/.lockstep-" + random_suffix(12);
  // A random name, O_EXCL and O_NOFOLLOW: the folder may be writable for all users.
  const io::Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return errno_text(errno);
  const Status written = io::write_all(file.get(), std::string(kSize, '\0'), path);
  unlink(path.c_str());
  return written ? "" : errno_text(written.error().sys);
}

FolderFacts folder_facts(const std::string& path) {
  FolderFacts facts{.path = path, .trouble = trouble_of_writing(path)};
  struct statvfs info {};
  if (statvfs(path.c_str(), &info) != 0) return facts;
  const auto mib = [&](fsblkcnt_t blocks) {
    // Divide first: the product of both can overflow on large file systems.
    return static_cast<std::int64_t>(blocks / 1024 * info.f_frsize / 1024);
  };
  facts.free_mib = mib(info.f_bavail);
  facts.total_mib = mib(info.f_blocks);
  return facts;
}

std::optional<std::string> ask(const std::vector<std::string>& argv) {
  // nvidia-smi hangs if the driver does.
  constexpr std::chrono::seconds kPatience{3};
  auto told = proc::tool_output(argv, proc::own_environment(), {.patience = kPatience});
  if (!told || !told->exit.ok()) return std::nullopt;
  return std::move(told->out);
}

void look_at_gpus(const NodeQuestion& question, NodeFacts& facts) {
  facts.gpus_given = gpus_given(getenv("SLURM_GPUS_ON_NODE"), getenv("SLURM_STEP_GPUS"));
  if (facts.gpus_given == 0) return;
  // Without nvidia-smi, GPUs are counted by device files.
  const auto run = question.thorough ? host::RunCommand(ask) : host::RunCommand();
  const host::GpuEnvironment chosen = host::gpu_environment();
  const auto gpus = host::visible_cuda_gpus(question.root, chosen, run);
  facts.gpus_seen =
      static_cast<int>(gpus.size() + host::visible_xpu_gpus(question.root, chosen).size());
  std::vector<std::string> uuids;
  for (const host::Gpu& gpu : gpus)
    if (gpu.vendor == host::GpuVendor::nvidia && !gpu.uuid.empty()) uuids.push_back(gpu.uuid);
  if (!run || uuids.empty()) return;
  const auto listed =
      ask({"nvidia-smi", "--query-compute-apps=gpu_uuid,pid", "--format=csv,noheader"});
  facts.gpu_users = gpu_users(listed.value_or(""), uuids);
}

}  // namespace

int gpus_given(const char* on_node, const char* of_step) {
  if (on_node != nullptr)
    if (const auto count = parse_int(on_node); count && *count >= 0 && *count <= 1024)
      return static_cast<int>(*count);
  if (of_step == nullptr || *of_step == '\0') return 0;
  return static_cast<int>(split(of_step, ',').size());
}

std::vector<std::string> gpu_users(std::string_view listed, const std::vector<std::string>& uuids) {
  std::vector<std::string> users;
  for (const std::string& line : split(listed, '\n')) {
    const auto fields = split(line, ',');
    if (fields.size() < 2) continue;
    const std::string uuid(strip(fields[0]));
    const auto pid = parse_int(fields[1]);
    if (pid && std::find(uuids.begin(), uuids.end(), uuid) != uuids.end())
      users.push_back("pid " + std::to_string(*pid));
  }
  return users;
}

NodeFacts probe_node(const NodeQuestion& question) {
  NodeFacts facts;
  const char* temp = getenv("TMPDIR");
  facts.temp = folder_facts(temp != nullptr && *temp == '/' ? temp : "/tmp");
  facts.job = folder_facts(question.job_folder);
  facts.shared_memory = folder_facts("/dev/shm");
  look_at_gpus(question, facts);
  rlimit locked{};
  if (getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur != RLIM_INFINITY)
    facts.memlock_kib = static_cast<std::int64_t>(locked.rlim_cur / 1024);
  std::error_code error;
  const std::filesystem::directory_iterator cards(question.root + "/sys/class/infiniband", error);
  // InfiniBand needs locked memory, so RLIMIT_MEMLOCK matters only with such cards.
  facts.fabric = !error && cards != std::filesystem::directory_iterator();
  return facts;
}

}  // namespace lockstep::slurm
