#include "cloud/offer_json.h"

#include "codec/json_members.h"

#include <algorithm>
#include <array>

namespace lockstep::cloud {
namespace {

using codec::integer_member;
using codec::text_member;
using nlohmann::json;

constexpr std::array<const char*, 3> kSources = {"live", "cached", "built in"};
constexpr std::array<const char*, 3> kStocks = {"in stock", "unknown", "none"};

// Members that are whole numbers or texts, by name: both directions go through these tables.
struct NumberMember {
  const char* name;
  int Offer::*field;
};
struct MoneyMember {
  const char* name;
  Micros Offer::*field;
};
struct TextMember {
  const char* name;
  std::string Offer::*field;
};
struct FlagMember {
  const char* name;
  bool Offer::*field;
};
constexpr std::array kNumbers = {
    NumberMember{"gpus", &Offer::gpus},
    NumberMember{"gpu_memory_gb", &Offer::gpu_memory_gb},
    NumberMember{"vcpus", &Offer::vcpus},
    NumberMember{"memory_gb", &Offer::memory_gb},
    NumberMember{"min_disk_gb", &Offer::min_disk_gb},
    NumberMember{"disk_gb", &Offer::disk_gb},
    NumberMember{"most_nodes", &Offer::most_nodes},
};
constexpr std::array kMoney = {
    MoneyMember{"disk_micros_per_gb_month", &Offer::disk_per_gb_month},
    MoneyMember{"address_micros_per_hour", &Offer::address_per_hour},
    MoneyMember{"extra_micros_per_hour", &Offer::extra_per_hour},
};
constexpr std::array kTexts = {
    TextMember{"provider", &Offer::provider}, TextMember{"region", &Offer::region},
    TextMember{"zone", &Offer::zone},         TextMember{"zone_id", &Offer::zone_id},
    TextMember{"type", &Offer::type},         TextMember{"gpu", &Offer::gpu},
    TextMember{"arch", &Offer::arch},         TextMember{"not_for_sale", &Offer::not_for_sale},
    TextMember{"note", &Offer::note},
};
constexpr std::array kFlags = {
    FlagMember{"spot", &Offer::spot},
    FlagMember{"floor_price", &Offer::floor_price},
};

template <std::size_t size>
std::size_t place_of(const std::array<const char*, size>& names, const std::string& name,
                     std::size_t otherwise) {
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const char* one) { return name == one; });
  return found == names.end() ? otherwise : static_cast<std::size_t>(found - names.begin());
}

bool flag_member(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

}  // namespace

const char* source_name(Price::Source source) {
  return kSources[static_cast<std::size_t>(source)];
}

const char* stock_name(Stock stock) {
  return kStocks[static_cast<std::size_t>(stock)];
}

json offer_json(const Offer& offer) {
  json object = json::object();
  for (const auto& [name, field] : kTexts)
    object[name] = offer.*field;
  for (const auto& [name, field] : kNumbers)
    object[name] = offer.*field;
  for (const auto& [name, field] : kMoney)
    object[name] = offer.*field;
  for (const auto& [name, field] : kFlags)
    object[name] = offer.*field;
  object["price_micros_per_hour"] = offer.price.per_hour;
  object["price_source"] = source_name(offer.price.source);
  object["price_as_of_ms"] = offer.price.as_of_ms;
  object["stock"] = stock_name(offer.stock);
  object["ends_by_itself"] = offer.ending == Ending::by_itself;
  if (offer.quota)
    object["quota"] = {{"limit", offer.quota->limit},
                       {"needed", offer.quota->needed},
                       {"unit", offer.quota->unit},
                       {"link", offer.quota->link}};
  return object;
}

Offer offer_of(const json& object) {
  Offer offer;
  if (!object.is_object()) return offer;
  for (const auto& [name, field] : kTexts)
    offer.*field = text_member(object, name);
  for (const auto& [name, field] : kNumbers)
    offer.*field = static_cast<int>(integer_member(object, name));
  for (const auto& [name, field] : kMoney)
    offer.*field = integer_member(object, name);
  for (const auto& [name, field] : kFlags)
    offer.*field = flag_member(object, name);
  offer.price = {.per_hour = integer_member(object, "price_micros_per_hour"),
                 .source = static_cast<Price::Source>(
                     place_of(kSources, text_member(object, "price_source"), kSources.size() - 1)),
                 .as_of_ms = integer_member(object, "price_as_of_ms")};
  offer.stock = static_cast<Stock>(place_of(kStocks, text_member(object, "stock"), 1));
  offer.ending = flag_member(object, "ends_by_itself") ? Ending::by_itself : Ending::with_guard;
  if (const auto quota = object.find("quota"); quota != object.end() && quota->is_object())
    offer.quota = {.limit = integer_member(*quota, "limit"),
                   .needed = integer_member(*quota, "needed"),
                   .unit = text_member(*quota, "unit"),
                   .link = text_member(*quota, "link")};
  return offer;
}

}  // namespace lockstep::cloud
