// Slurm's ways to write lengths of time and moments.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::slurm {

// "30", "30:00" (minutes), "2:30:00", "1-12", "1-12:30", "1-12:30:00" -> seconds. nullopt:
// anything else, UNLIMITED and INFINITE too.
std::optional<std::int64_t> parse_duration(std::string_view text);

// Unix seconds, as Slurm's programs print them when SLURM_TIME_FORMAT is "%s", or
// "2026-11-22T19:07:38" in this machine's time zone. nullopt: N/A, Unknown, None, anything else.
std::optional<std::int64_t> parse_moment(std::string_view text);

}  // namespace lockstep::slurm
