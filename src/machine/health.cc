#include "machine/health.h"

#include "cloud/gpu.h"
#include "codec/json_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

namespace lockstep::machine {
namespace {

using Kind = HealthFinding::Kind;

constexpr double kMostClockAhead = 5000;  // ms
constexpr double kSlowLink = 10;          // MB/s: a checkpoint of 100 GB takes three hours
constexpr int kSystemNotReady = 802;      // CUDA_ERROR_SYSTEM_NOT_READY
constexpr std::size_t kMostGpusTold = 64;
constexpr std::size_t kMostXidsTold = 100;
constexpr std::int64_t kMostMemory = std::int64_t{1} << 30;  // MB
constexpr std::int64_t kMiBPerGiB = 1024;

constexpr std::array<std::string_view, 4> kCudaNames = {"opened", "failed", "no library",
                                                        "not opened"};

// In these cases the driver runs and its answer will not change: no GPUs, a lost GPU, or a library
// that was replaced while the old module is loaded.
Ailment ailment_of_driver(std::string_view error) {
  constexpr std::array<std::string_view, 4> kLasting{"No devices were found", "version mismatch",
                                                     "GPU is lost",
                                                     "Unable to determine the device handle"};
  return std::any_of(
             kLasting.begin(), kLasting.end(),
             [&](std::string_view words) { return error.find(words) != std::string_view::npos; })
             ? Ailment::lasting
             : Ailment::no_driver;
}

class Judgement {
 public:
  Judgement(const HealthFacts& facts, const HealthWish& wish) : facts_(facts), wish_(wish) {}

  void driver() {
    if (facts_.driver.empty())
      return add(Kind::bad, "the NVIDIA driver does not answer: " + facts_.driver_error,
                 ailment_of_driver(facts_.driver_error));
    add(Kind::good, fmt::format("driver {}, {} x {}", facts_.driver, facts_.gpus.size(),
                                facts_.gpus.empty() ? "GPU" : facts_.gpus.front().name));
    if (static_cast<int>(facts_.gpus.size()) != wish_.gpus)
      add(Kind::bad, fmt::format("{} GPUs found, {} were bought", facts_.gpus.size(), wish_.gpus));
    for (const HealthFacts::Gpu& gpu : facts_.gpus)
      // A single wrong GPU is enough to refuse the machine.
      if (!kind(gpu)) return;
  }

  void cuda() {
    switch (facts_.cuda) {
      case HealthFacts::Cuda::opened:
        if (facts_.cuda_gpus >= wish_.gpus)
          return add(Kind::good, fmt::format("{} GPUs were opened", facts_.cuda_gpus));
        return add(Kind::bad,
                   fmt::format("only {} of {} GPUs can be opened", facts_.cuda_gpus, wish_.gpus));
      case HealthFacts::Cuda::failed:
        return add(Kind::bad, "the GPUs can't be opened: " + facts_.cuda_error,
                   facts_.cuda_code == kSystemNotReady ? Ailment::no_fabric : Ailment::lasting);
      case HealthFacts::Cuda::no_library:  // its package may come later than nvidia-smi's
        return add(Kind::bad, "the GPUs can't be opened: libcuda.so.1 is missing",
                   Ailment::no_driver);
      case HealthFacts::Cuda::not_opened:
        return add(Kind::note, "the GPUs were listed, but not opened: " + facts_.cuda_error);
    }
  }

