// The facts that a rented machine gathers about itself, while a client measures the connection.
#pragma once

#include "base/error.h"
#include "machine/health.h"

#include <string>
#include <string_view>

namespace lockstep::machine {

// Gathers the facts. gpus: whether to look at GPUs at all. May take minutes if a driver hangs.
HealthFacts probe_health(bool gpus);

// Serves `lockstep host-health` over stdin and stdout:
//   client {"gpus": true, "bytes": N}
//   host   {"clock_ns": N}
//   client N bytes                      the host measures how long they take
//   host   N bytes, a newline           the client measures
//   host   {"facts": HealthFacts, "down_ms": N}
// The host gathers the facts meanwhile.
Result<int> serve_health();

// Adds the answer of the child that opens GPUs to `facts`. Pure.
void take_cuda_answer(std::string_view text, HealthFacts& facts);
// Adds nvidia-smi's rows to `facts`: "580.95.05, NVIDIA A100-SXM4-80GB, 81920" (memory in MiB).
// Pure.
void take_driver_rows(std::string_view text, HealthFacts& facts);
// Returns the kernel's lines about failed GPUs, at most 20. Pure.
std::vector<std::string> xid_lines(std::string_view kernel_log);

}  // namespace lockstep::machine
