// What a rented machine finds out about itself, while a client measures the way to it.
#pragma once

#include "base/error.h"
#include "machine/health.h"

#include <string>
#include <string_view>

namespace lockstep::machine {

// gpus: whether they are looked for at all. May take a minute where a driver hangs.
HealthFacts probe_health(bool gpus);

// The whole of `lockstep host-health`, over stdin and stdout:
//   client {"gpus": true, "bytes": N}
//   host   {"clock_ns": N}
//   client N bytes                      the host measures how long they take
//   host   N bytes, a line end          the client does
//   host   {"facts": HealthFacts, "down_ms": N}
// The facts are gathered meanwhile.
Result<int> serve_health();

// What the child that opens GPUs says, into `facts`. Pure.
void take_cuda_answer(std::string_view text, HealthFacts& facts);
// nvidia-smi's rows: "580.95.05, NVIDIA A100-SXM4-80GB, 81920". Pure.
void take_driver_rows(std::string_view text, HealthFacts& facts);
// Lines of the kernel about GPUs that failed. Pure.
std::vector<std::string> xid_lines(std::string_view kernel_log);

}  // namespace lockstep::machine
