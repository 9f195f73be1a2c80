// Lists our machines and terminates them.
#pragma once

#include "cloud/gcp/api.h"
#include "cloud/provider.h"

#include <string>
#include <vector>

namespace lockstep::cloud::gcp {

// Reads one item of instances.aggregatedList. Pure.
Machine read_machine(const nlohmann::json& instance, const std::string& zone);

Result<Listing> list_machines(Api& api, Web& web, const ListQuery& query);
// Returns the host key from the machine's guest attributes. See Provider::host_key.
Result<std::string> told_host_key(Api& api, Web& web, const Machine& machine);
// The result of a call to delete a machine. not_found may also mean that the machine is too new.
enum class EndSeen { not_found, accepted, gone };
// Deletes all machines at once, and waits a while until they are gone.
std::vector<Result<EndSeen>> end_machines(Api& api, Web& web, const std::vector<Machine>& machines);
// Returns whether no machine has that name. Unlike lists, answers about one machine are always
// current.
bool is_deleted(Api& api, Web& web, const Machine& machine);

}  // namespace lockstep::cloud::gcp
