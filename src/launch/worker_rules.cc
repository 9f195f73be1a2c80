// Applies the options about the number of workers and their devices.
#include "base/text.h"
#include "launch/backend_row.h"
#include "launch/rules.h"

#include <fmt/core.h>

#include <cctype>
#include <set>

namespace lockstep::launch {
namespace {

// Refuses a kind of device that this machine lacks, in torchrun's words.
Result<std::int64_t> devices(int count, std::string_view name) {
  if (count < 1)
    return fail(Errc::invalid_input, fmt::format("{} is not available.", name),
                "--nproc-per-node auto uses the CPUs on machines without GPUs");
  return count;
}

// Returns the devices of an extension of PyTorch, such as npu. Only the script's Python knows them.
std::optional<int> custom_devices(const std::string& kind, const Facts& facts) {
  Origin origin;
  const auto python = find_python(facts, origin);
  return python ? facts.custom_devices(*python, kind) : std::nullopt;
}

Result<std::int64_t> worker_count(const std::string& text, const Facts& facts) {
  if (const auto count = parse_int(text)) return *count;
  if (text == "cpu") return facts.cpu_count();
  if (text == "gpu") return devices(facts.gpu_count(), "Cuda");
  if (text == "xpu") return devices(facts.xpu_count(), "Xpu");
  // The order is torchrun's: CUDA, XPU, an extension, else the CPUs.
  if (text == "auto") {
    if (const int gpus = facts.gpu_count(); gpus > 0) return gpus;
    if (const int xpus = facts.xpu_count(); xpus > 0) return xpus;
    if (const int others = custom_devices("", facts).value_or(0); others > 0) return others;
    return facts.cpu_count();
  }
  if (!text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) != 0)
    if (const auto count = custom_devices(text, facts)) return devices(*count, text);
  return fail(Errc::invalid_input,
              fmt::format("Unsupported nproc_per_node value: {}", printable(text)),
              "--nproc-per-node takes a number, cpu, gpu, xpu, auto, or the name of a device that "
              "PyTorch has from an extension");
}

std::string first_numbers(std::int64_t count) {
  std::vector<std::string> numbers;
  for (std::int64_t number = 0; number < count; ++number)
    numbers.push_back(std::to_string(number));
  return join(numbers, ",");
}

// Returns the devices of --slots in the form of CUDA_VISIBLE_DEVICES.
Result<std::string> slot_list(const std::string& text, const Facts& facts) {
  if (text == "gpu") {
    const auto visible = facts.env("CUDA_VISIBLE_DEVICES");
    // Slots are the devices as CUDA names them, so keep the inherited list.
    if (visible && !strip(*visible).empty()) return *visible;
    LOCKSTEP_TRY_ASSIGN(const std::int64_t count, devices(facts.gpu_count(), "Cuda"));
    return first_numbers(count);
  }
  std::set<std::int64_t> numbers;
  for (const std::string& part : split(text, ',')) {
    constexpr std::int64_t kMost = 4095;
    const auto number = parse_int(part);
    if (!number || *number < 0 || *number > kMost)
      return fail(Errc::invalid_input,
                  fmt::format("--slots {}: '{}' must be the number of a device", printable(text),
                              printable(part)),
                  "write gpu, or numbers of devices as 0,1,3");
    if (!numbers.insert(*number).second)
      return fail(Errc::invalid_input,
                  fmt::format("--slots {}: {} is listed twice", printable(text), *number));
  }
  return text;
}

Result<NumaBinding> numa_binding(const std::string& text) {
  if (text == "node") return NumaBinding::node;
  if (text == "socket") return NumaBinding::socket;
  if (text == "exclusive") return NumaBinding::exclusive;
  if (text == "core-complex") return NumaBinding::core_complex;
  return fail(
      Errc::invalid_input,
      fmt::format("--numa-binding must be one of node, socket, exclusive, core-complex, got {}",
                  printable(text)));
}

// Workers of JAX need a port of rank 0's node that is still closed. With the static backend the
// only port that all nodes know is that of the agents' own store.
Status apply_framework(const RawOptions& raw, LaunchConfig& config) {
  if (raw.framework != "jax") return {};
  if (config.backend->fixed() && !config.alone())
    return fail(
        Errc::invalid_input,
        fmt::format("--framework jax does not work with --rdzv-backend {}", config.backend->name),
        "leave out --rdzv-backend, --master-addr and --master-port, and give "
        "--rdzv-endpoint HOST");
  config.framework = Framework::jax;
  return {};
}

}  // namespace

