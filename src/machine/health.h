// The health of a rented machine: its report about itself, and the comparison with the purchase.
// Pure.
#pragma once

#include "base/error.h"
#include "codec/json.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::machine {

struct HealthFacts {
  struct Gpu {
    std::string name;  // "NVIDIA A100-SXM4-80GB"
    std::int64_t memory_mb = 0;
  };
  enum class Cuda {
    opened,      // a context was created on each GPU
    failed,      // the driver library reports an error
    no_library,  // libcuda.so.1 is missing
    not_opened,  // no Python is installed to open the GPUs with
  };

  std::string driver = {};  // version; empty: nvidia-smi does not run
  std::string driver_error = {};
  std::vector<Gpu> gpus = {};  // as nvidia-smi lists them
  Cuda cuda = Cuda::not_opened;
  int cuda_gpus = 0;                   // number of GPUs opened
  std::string cuda_error = {};         // "cuInit: 802 (system not yet initialized)"
  int cuda_code = 0;                   // the driver library's code, such as 802; 0: none
  std::vector<std::string> xids = {};  // the kernel's lines about failed GPUs
  std::int64_t disk_free = 0;          // bytes, where jobs run
  std::string disk_error = {};         // why the disk cannot be written to
};

// The client's measurements.
struct HealthMeasures {
  double clock_ahead_ms = 0;     // the machine's clock minus the client's
  double provider_ahead_ms = 0;  // the provider's clock minus the client's; 0: unknown
  double up_mb_s = 0;            // from the machine; 0: not measured
  double down_mb_s = 0;
};

// What the offer promised.
struct HealthWish {
  std::string gpu;  // canonical name (cloud/gpu.h); empty: no GPUs
  int gpus = 0;
  std::int64_t disk_free = std::int64_t{2} << 30;  // bytes, at least
};

// The kind of defect, as far as it decides whether waiting helps (health_patience.h).
enum class Ailment {
  lasting,    // waiting does not help: wrong GPU, failed disk
  no_driver,  // not installed, not loaded, or not answering yet
  no_fabric,  // CUDA_ERROR_SYSTEM_NOT_READY: NVSwitches without their fabric manager
};

struct HealthFinding {
  enum class Kind { good, note, bad };
  Kind kind = Kind::good;
  std::string what;                    // one line
  Ailment ailment = Ailment::lasting;  // only for Kind::bad
};

std::vector<HealthFinding> judge_health(const HealthFacts& facts, const HealthMeasures& measures,
                                        const HealthWish& wish);

nlohmann::ordered_json to_json(const HealthFacts& facts);
Result<HealthFacts> health_from_json(const nlohmann::json& json);

}  // namespace lockstep::machine
