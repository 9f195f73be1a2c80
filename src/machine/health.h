// Whether a rented machine is what was bought: what it found out about itself, and the judgement.
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
    opened,      // a context was made on each GPU
    failed,      // the driver library refuses
    no_library,  // there is no libcuda.so.1
    not_opened,  // no Python is there to open them with
  };

  std::string driver = {};  // its version; empty: nvidia-smi does not run
  std::string driver_error = {};
  std::vector<Gpu> gpus = {};  // as nvidia-smi lists them
  Cuda cuda = Cuda::not_opened;
  int cuda_gpus = 0;                   // that were opened
  std::string cuda_error = {};         // "cuInit: 802 (system not yet initialized)"
  int cuda_code = 0;                   // 802: as the driver library numbers it; 0: it gave none
  std::vector<std::string> xids = {};  // the kernel's lines about GPUs that failed
  std::int64_t disk_free = 0;          // bytes where jobs run
  std::string disk_error = {};         // it can't be written to
};

// What was measured by the client.
struct HealthMeasures {
  double clock_ahead_ms = 0;     // the machine's, of the client's
  double provider_ahead_ms = 0;  // the provider's, of the client's; 0: as far as is known
  double up_mb_s = 0;            // from the machine; 0: not measured
  double down_mb_s = 0;
};

// What was bought.
struct HealthWish {
  std::string gpu;  // canonical (cloud/gpu.h); empty: no GPUs are wanted
  int gpus = 0;
  std::int64_t disk_free = std::int64_t{2} << 30;  // at least, in bytes
};

// What is wrong, as far as it says whether waiting helps (health_patience.h).
enum class Ailment {
  lasting,    // nothing mends it: another GPU than was bought, a failed disk
  no_driver,  // it is not installed or loaded, or does not answer
  no_fabric,  // CUDA_ERROR_SYSTEM_NOT_READY: NVSwitches without their fabric manager
};

struct HealthFinding {
  enum class Kind { good, note, bad };
  Kind kind = Kind::good;
  std::string what;                    // one line
  Ailment ailment = Ailment::lasting;  // of a bad one
};

std::vector<HealthFinding> judge_health(const HealthFacts& facts, const HealthMeasures& measures,
                                        const HealthWish& wish);

nlohmann::ordered_json to_json(const HealthFacts& facts);
Result<HealthFacts> health_from_json(const nlohmann::json& json);

}  // namespace lockstep::machine
