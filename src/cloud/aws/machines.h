// Lists machines and terminates them.
#pragma once

#include "cloud/aws/api.h"

namespace lockstep::cloud::aws {

Result<Listing> list_machines(Web& web, Api& api, const ListQuery& query);
Status end_machines(Web& web, Api& api, const std::vector<Machine>& machines);

}  // namespace lockstep::cloud::aws
