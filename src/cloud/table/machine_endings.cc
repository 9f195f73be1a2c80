// In a file of its own: the lease on a machine needs no provider's requests.
#include "cloud/table/machine_endings.h"

#include "cloud/runpod/pod_ending.h"

#include <array>

namespace lockstep::cloud::table {
namespace {

constexpr std::array kEndings{kPoweroff, runpod::kPodEnding};

}  // namespace

const MachineEnding* find_ending(std::string_view word) {
  for (const MachineEnding& ending : kEndings)
    if (ending.word == word) return &ending;
  return nullptr;
}

}  // namespace lockstep::cloud::table
