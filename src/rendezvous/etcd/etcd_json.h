// Bounds for the JSON of one etcd answer. A listing of 65,536 leases with seven members each fits.
#pragma once

#include "codec/json.h"

namespace lockstep::rendezvous::etcd {

inline constexpr codec::JsonLimits kEtcdJson{.bytes = 16U << 20, .values = 512U << 10};

}  // namespace lockstep::rendezvous::etcd
