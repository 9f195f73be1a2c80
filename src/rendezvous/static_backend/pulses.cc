#include "rendezvous/static_backend/pulses.h"

namespace lockstep::rendezvous::static_backend {

void Pulses::look(std::size_t rank, const std::optional<std::string>& count) {
  Pulse& pulse = pulses_.at(rank);
  ++pulse.missed;
  if (!count || (*count == pulse.seen && *count != kLeft)) return;
  pulse.seen = *count;
  pulse.missed = 0;
}

void Pulses::gone(int rank) {
  if (rank >= 0 && rank < std::ssize(pulses_)) pulses_[static_cast<std::size_t>(rank)].gone = true;
}

bool Pulses::all_gone() const {
  for (std::size_t rank = 1; rank < pulses_.size(); ++rank)
    if (!pulses_[rank].gone && !left(rank) && !silent(rank)) return false;
  return true;
}

}  // namespace lockstep::rendezvous::static_backend
