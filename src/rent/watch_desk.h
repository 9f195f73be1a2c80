// Jobs of clients elsewhere that this host watches (`--guard HOST`): what is kept of each, and what
// their commands are answered. It is watched from its first word on; as long as its command is
// there it does all, and only one that is not heard at the job's end is stood in for.
#pragma once

#include "cloud/rented_job.h"
#include "rent/on_demand.h"
#include "rent/watch_talk.h"

#include <functional>
#include <optional>
#include <string>

namespace lockstep::rent {

Result<WatchAnswer> answer_watch(OnDemand& world, const WatchWord& word);

// Whether the job of that rental is ended from here. at_work: its command rents machines just now;
// where it is not, that is heard.
bool is_taken(OnDemand& world, const std::string& rental, bool at_work);

// Nobody else changes it meanwhile. change: returns whether it is kept as it is then. nullopt:
// there is no such job any more.
Result<std::optional<cloud::RentedJob>> change_watched(
    OnDemand& world, const std::string& rental,
    const std::function<bool(cloud::RentedJob&)>& change);

}  // namespace lockstep::rent
