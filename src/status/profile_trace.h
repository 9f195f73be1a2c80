// The finished traces in an agent's folder. A rank may put anything there.
#pragma once

#include "base/error.h"
#include "status/profile_answer.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::status {

inline constexpr std::int64_t kMostTrace = std::int64_t{16} << 30;  // bytes
// The error of a larger trace.
Failure trace_too_large(const std::string& path);

// Returns the path of the finished trace of a rank. nullopt: there is none yet.
std::optional<std::string> finished_trace(const std::string& folder, std::int64_t id, int rank);

// Sets the ranks of an agent's answer that have finished traces to `written`. Once a profile
// begins, removes the traces of earlier ones: a trace that was finished after the end of its
// command would stay otherwise. At the end of a profile, removes its own. The process that asks the
// agent calls this, and not the agent: the folder may be on a file system that hangs.
void look_for_traces(const ProfileQuery& query, ProfileAnswer& answer);

// Calls `use` with each piece of a trace. Takes only a regular file of this user, at most
// kMostTrace. A stop signal, which must be blocked, fails it with Errc::canceled and the number in
// Error::sys.
Status read_trace(const std::string& path, const std::function<Status(std::string_view)>& use);

}  // namespace lockstep::status