// Parses --local-addr. An empty address counts as none, and an IPv6 address may be in brackets.
Result<std::optional<std::string>> local_addr(std::string_view given) {
  std::string_view addr = strip(given);
  if (addr.starts_with('[') && addr.ends_with(']')) addr = addr.substr(1, addr.size() - 2);
  if (addr.empty()) return std::nullopt;
  if (addr == "0.0.0.0" || addr == "::")
    return fail(Errc::invalid_input,
                fmt::format("--local-addr {} must be an address that workers can connect to", addr),
                "give this node's own address, or leave it out");
  return std::string(addr);
}

Status apply_workers(const RawOptions& raw, const Facts& facts, LaunchConfig& config) {
  std::string nproc = raw.nproc_per_node;
  if (raw.slots) {
    if (const auto given = raw.given.find("nproc-per-node");
        given != raw.given.end() && given->second.empty())
      return fail(Errc::invalid_input,
                  "--slots says how many workers there are, and so does --nproc-per-node",
                  "give one of them");
    LOCKSTEP_TRY_ASSIGN(config.slots, slot_list(*raw.slots, facts));
    nproc = std::to_string(split(*config.slots, ',').size());
  }
  LOCKSTEP_TRY_ASSIGN(const std::int64_t count, worker_count(nproc, facts));
  if (count < 1)
    return fail(Errc::invalid_input, fmt::format("nproc_per_node must be > 0, got {}", count));
  constexpr std::int64_t kMost = 1 << 20;  // more than any kernel has process ids by default
  if (count > kMost)
    return fail(Errc::invalid_input,
                fmt::format("nproc_per_node must be at most {}, got {}", kMost, count));
  config.nproc = static_cast<int>(count);
  LOCKSTEP_TRY(apply_framework(raw, config));
  config.role = raw.role;
  LOCKSTEP_TRY_ASSIGN(config.local_addr, local_addr(raw.local_addr.value_or("")));
  // DeepSpeed's launcher leaves OMP_NUM_THREADS alone.
  // Otherwise every worker would start a thread per CPU.
  if (config.nproc > 1 && !config.slots && !facts.env("OMP_NUM_THREADS")) {
    config.omp_num_threads = "1";
    config.job_warnings.emplace_back(
        "OMP_NUM_THREADS is not set: every worker gets 1, so that its machine is not overloaded; "
        "set it to tune your application");
  }
  return {};
}

Status apply_placement(const RawOptions& raw, const Facts& facts, LaunchConfig& config) {
  config.virtual_local_rank = raw.virtual_local_rank;
  if (raw.numa_binding) {
    if (raw.slots)
      return fail(Errc::invalid_input,
                  "--numa-binding goes by the devices that this process sees, and --slots names "
                  "others",
                  "set CUDA_VISIBLE_DEVICES and use --nproc-per-node gpu in place of --slots");
    LOCKSTEP_TRY_ASSIGN(config.numa_binding, numa_binding(*raw.numa_binding));
  }
  const auto visible = facts.env("CUDA_VISIBLE_DEVICES");
  // With --virtual-local-rank each worker sees a single device as number 0.
  if (!raw.virtual_local_rank || !visible) return {};
  const std::size_t gpus = split(*visible, ',').size();
  if (gpus < static_cast<std::size_t>(config.nproc))
    return fail(Errc::invalid_input,
                fmt::format("local_rank {} exceeds available GPUs in CUDA_VISIBLE_DEVICES={}", gpus,
                            printable(*visible)),
                "--virtual-local-rank needs one visible device for each worker");
  return {};
}

}  // namespace lockstep::launch
