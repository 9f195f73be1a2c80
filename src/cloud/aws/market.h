// Makes offers of the answers about prices and regions. Pure.
#pragma once

#include "cloud/aws/kept_rows.h"
#include "cloud/provider.h"

#include <map>
#include <optional>
#include <string>

namespace lockstep::cloud::aws {

inline constexpr int kImageGb = 75;      // the root disk of AWS's deep learning images
inline constexpr int kPlainImageGb = 8;  // of Ubuntu's

struct RegionNews {
  std::string region;
  Asked<KeptRows> zones;
  Asked<KeptRows> types;
  std::optional<Asked<KeptRows>> spot = {};            // nullopt: not asked for
  std::map<std::string, Asked<KeptRows>> quotas = {};  // by code
};

using PriceNews = std::map<std::string, Asked<KeptRows>>;  // by type: region, micro-dollars

// Returns why a region has no offers; nullptr: all answers are there.
const ApiFailure* missing_news(const RegionNews& news);

std::vector<Offer> region_offers(const RegionNews& news, const PriceNews& prices,
                                 const OfferQuery& query);

}  // namespace lockstep::cloud::aws
