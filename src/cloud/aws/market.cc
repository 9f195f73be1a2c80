#include "cloud/aws/market.h"

#include "base/text.h"
#include "cloud/aws/quota_table.h"
#include "cloud/machine_table.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::cloud::aws {
namespace {

// Millionths of a dollar: disk per GB and month, public address per hour.
constexpr Micros kDiskPerGbMonth = 80'000;  // gp3
constexpr Micros kAddressPerHour = 5'000;
constexpr Micros kRounding = 10;  // a tenth of a price of six digits

struct Priced {
  Price price;
  bool known = false;
};

Priced price_of_row(const KeptRows& kept, const std::string& micros) {
  return {.price = {.per_hour = parse_int(micros).value_or(0),
                    .source = kept.source,
                    .as_of_ms = kept.as_of_ms},
          .known = true};
}

// Returns the live or kept price, else the built-in price, which holds in one region only.
Priced demand_price(const MachineType& type, const std::string& region, const PriceNews& prices) {
  const auto found = prices.find(type.type);
  if (found != prices.end() && found->second) {
    for (const auto& row : found->second->rows)
      if (row.size() == 2 && row[0] == region) return price_of_row(*found->second, row[1]);
    // AWS has answered: no row means not for sale in this region.
    return {};
  }
  const MachineTable& table = *machine_table("aws");
  // Prices differ between regions, so never use the table's price elsewhere.
  if (!type.on_demand || region != table.region) return {};
  return {.price = {.per_hour = *type.on_demand,
                    .source = Price::Source::built_in,
                    .as_of_ms = table.date_ms},
          .known = true};
}

Priced spot_price(const MachineType& type, const std::string& zone, const RegionNews& news) {
  if (!news.spot || !*news.spot) return {};
  const KeptRows& kept = **news.spot;
  for (const auto& row : kept.rows)
    if (row.size() == 3 && row[0] == type.type && row[1] == zone) return price_of_row(kept, row[2]);
  return {};
}

std::optional<Quota> quota_of(const MachineType& type, bool spot, const RegionNews& news) {
  const std::string code(quota_code(type.type, spot));
  const auto found = news.quotas.find(code);
  if (found == news.quotas.end() || !found->second || found->second->rows.empty())
    return std::nullopt;
  return Quota{.limit = parse_int(found->second->rows[0][0]).value_or(0),
               .needed = type.vcpus,
               .unit = "vCPUs",
               .link = quota_link(news.region, code)};
}

Offer bare_offer(const MachineType& type, const RegionNews& news, bool spot) {
  const Gpu* gpu = find_gpu(type.gpu);
  return {.provider = "aws",
          .region = news.region,
          .zone = {},
          .zone_id = {},
          .type = type.type,
          .gpu = type.gpu,
          .gpus = type.gpus,
          .gpu_memory_gb = gpu == nullptr ? 0 : gpu->memory_gb,
          .vcpus = type.vcpus,
          .memory_gb = type.memory_gb,
          .min_disk_gb = type.gpus > 0 ? kImageGb : kPlainImageGb,
          .arch = gpu == nullptr ? "x86_64" : gpu->arch,
          .spot = spot,
          .price = {},
          .disk_per_gb_month = kDiskPerGbMonth,
          .address_per_hour = kAddressPerHour,
          .quota = quota_of(type, spot, news),
          .ending = Ending::by_itself};
}

// Judges a spot offer by the on-demand price. AWS shows exactly a tenth of that price in a place
// without a market (seen in ap-southeast-3).
void judge_spot(Offer& offer, const Priced& demand) {
  if (!demand.known) return;
  const Micros tenfold = offer.price.per_hour * 10;
  offer.floor_price = std::abs(tenfold - demand.price.per_hour) <= kRounding;
  if (offer.floor_price)
    offer.note = "a tenth of the price on demand: this place has no market";
  else if (offer.price.per_hour >= demand.price.per_hour)
    offer.note = "no cheaper than on demand";
}

void price_on_demand(Offer& offer, const MachineType& type, const Priced& demand,
                     const PriceNews& prices) {
  offer.price = demand.price;
  if (demand.known) return;
  const auto heard = prices.find(type.type);
  if (!type.why.empty())
    offer.not_for_sale = type.why;
  else if (heard != prices.end() && heard->second)
    offer.not_for_sale = "not sold on demand in " + offer.region;
  else
    offer.not_for_sale =
        "the price here is unknown; with the right pricing:GetProducts AWS tells the price";
}

}  // namespace

const ApiFailure* missing_news(const RegionNews& news) {
  for (const Asked<KeptRows>* asked : {&news.zones, &news.types})
    if (!*asked) return &asked->error();
  return news.spot && !*news.spot ? &news.spot->error() : nullptr;
}

std::vector<Offer> region_offers(const RegionNews& news, const PriceNews& prices,
                                 const OfferQuery& query) {
  std::vector<Offer> offers;
  if (missing_news(news) != nullptr) return offers;
  for (const MachineType& type : machine_table("aws")->types) {
    if (!query.gpu.admits(type.gpu, type.gpus)) continue;
    const Priced demand = demand_price(type, news.region, prices);
    for (const auto& zone : news.zones->rows) {
      const auto& sold = news.types->rows;
      // Not every zone of a region has every type.
      if (std::find(sold.begin(), sold.end(), std::vector{type.type, zone[0]}) == sold.end())
        continue;
      Offer offer = bare_offer(type, news, query.spot);
      offer.zone = zone[0];
      offer.zone_id = zone[1];
      if (query.spot) {
        const Priced spot = spot_price(type, zone[0], news);
        if (!spot.known) continue;
        offer.price = spot.price;
        judge_spot(offer, demand);
      } else {
        price_on_demand(offer, type, demand, prices);
      }
      offers.push_back(std::move(offer));
    }
  }
  return offers;
}

}  // namespace lockstep::cloud::aws
