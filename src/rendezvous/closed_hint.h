// The hint for the user of a run id whose job has ended.
#pragma once

#include <string>

namespace lockstep::rendezvous {

inline std::string closed_hint(const std::string& run_id) {
  if (run_id == "none")
    return "all jobs without a --rdzv-id share this id: give every job its own --rdzv-id";
  return "the job with this --rdzv-id has ended: choose a new --rdzv-id";
}

}  // namespace lockstep::rendezvous
