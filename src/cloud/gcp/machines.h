// Machines that exist: the list of ours, and their end.
#pragma once

#include "cloud/gcp/api.h"
#include "cloud/provider.h"

#include <string>
#include <vector>

namespace lockstep::cloud::gcp {

// One of instances.aggregatedList. Pure.
Machine read_machine(const nlohmann::json& instance, const std::string& zone);

Result<Listing> list_machines(Api& api, Web& web, const ListQuery& query);
// As Provider::host_key: its guest attributes.
Result<std::string> told_host_key(Api& api, Web& web, const Machine& machine);
// What became of the question to end a machine. One that Google does not find may be too new.
enum class EndSeen { not_found, accepted, gone };
// Asks for all ends at once, and waits a while for them.
std::vector<Result<EndSeen>> end_machines(Api& api, Web& web, const std::vector<Machine>& machines);
// Whether Google has no machine of that name: what it says of one is never late, as a list may be.
bool is_deleted(Api& api, Web& web, const Machine& machine);

}  // namespace lockstep::cloud::gcp
