#include "cloud/offer_json.h"

#include "codec/json_fields.h"

#include <array>

namespace lockstep::cloud {
namespace {

constexpr std::array<std::string_view, 3> kSources = {"live", "cached", "built in"};
constexpr std::array<std::string_view, 3> kStocks = {"in stock", "unknown", "none"};

}  // namespace

static void fields(codec::JsonFields& io, Quota& quota) {
  io("limit", quota.limit);
  io("needed", quota.needed);
  io("unit", quota.unit);
  io("link", quota.link);
}

void fields(codec::JsonFields& io, Offer& offer) {
  io("provider", offer.provider);
  io("region", offer.region);
  io("zone", offer.zone);
  io("zone_id", offer.zone_id);
  io("type", offer.type);
  io("gpu", offer.gpu);
  io("arch", offer.arch);
  io("not_for_sale", offer.not_for_sale);
  io("note", offer.note);
  io("gpus", offer.gpus);
  io("gpu_memory_gb", offer.gpu_memory_gb);
  io("vcpus", offer.vcpus);
  io("memory_gb", offer.memory_gb);
  io("min_disk_gb", offer.min_disk_gb);
  io("disk_gb", offer.disk_gb);
  io("most_nodes", offer.most_nodes);
  io("disk_micros_per_gb_month", offer.disk_per_gb_month);
  io("address_micros_per_hour", offer.address_per_hour);
  io("extra_micros_per_hour", offer.extra_per_hour);
  io("spot", offer.spot);
  io("floor_price", offer.floor_price);
  io("price_micros_per_hour", offer.price.per_hour);
  io("price_source", offer.price.source, kSources);
  io("price_as_of_ms", offer.price.as_of_ms);
  io("stock", offer.stock, kStocks);
  // A record without this member needs a guard: the safe assumption.
  bool ends_by_itself = io.reads() ? false : offer.ending == Ending::by_itself;
  io("ends_by_itself", ends_by_itself);
  if (io.reads()) offer.ending = ends_by_itself ? Ending::by_itself : Ending::with_guard;
  io.optional("quota", offer.quota);
}

const char* stock_name(Stock stock) {
  return kStocks[static_cast<std::size_t>(stock)].data();
}

nlohmann::json offer_json(const Offer& offer) {
  return codec::write_fields(offer);
}

}  // namespace lockstep::cloud
