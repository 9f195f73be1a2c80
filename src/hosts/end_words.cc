#include "hosts/end_words.h"

#include "proc/signals.h"

#include <fmt/core.h>

namespace lockstep::hosts {

std::string end_words(std::string_view program, const link::ChannelEnd& end) {
  using Kind = link::ChannelEnd::Kind;
  if (end.kind == Kind::signaled)
    return fmt::format("{} was killed by {}", program, proc::signal_name(end.code));
  if (end.kind == Kind::exited) return fmt::format("{} exited with code {}", program, end.code);
  return end.why;
}

}  // namespace lockstep::hosts
