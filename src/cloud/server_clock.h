// Measures how far servers' clocks are ahead of this machine's, by the Date headers of answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::cloud {

// Returns the offset by one answer in milliseconds; negative: the server is behind. A Date header
// has whole seconds, so the offset is off by up to half a second and half of the answer's time.
// nullopt: no Date, or the answer took too long. Pure.
std::optional<std::int64_t> server_ahead_ms(std::string_view date, std::int64_t asked_ms,
                                            std::int64_t answered_ms);

// Keep and return the offset by the newest answer in this process. Thread-safe.
void note_server_clock(std::string_view date, std::int64_t asked_ms, std::int64_t answered_ms);
std::optional<std::int64_t> known_server_ahead_ms();

}  // namespace lockstep::cloud
