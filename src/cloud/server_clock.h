// How far the clocks of servers are ahead of this machine's, by the Date headers of their answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::cloud {

// What one answer says, in milliseconds; negative: behind. A Date header has whole seconds, so the
// result is off by up to half a second, and by half of the time that the answer took. nullopt: the
// answer has no Date, or took too long to say anything. Pure.
std::optional<std::int64_t> server_ahead_ms(std::string_view date, std::int64_t asked_ms,
                                            std::int64_t answered_ms);

// Keeps what the newest answer said, for this process. Threads may call both.
void note_server_clock(std::string_view date, std::int64_t asked_ms, std::int64_t answered_ms);
std::optional<std::int64_t> known_server_ahead_ms();

}  // namespace lockstep::cloud
