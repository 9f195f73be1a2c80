// Makes offers from Google's places and prices. Only ask_places() and ask_prices() use the network.
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
  std::string trouble;  // why the list is not live although Google was asked
};

// Returns all offers that the wish admits in the wanted regions. A region that does not exist
// counts as silent.
Catalog make_offers(const Places& places, const PriceList& prices, const OfferQuery& query,
                    const std::string& project);

// Ask Google, unless a recent answer is kept. fresh: always ask.
Asked<Places> ask_places(Api& api, Web& web, const Ground& ground, bool fresh);
PriceList ask_prices(Api& api, Web& web, const Ground& ground, bool fresh);

}  // namespace lockstep::cloud::gcp
