// The hint for the user of a run id whose job has ended.
#pragma once

#include <string>

namespace lockstep::rendezvous {

inline std::string closed_hint(const std::string& run_id) {
  if (run_id == "none") return "jobs without a --rdzv-id share this one: give one, --rdzv-id NAME";
  return "the job with this --rdzv-id has ended: choose another one";
}

}  // namespace lockstep::rendezvous
