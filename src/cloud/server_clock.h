// Measures the offset of servers' clocks from this machine's clock, by the Date headers of answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::cloud {

// Returns the offset by an answer, in milliseconds. Negative: the server is behind. A Date header
// has whole seconds, so the error is up to half a second and half of the answer's time. nullopt: no
// Date, or a slow answer. Pure.
std::optional<std::int64_t> server_ahead_ms(std::string_view date, std::int64_t asked_ms,
                                            std::int64_t answered_ms);

// Keep and return the offset by the newest answer in this process. Thread-safe.
void note_server_clock(std::string_view date, std::int64_t asked_ms, std::int64_t answered_ms);
std::optional<std::int64_t> known_server_ahead_ms();

}  // namespace lockstep::cloud
