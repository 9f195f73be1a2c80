// The pulse of a rank's collectives: whether they have moved between two dumps. Pure.
#pragma once

#include "recorder/dump.h"

#include <cstdint>

namespace lockstep::recorder {

struct Pulse {
  // Equal in two dumps of a rank if the rank has neither entered nor left a collective in between.
  std::uint64_t mark = 0;
  std::int64_t moved_ns = 0;  // wall clock: the last time a collective began or ended. 0: none
  // The rank has entered a collective that has not ended. false if the recorder never notes an end,
  // as with backends that do not tell it.
  bool inside = false;
};

Pulse pulse_of(const Dump& dump);

}  // namespace lockstep::recorder