  void rest(const HealthMeasures& measures) {
    if (!facts_.xids.empty())
      add(Kind::bad, fmt::format("the kernel reports a failed GPU: {}", facts_.xids.front()));
    if (!facts_.disk_error.empty())
      add(Kind::bad, "the disk can't be written to: " + facts_.disk_error);
    else if (facts_.disk_free < wish_.disk_free)
      add(Kind::bad, fmt::format("the disk has {:.1f} GB free, and {:.1f} are needed",
                                 gigabytes(facts_.disk_free), gigabytes(wish_.disk_free)));
    // Compare with the provider's clock: a client with a wrong clock would call every machine sick.
    const double ahead = measures.clock_ahead_ms - measures.provider_ahead_ms;
    if (std::abs(ahead) > kMostClockAhead)
      add(Kind::bad,
          fmt::format("the clock is {:.0f} s {} {}", std::abs(ahead) / 1000,
                      ahead > 0 ? "ahead of" : "behind",
                      measures.provider_ahead_ms == 0 ? "this machine's" : "the provider's"));
    if (measures.up_mb_s <= 0 || measures.down_mb_s <= 0) return;
    // A note, not a defect: the machine works.
    const bool slow = std::min(measures.up_mb_s, measures.down_mb_s) < kSlowLink;
    add(slow ? Kind::note : Kind::good,
        fmt::format("{:.1f} MB/s to the machine, {:.1f} MB/s back{}", measures.down_mb_s,
                    measures.up_mb_s, slow ? ", which is slow for large outputs" : ""));
  }

  std::vector<HealthFinding> take() { return std::move(findings_); }

 private:
  static double gigabytes(std::int64_t bytes) { return static_cast<double>(bytes) / 1e9; }

  void add(Kind kind, std::string what, Ailment ailment = Ailment::lasting) {
    findings_.push_back({kind, std::move(what), ailment});
  }

  bool kind(const HealthFacts::Gpu& gpu) {
    // Round to GiB: the driver reports a little less than the nominal memory.
    const auto* found = cloud::gpu_described(
        gpu.name, static_cast<int>((gpu.memory_mb + kMiBPerGiB / 2) / kMiBPerGiB));
    if (found == nullptr) {
      add(Kind::note, fmt::format("the GPU '{}' is unknown", gpu.name));
      return true;
    }
    if (found->name == wish_.gpu) return true;
    add(Kind::bad,
        fmt::format("the GPU is a {} ({}), and a {} was bought", found->name, gpu.name, wish_.gpu));
    return false;
  }

  const HealthFacts& facts_;
  const HealthWish& wish_;
  std::vector<HealthFinding> findings_;
};

}  // namespace

std::vector<HealthFinding> judge_health(const HealthFacts& facts, const HealthMeasures& measures,
                                        const HealthWish& wish) {
  Judgement judgement(facts, wish);
  if (wish.gpus > 0) {
    judgement.driver();
    // Without a driver no GPU opens, and the report would name the same cause twice.
    if (!facts.driver.empty()) judgement.cuda();
  }
  judgement.rest(measures);
  return judgement.take();
}

static void fields(codec::JsonFields& io, HealthFacts::Gpu& gpu) {
  io("name", gpu.name);
  io("memory_mb", gpu.memory_mb, {0, kMostMemory});
}

static void fields(codec::JsonFields& io, HealthFacts& facts) {
  io("driver", facts.driver);
  io("driver_error", facts.driver_error);
  io("cuda_gpus", facts.cuda_gpus, {0, kMostGpusTold});
  io("cuda_error", facts.cuda_error);
  io("cuda_code", facts.cuda_code);
  io("disk_free", facts.disk_free);
  io("disk_error", facts.disk_error);
  io.needed("gpus", facts.gpus);
  io("cuda", facts.cuda, kCudaNames);
  io("xids", facts.xids);
}

nlohmann::ordered_json to_json(const HealthFacts& facts) {
  return codec::write_fields(facts);
}

// Makes all texts printable: the machine is not trusted yet.
Result<HealthFacts> health_from_json(const nlohmann::json& json) {
  HealthFacts facts;
  if (!codec::read_fields(json, facts, {.strict = false, .printable = 200}) ||
      json["gpus"].size() > kMostGpusTold)
    return fail(Errc::corrupt, "the machine's health report is unreadable");
  if (facts.gpus.size() != json["gpus"].size())
    return fail(Errc::corrupt, "the machine's health report has an invalid GPU");
  facts.xids.resize(std::min(facts.xids.size(), kMostXidsTold));
  return facts;
}

}  // namespace lockstep::machine
