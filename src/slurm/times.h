// Parses Slurm's notations of durations and moments.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::slurm {

// Parses a duration into seconds: "30" and "30:00" (minutes), "2:30:00", "1-12", "1-12:30",
// "1-12:30:00". Returns nullopt for anything else, including UNLIMITED and INFINITE.
std::optional<std::int64_t> parse_duration(std::string_view text);

// Parses a moment into Unix seconds: a number, as with SLURM_TIME_FORMAT=%s, or
// "2026-11-22T19:07:38" in this machine's time zone. Returns nullopt for N/A, Unknown, None and
// anything else.
std::optional<std::int64_t> parse_moment(std::string_view text);

}  // namespace lockstep::slurm
