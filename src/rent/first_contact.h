// First contact with a rental's machines, as a verdict on them. The machines must answer with the
// right host keys, be what was bought, and start their leases.
#pragma once

#include "cloud/rental.h"
#include "cloud/renting.h"
#include "rent/rented_host.h"

#include <functional>

namespace lockstep::rent {

class OnDemand;

// The step's text names the machine: "gpus-0: sshd does not answer yet".
using TellStep = std::function<void(const ContactStep& step)>;

// Meets the machines that run, all at the same time, and keeps their host keys in the journal.
// Machines that an earlier command has met are good without another contact. step: may be empty.
cloud::Verdict meet_machines(OnDemand& world, cloud::Rental& rental, const TellStep& step);

}  // namespace lockstep::rent
