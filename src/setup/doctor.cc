#include "setup/doctor.h"

#include "base/text.h"
#include "host/facts_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::setup {
namespace {

// The default port of torchrun's rendezvous.
constexpr std::int64_t kMeetingPort = 29500;
constexpr std::int64_t kFewPorts = 1000;
// The first and the last Slurm release that Lockstep is tested with.
constexpr Release kOldestSlurm{22, 5};
constexpr Release kNewestSlurm{26, 5};

// The oldest driver that runs programs built for a major version of CUDA.
constexpr std::array<std::pair<int, int>, 3> kDrivers = {{{11, 450}, {12, 525}, {13, 580}}};

class Look {
 public:
  explicit Look(const DoctorFacts& facts) : facts_(facts) {}

  std::vector<Finding> take() {
    if (!facts_.python_error.empty())
      add(true, "no-python", facts_.python_error,
          "install python3, or name a Python with --python PATH");
    for (Finding& each : findings_of(facts_.tools))
      findings_.push_back(std::move(each));
    look_at_gpus();
    look_at_deepspeed();
    look_at_ports();
    if (!facts_.clock_set)
      add(false, "clock-not-set", "the kernel reports that NTP does not set this node's clock",
          "timedatectl set-ntp true; a container has the host's clock");
    look_at_slurm();
    return std::move(findings_);
  }

 private:
  void add(bool trouble, std::string_view what, std::string text, std::string cure) {
    findings_.push_back({trouble, what, std::move(text), std::move(cure)});
  }

  void look_at_gpus() {
    const bool nvidia = std::any_of(facts_.host.gpus.begin(), facts_.host.gpus.end(),
                                    [](const auto& gpu) { return gpu.vendor == "nvidia"; });
    if (!nvidia) return;
    if (!facts_.python.torch.empty() && facts_.python.torch_cuda.empty())
      add(true, "torch-without-cuda",
          fmt::format("PyTorch {} is built without CUDA, and this node has NVIDIA GPUs",
                      facts_.python.torch),
          "install a build of torch with CUDA: https://pytorch.org/get-started/locally");
    // A newer driver also runs programs of older toolkits.
    for (const auto& [cuda, driver] : kDrivers) {
      const auto here = read_release(facts_.host.driver);
      if (facts_.tools.torch_cuda && facts_.tools.torch_cuda->major == cuda && here &&
          here->major < driver)
        add(true, "driver-too-old",
            fmt::format("the GPU driver {} is too old for PyTorch's CUDA {}",
                        printable(facts_.host.driver), release_text(*facts_.tools.torch_cuda)),
            fmt::format("install driver {} or newer, or a torch for an older CUDA", driver));
    }
    if (!facts_.python.torch_cuda.empty() && facts_.python.nccl.empty())
      add(false, "no-nccl",
          "libnccl was not found, which GPUs of several nodes need to communicate",
          "PyTorch's own wheels install nvidia-nccl-cu12; other builds link NCCL in");
    look_at_capabilities();
  }

  void look_at_capabilities() {
    std::vector<int> seen;
    for (std::size_t i = 0; i < facts_.capabilities.size(); ++i) {
      const int capability = facts_.capabilities[i];
      const std::string name = printable(facts_.host.gpus.at(i).name);
      // A node with eight equal GPUs gets one finding, not eight.
      if (std::find(seen.begin(), seen.end(), capability) != seen.end()) continue;
      seen.push_back(capability);
      if (capability == 0 && facts_.host.gpus[i].vendor == "nvidia")
        add(false, "gpu-unknown", fmt::format("the compute capability of '{}' is not known", name),
            "lockstep wheel needs --arch for this GPU");
      // Without nvcc there is nothing to compare the capability with.
      if (capability == 0 || !facts_.tools.cuda) continue;
      const auto fits = check_archs({{capability}}, *facts_.tools.cuda);
      if (!fits)
        add(true, "gpu-not-compiled-for", fmt::format("{}: {}", name, fits.error().message),
            "set CUDA_HOME to a toolkit that supports this GPU");
    }
  }

