// Offers as JSON: for `--json`, for the journal and for answers that are kept.
#pragma once

#include "cloud/offer.h"
#include "codec/json.h"

#include <string>

namespace lockstep::cloud {

const char* source_name(Price::Source source);  // "live", "cached", "built in"
const char* stock_name(Stock stock);            // "in stock", "unknown", "none"

nlohmann::json offer_json(const Offer& offer);
Offer offer_of(const nlohmann::json& json);  // what is missing or of another kind: as in Offer{}

}  // namespace lockstep::cloud
