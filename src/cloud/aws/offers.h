// Asks all regions at once for their offers.
#pragma once

#include "cloud/aws/api.h"

namespace lockstep::cloud::aws {

Catalog find_offers(Web& web, Api& api, const OfferQuery& query);

}  // namespace lockstep::cloud::aws