  void look_at_deepspeed() {
    const PythonFacts& python = facts_.python;
    if (python.deepspeed.empty()) return;
    if (python.deepspeed_ops.empty())
      return add(false, "deepspeed-no-ops",
                 fmt::format("DeepSpeed {} has no compiled ops: each node compiles an op at first "
                             "use, which takes minutes",
                             printable(python.deepspeed)),
                 "lockstep wheel deepspeed --ops cpu_adam,...");
    // DeepSpeed compares these versions when an op is loaded, and refuses any difference of torch's
    // major.minor or of CUDA.
    const auto built = read_release(python.deepspeed_torch);
    const auto torch = read_release(python.torch);
    const Release built_cuda = read_release(python.deepspeed_cuda).value_or(Release{});
    const Release cuda = read_release(python.torch_cuda).value_or(Release{});
    // No record of the build, or an equal one: the ops will load.
    if (!built || !torch || (*built == *torch && built_cuda == cuda)) return;
    const auto pair = [](Release release, Release with) {
      return fmt::format("PyTorch {} and {}", release_text(release),
                         with == Release{} ? "no CUDA" : "CUDA " + release_text(with));
    };
    add(true, "deepspeed-ops-differ",
        fmt::format("the ops of DeepSpeed {} ({}) are built for {} and refuse to load here: this "
                    "is {}",
                    printable(python.deepspeed), printable(join(python.deepspeed_ops, ", ")),
                    pair(*built, built_cuda), pair(*torch, cuda)),
        fmt::format("lockstep wheel deepspeed=={} --ops {}",
                    printable(python.deepspeed.substr(0, python.deepspeed.find('+'))),
                    printable(join(python.deepspeed_ops, ","))));
  }

  void look_at_ports() {
    const std::int64_t first = facts_.first_port;
    const std::int64_t last = facts_.last_port;
    // Each outgoing connection takes an ephemeral port.
    if (last > 0 && last - first < kFewPorts)
      add(true, "few-ports", fmt::format("there are {} ports for connections", last - first + 1),
          "sysctl -w net.ipv4.ip_local_port_range='32768 60999'");
    // The kernel may give this port to any outgoing connection. The rendezvous then cannot listen.
    if (first > 0 && first <= kMeetingPort && kMeetingPort <= last)
      add(false, "port-in-range",
          fmt::format("port {}, where a job's nodes meet by default, is among the ports that "
                      "the kernel gives to connections ({} to {})",
                      kMeetingPort, first, last),
          fmt::format("sysctl -w net.ipv4.ip_local_reserved_ports={}", kMeetingPort));
    if (!facts_.port_holder.empty())
      add(false, "port-taken",
          fmt::format("port {}, where a job's nodes meet by default, is held by {}", kMeetingPort,
                      printable(facts_.port_holder)),
          "give the job another port with --master-port or --rdzv-endpoint");
  }

  void look_at_slurm() {
    const SlurmFacts& slurm = facts_.slurm;
    // A node without Slurm is normal.
    if (!slurm.installed) return;
    if (!slurm.configured)
      return add(false, "slurm-not-configured",
                 "Slurm's programs are installed, but there is no slurm.conf",
                 "set SLURM_CONF, or work without Slurm");
    if (!slurm.answers)
      add(true, "slurm-not-reached", "Slurm's controller does not answer scontrol ping",
          "check slurmctld, and munge on both machines");
    // An unreadable version proves nothing.
    const auto version = read_release(slurm.version);
    if (version && (*version < kOldestSlurm || *version > kNewestSlurm))
      add(false, "slurm-untested",
          fmt::format("Slurm {} is not a version that Lockstep is tested with",
                      printable(slurm.version)),
          "22.05 to 26.05 are");
  }

