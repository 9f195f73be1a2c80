// lockstep host-gpus: prints how AMD's GPUs of this machine are used, every five seconds, until its
// reader or its parent ends. The agent starts it: a GPU that is being reset makes a reader of the
// driver's files wait. People do not call this.
#include "cli/subcommand.h"
#include "host/gpu_use.h"

#include <unistd.h>

#include <cstdio>

namespace lockstep::cli {
namespace {

constexpr unsigned kGpuPeriod = 5;  // seconds

Status print_gpus(const Call& /*call*/) {
  while (true) {
    for (const host::GpuUse& use : host::read_amd_use("", host::amd_gpus("")))
      std::puts(host::gpu_use_line(use).c_str());
    if (std::fflush(stdout) != 0) return {};
    sleep(kGpuPeriod);
  }
}

}  // namespace

extern constinit const Subcommand kHostGpus{.name = "host-gpus",
                                            .summary = "print how AMD's GPUs are used",
                                            .run = run_status<print_gpus>,
                                            .fails_with = always(ExitCode::failed),
                                            .listed = false};

}  // namespace lockstep::cli
