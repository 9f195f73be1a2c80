// What is offered: Google's places and prices put together. Pure, but for the question what is
// where and what it costs.
#pragma once

#include "cloud/gcp/api.h"
#include "cloud/gcp/places.h"
#include "cloud/gcp/skus.h"
#include "cloud/provider.h"

namespace lockstep::cloud::gcp {

struct PriceList {
  UnitPrices units;
  Price::Source source = Price::Source::built_in;
  std::int64_t as_of_ms = 0;
  std::string trouble;  // why it is not live although it was asked for
};

// All that the wish admits, in the regions asked for; regions that do not exist are silent.
Catalog make_offers(const Places& places, const PriceList& prices, const OfferQuery& query,
                    const std::string& project);

// From Google, or as they were kept a short while ago.
tl::expected<Places, ApiError> ask_places(Api& api, Web& web, const Ground& ground, bool fresh);
PriceList ask_prices(Api& api, Web& web, const Ground& ground, bool fresh);

}  // namespace lockstep::cloud::gcp
