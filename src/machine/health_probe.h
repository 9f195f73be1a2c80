// The health check of a rented machine, as seen from the machine: it gathers facts about its GPUs,
// driver and disk while a client measures the connection. health.h judges the facts.
#pragma once

#include "base/error.h"
#include "machine/health.h"

#include <string>
#include <string_view>

namespace lockstep::machine {

// Gathers the facts of this machine. gpus: also look at GPUs and their driver. Blocks, for minutes
// if a driver hangs.
HealthFacts probe_health(bool gpus);

// Serves `lockstep host-health`: talks to the client over stdin and stdout, and returns the exit
// code. A child process gathers the facts during the transfers.
//   client {"gpus": true, "bytes": N}
//   host   {"clock_ns": N}              the host's clock, Unix time
//   client N bytes                      the host measures their time
//   host   N bytes, a newline           the client measures their time
//   host   {"facts": HealthFacts, "down_ms": N}
// Errors: the client sends something else, or the connection is lost.
Result<int> serve_health();

// Adds the answer of the Python program that opens the GPUs to `facts`. Pure.
void take_cuda_answer(std::string_view text, HealthFacts& facts);
// Adds the driver's version and the GPUs from nvidia-smi's rows to `facts`. A row has the version,
// the name, and the memory in MiB: "580.95.05, NVIDIA A100-SXM4-80GB, 81920". Pure.
void take_driver_rows(std::string_view text, HealthFacts& facts);
// Returns the lines of the kernel's log about failed GPUs ("NVRM: Xid"), at most 20. Pure.
std::vector<std::string> xid_lines(std::string_view kernel_log);

}  // namespace lockstep::machine