  const DoctorFacts& facts_;
  std::vector<Finding> findings_;
};

std::string or_none(const std::string& text) {
  return text.empty() ? "none" : printable(text);
}

std::string tool_text(const std::string& path, const std::optional<Release>& release) {
  if (path.empty()) return "none";
  return fmt::format("{} ({})", release ? release_text(*release) : "of unknown version",
                     printable(path));
}

std::string torch_text(const PythonFacts& python) {
  if (python.torch.empty()) return "none";
  const std::string with = !python.torch_cuda.empty()  ? ", CUDA " + printable(python.torch_cuda)
                           : !python.torch_hip.empty() ? ", ROCm " + printable(python.torch_hip)
                                                       : ", without CUDA";
  return printable(python.torch) + with;
}

std::string gpus_text(const DoctorFacts& facts) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < facts.host.gpus.size(); ++i) {
    const int capability = i < facts.capabilities.size() ? facts.capabilities[i] : 0;
    std::string text = printable(facts.host.gpus[i].name);
    if (text.empty()) text = facts.host.gpus[i].vendor;
    if (capability > 0) text += " (" + arch_text({capability}) + ")";
    texts.push_back(std::move(text));
  }
  std::string text = texts.empty() ? "none" : join(texts, ", ");
  if (!facts.host.driver.empty()) text += "; driver " + printable(facts.host.driver);
  return text;
}

std::string deepspeed_text(const PythonFacts& python) {
  if (python.deepspeed.empty()) return "none";
  return fmt::format("{}, ops: {}", printable(python.deepspeed),
                     or_none(join(python.deepspeed_ops, ", ")));
}

std::string slurm_text(const SlurmFacts& slurm) {
  if (!slurm.installed) return "none";
  if (!slurm.configured) return "installed, not configured";
  return fmt::format("{}, its controller {}", printable(slurm.version),
                     slurm.answers ? "answers" : "does not answer");
}

}  // namespace

std::vector<Finding> findings_of(const DoctorFacts& facts) {
  return Look(facts).take();
}

std::string facts_text(const DoctorFacts& facts) {
  std::string text = fmt::format("{}: {}, {}\n", printable(facts.host.host),
                                 printable(facts.host.os), printable(facts.host.arch));
  const auto line = [&text](const char* name, const std::string& words) {
    text += fmt::format("  {:<9} {}\n", name, words);
  };
  const PythonFacts& python = facts.python;
  line("Python", python.python.empty()
                     ? "none"
                     : fmt::format("{} ({})", printable(python.version), printable(python.python)));
  line("PyTorch", torch_text(python));
  line("DeepSpeed", deepspeed_text(python));
  line("C++", tool_text(facts.tools.gcc, facts.tools.gcc_version));
  line("CUDA", tool_text(facts.tools.nvcc, facts.tools.cuda));
  line("NCCL", or_none(python.nccl));
  line("GPUs", gpus_text(facts));
  line("Slurm", slurm_text(facts.slurm));
  return text;
}

nlohmann::ordered_json facts_json(const DoctorFacts& facts) {
  using nlohmann::ordered_json;
  const PythonFacts& python = facts.python;
  const auto text_or_null = [](const std::optional<Release>& release) {
    return release ? ordered_json(release_text(*release)) : ordered_json(nullptr);
  };
  return {{"host", host::facts_json(facts.host)},
          {"capabilities", facts.capabilities},
          {"capabilities_from_driver", facts.capabilities_from_driver},
          {"python",
           {{"path", python.python},
            {"version", python.version},
            {"tag", python.tag},
            {"libc", python.libc},
            {"headers", python.headers},
            {"error", facts.python_error}}},
          {"torch",
           {{"version", python.torch}, {"cuda", python.torch_cuda}, {"hip", python.torch_hip}}},
          {"deepspeed",
           {{"version", python.deepspeed},
            {"torch", python.deepspeed_torch},
            {"cuda", python.deepspeed_cuda},
            {"ops", python.deepspeed_ops}}},
          {"gcc", {{"path", facts.tools.gcc}, {"version", text_or_null(facts.tools.gcc_version)}}},
          {"nvcc", {{"path", facts.tools.nvcc}, {"version", text_or_null(facts.tools.cuda)}}},
          {"nccl", python.nccl},
          {"ports",
           {{"first", facts.first_port}, {"last", facts.last_port}, {"holder", facts.port_holder}}},
          {"clock_set", facts.clock_set},
          {"slurm",
           {{"installed", facts.slurm.installed},
            {"version", facts.slurm.version},
            {"answers", facts.slurm.answers}}}};
}

}  // namespace lockstep::setup
