// Offers, made of what was heard of prices and regions. Pure.
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
  std::optional<Asked<KeptRows>> spot = {};            // where it was asked
  std::map<std::string, Asked<KeptRows>> quotas = {};  // by code
};

using PriceNews = std::map<std::string, Asked<KeptRows>>;  // by type: region, micro-dollars

// Why there are no offers of a region; nullptr where enough is known of it.
const Trouble* missing_news(const RegionNews& news);

std::vector<Offer> region_offers(const RegionNews& news, const PriceNews& prices,
                                 const OfferQuery& query);

}  // namespace lockstep::cloud::aws
