// Offers as JSON, for `--json`, for the journal and for kept answers.
#pragma once

#include "cloud/offer.h"
#include "codec/json.h"

namespace lockstep::codec {
class JsonFields;
}

namespace lockstep::cloud {

const char* stock_name(Stock stock);  // "in stock", "unknown", "none"

// Returns the members in the order of their names.
nlohmann::json offer_json(const Offer& offer);
// Lists the members of an offer inside another struct.
void fields(codec::JsonFields& io, Offer& offer);

}  // namespace lockstep::cloud
