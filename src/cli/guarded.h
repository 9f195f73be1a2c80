// Who ends rented machines that can't end their own bill, as commands see to it and say it.
#pragma once

#include "cloud/rental.h"
#include "cluster/on_demand.h"

#include <string>
#include <string_view>

namespace lockstep::cli {

enum class EndedBy { itself, guard, nobody };

EndedBy ended_by(const cloud::Rental& rental);
const char* ended_by_name(EndedBy by);              // "itself", "guard", "nobody": for JSON
std::string ended_by_words(std::string_view name);  // ", guarded here"; empty: by itself

// Where something is rented that the guard here is to end, one lives afterwards: one that was
// killed is started again. Says so, or why it can't be.
void keep_guarded(cluster::OnDemand& world, std::string_view program);

}  // namespace lockstep::cli
