// Who ends rented machines that can't end their own bill, as commands see to it and say it.
#pragma once

#include "base/error.h"
#include "cloud/rental.h"
#include "rent/on_demand.h"

#include <string>
#include <string_view>

namespace lockstep::cli {

enum class EndedBy {
  itself,
  guard,
  unheard,  // a guard on another machine, which was not reached
  nobody,
};

// As keep_guarded() has found it.
EndedBy ended_by(const rent::OnDemand& world, const cloud::Rental& rental);
// "itself", "guard", "guard-unheard", "nobody": for JSON.
const char* ended_by_name(EndedBy by);
// name: the one above; where: the rental's --guard. ", guarded on me@host"; empty: by itself.
std::string ended_by_words(std::string_view name, std::string_view where);

// When its provider ends the first machine of it, which no call moves (Traits::fixed_end); 0: no
// provider does, or no machine of it is alive. Unix ms.
std::int64_t fixed_end_ms(const rent::OnDemand& world, const cloud::Rental& rental);
// The earliest end that is certain: that of the lease, or the provider's. Unix ms.
std::int64_t certain_end_ms(const rent::OnDemand& world, const cloud::Rental& rental);

// "by itself it ends at DATE", or that nobody ends it but the user.
std::string end_words(const rent::OnDemand& world, const cloud::Rental& rental);

// Whether there are keys of all providers where something of it may live.
Status keys_of(const rent::OnDemand& world, const cloud::Rental& rental);

// Says how jobs have ended that were followed after their command had gone. Where something is
// rented that a guard is to watch, one lives afterwards: one that was killed is started again, here
// or on the host that was named, which is told how all of it is. Says so, or why it can't be.
void keep_guarded(rent::OnDemand& world, std::string_view program);

// --guard HOST, before anybody is asked for prices: that the host can end what may be rented. Notes
// its address in the terms where the machines are to let it in.
Status agree_with_guard(rent::OnDemand& world, const cloud::Wish& wish, cloud::Terms& terms);

}  // namespace lockstep::cli
