// A job that a host watches (`--guard HOST`), from the user's machine: that host is told of it, and
// what has become of it there is brought here.
#pragma once

#include "rent/on_demand.h"
#include "rent/watch_talk.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::cli {

Result<rent::WatchAnswer> tell_watcher(rent::OnDemand& world, const cloud::RentedJob& job,
                                       rent::WatchVerb verb);
// Of a job that is to be watched, before anything is rented for it, and before it begins; a host
// that is silent is asked again. An error: it is not watched, and should not begin. Without a
// watcher nothing is said.
Status name_to_watcher(rent::OnDemand& world, const cloud::RentedJob& job);
// Called as outputs come: lets its watcher know now and then that its command is at it.
std::function<void(std::uint64_t, std::uint64_t)> words_to_watcher(rent::OnDemand& world,
                                                                   const cloud::RentedJob& job);
// At the end of it, or of its machines. Its watcher stands in for a command that it has not heard
// of then, one that slept: what has come of it is awaited and fetched. Its exit code; nullopt: its
// command goes on.
std::optional<int> ended_by_watcher(rent::OnDemand& world, std::string_view program,
                                    const cloud::RentedJob& job);

// Where its watcher has seen its end: brings what that has of it, says so, and forgets the job.
// The exit code; nullopt: it goes on, or is not known. Error: its watcher is silent, or what it has
// can't be brought.
Result<std::optional<int>> fetch_watched(rent::OnDemand& world, std::string_view program,
                                         const cloud::RentedJob& job);

// The same, by one command at a time, and not beside the job's own.
Result<std::optional<int>> fetch_left(rent::OnDemand& world, std::string_view program,
                                      const cloud::RentedJob& job);
// Of rentals of that name that are closed. force: a job whose watcher can't be asked, or whose
// outputs can't be brought, is forgotten.
Status settle_watched(rent::OnDemand& world, std::string_view program, const std::string& cluster,
                      bool force);
// Before that rental's machines are ended. wait: for a watcher that is bringing its outputs.
Status fetch_before_end(rent::OnDemand& world, std::string_view program, const std::string& rental,
                        bool wait);
// Forgets its job, unless that is watched: its watcher may still have to be asked.
Status drop_unwatched(rent::OnDemand& world, const std::string& rental);

// What its watcher has brought from machines that are gone now, and how it is there. nullopt:
// nothing has come.
std::optional<rent::WatchAnswer> fetch_saved(rent::OnDemand& world, std::string_view program,
                                             const cloud::RentedJob& job);

// Whoever ends the rental of a job has no use for its watcher. The job stays known where that host
// has ended it already, and has its outputs, or is silent. brought: what it has is here, too.
void end_watched(rent::OnDemand& world, std::string_view program, const cloud::RentedJob& job,
                 bool brought);
// The same of whatever job that rental has, unless its command lives, which does it.
void end_if_watched(rent::OnDemand& world, std::string_view program, const std::string& rental);

}  // namespace lockstep::cli
