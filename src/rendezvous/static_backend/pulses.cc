#include "rendezvous/static_backend/pulses.h"

namespace lockstep::rendezvous::static_backend {

void Pulses::begin(std::size_t nodes) {
  pulses_.resize(nodes);
  for (Pulse& pulse : pulses_)
    pulse = {.seen = {}, .since = pulse.since};
}

void Pulses::look(std::size_t rank, const std::optional<std::string>& count) {
  Pulse& pulse = pulses_.at(rank);
  // The first heartbeat of a replacement fills the place.
  if (pulse.vacant && !count) return;
  pulse.vacant = false;
  ++pulse.missed;
  // `left` is final and does not age.
  if (!count || (*count == pulse.seen && *count != kLeft)) return;
  pulse.seen = *count;
  pulse.missed = 0;
}

void Pulses::vacate(std::size_t rank, std::int64_t round) {
  pulses_.at(rank) = {.seen = {}, .vacant = true, .since = round};
}

void Pulses::gone(int rank) {
  if (rank >= 0 && rank < std::ssize(pulses_)) pulses_[static_cast<std::size_t>(rank)].gone = true;
}

bool Pulses::all_gone() const {
  for (std::size_t rank = 1; rank < pulses_.size(); ++rank)
    if (!pulses_[rank].gone && !vacant(rank) && !left(rank) && !silent(rank)) return false;
  return true;
}

}  // namespace lockstep::rendezvous::static_backend
