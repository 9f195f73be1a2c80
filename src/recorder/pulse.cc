#include "recorder/pulse.h"

#include "base/fnv.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

namespace lockstep::recorder {
namespace {

// A rank rarely enters more collectives than this without waiting for one. If none of so many has
// ended, the recorder does not see the ends.
constexpr std::size_t kMostOpen = 64;

}  // namespace

Pulse pulse_of(const Dump& dump) {
  Pulse pulse;
  std::string text;
  std::size_t open = 0;
  for (const Entry& entry : dump.entries) {
    text += fmt::format("{} {} {} {} {}\n", entry.group, entry.sequence, entry.created_ns,
                        entry.moved_ns, entry.active);
    pulse.moved_ns = std::max(pulse.moved_ns, entry.moved_ns);
    if (entry.active) ++open;
  }
  pulse.mark = fnv1a(text);
  pulse.inside = open > 0 && (open < dump.entries.size() || open < kMostOpen);
  return pulse;
}

}  // namespace lockstep::recorder
