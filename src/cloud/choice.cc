#include "cloud/choice.h"

#include "cloud/machine_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace lockstep::cloud {
namespace {

bool among(const std::vector<std::string>& words, const std::string& word) {
  return words.empty() || std::find(words.begin(), words.end(), word) != words.end();
}

// Returns why an offer with the right GPUs cannot be taken. Empty: the offer can be taken.
std::string objection(const Offer& offer, const Wish& wish, Micros per_hour) {
  if (!offer.not_for_sale.empty()) return offer.not_for_sale;
  if (!offer.has_price()) return "no price is known";
  if (std::find(wish.archs.begin(), wish.archs.end(), offer.arch) == wish.archs.end())
    return fmt::format("{}, and lockstep's binary for it is not here", offer.arch);
  if (wish.nodes > offer.most_nodes)
    return fmt::format("at most {} node{} there", offer.most_nodes,
                       offer.most_nodes == 1 ? "" : "s");
  if (offer.quota && offer.quota->limit < offer.quota->needed * wish.nodes)
    return fmt::format("quota {} {}, ask for {}", offer.quota->limit, offer.quota->unit,
                       offer.quota->needed * wish.nodes);
  if (wish.max_price && per_hour > *wish.max_price)
    return fmt::format("over --max-price {}", dollars_text(*wish.max_price));
  if (offer.ending == Ending::with_guard && !wish.guarded)
    return "cannot end its own bill: --guard here, --guard HOST or --i-will-watch";
  return {};
}

struct Rated {
  Candidate candidate;
  int standing = 0;  // 0: good; a higher standing is tried later
  Micros effective = 0;
};

// Returns whether spot is cheaper than the same machine on demand. At the same price spot has only
// the risk of preemption.
bool is_bargain(const Offer& spot, const std::vector<Offer>& offers) {
  return std::none_of(offers.begin(), offers.end(), [&](const Offer& other) {
    return !other.spot && other.provider == spot.provider && other.type == spot.type &&
           other.region == spot.region && other.not_for_sale.empty() && other.price.per_hour > 0 &&
           other.price.per_hour <= spot.price.per_hour;
  });
}

int standing_of(const Offer& offer, const Wish& wish, const std::vector<Offer>& offers,
                const std::vector<Block>& learned, std::int64_t now_ms, std::string& doubt) {
  if (offer.floor_price) {
    doubt = "a floor price: this place has no market";
    return 4;
  }
  for (const Block& block : learned)
    if (blocks(block, offer, now_ms)) {
      doubt = block.why;
      return 3;
    }
  if (offer.stock == Stock::none) {
    doubt = "sold out";
    return 2;
  }
  if (wish.spot == SpotWish::prefer && !(offer.spot && is_bargain(offer, offers))) return 1;
  return 0;
}

// Makes offers from the built-in tables, including providers without credentials: a user then sees
// who has such GPUs.
std::vector<Offer> built_in_offers() {
  std::vector<Offer> offers;
  for (const MachineTable& table : machine_tables())
    for (const MachineType& type : table.types) {
      if (!type.on_demand || !type.why.empty()) continue;
      Offer offer;
      offer.provider = table.provider;
      offer.type = type.type;
      offer.gpu = type.gpu;
      offer.gpus = type.gpus;
      offer.price.per_hour = *type.on_demand;
      offers.push_back(std::move(offer));
    }
  return offers;
}

bool wanted_at_all(const Offer& offer, const Wish& wish) {
  if (!wish.gpu.admits(offer.gpu, offer.gpus)) return false;
  if (!among(wish.providers, offer.provider) || !among(wish.regions, offer.region)) return false;
  if (!among(wish.types, offer.type)) return false;
  if (wish.spot == SpotWish::no) return !offer.spot;
  return wish.spot == SpotWish::prefer || offer.spot;
}

}  // namespace

bool blocks(const Block& block, const Offer& offer, std::int64_t now_ms) {
  return now_ms < block.until_ms && block.provider == offer.provider &&
         block.region == offer.region && block.spot == offer.spot &&
         (block.zone.empty() || block.zone == offer.zone) &&
         (block.type.empty() || block.type == offer.type);
}

Choice choose(const std::vector<Offer>& offers, const Wish& wish, const std::vector<Block>& learned,
              std::int64_t now_ms) {
  Choice choice;
  std::vector<Rated> rated;
  for (const Offer& offer : offers) {
    if (!wanted_at_all(offer, wish)) continue;
    const Micros per_hour = offer.per_machine_hour(wish.disk_gb) * wish.nodes;
    if (std::string why = objection(offer, wish, per_hour); !why.empty()) {
      // Keep the refused offers with their reasons: a user who sees no offer must learn why.
      choice.left_out.push_back({offer, per_hour, std::move(why)});
      continue;
    }
    Rated one{.candidate = {.offer = offer, .per_hour = per_hour}};
    one.standing = standing_of(offer, wish, offers, learned, now_ms, one.candidate.doubt);
    // A built-in price may be out of date, so it counts 5 % more.
    const bool built_in = offer.price.source == Price::Source::built_in;
    one.effective = built_in ? per_hour + per_hour / 20 : per_hour;
    rated.push_back(std::move(one));
  }
  const auto key = [](const Rated& one) {
    const Offer& offer = one.candidate.offer;
    return std::tie(one.standing, one.effective, offer.stock, one.candidate.per_hour,
                    offer.provider, offer.region, offer.zone, offer.type, offer.spot);
  };
  // The key names the offer, so that equal catalogs always give the same order.
  std::stable_sort(rated.begin(), rated.end(),
                   [&](const Rated& a, const Rated& b) { return key(a) < key(b); });
  for (Rated& one : rated)
    choice.candidates.push_back(std::move(one.candidate));
  std::stable_sort(choice.left_out.begin(), choice.left_out.end(),
                   [](const LeftOut& a, const LeftOut& b) {
                     return std::tuple(!a.offer.has_price(), a.per_hour) <
                            std::tuple(!b.offer.has_price(), b.per_hour);
                   });
  return choice;
}

std::vector<std::string> near_offers(const std::vector<Offer>& offers, const Wish& wish) {
  std::map<std::tuple<std::string, std::string, bool>, const Offer*> cheapest;
  const GpuWish any_number{.name = wish.gpu.name, .kinds = wish.gpu.kinds, .at_least = true};
  for (const Offer& offer : offers) {
    if (!any_number.admits(offer.gpu, offer.gpus) || !offer.has_price()) continue;
    if (!offer.not_for_sale.empty() || offer.floor_price) continue;
    const Offer*& best = cheapest[{offer.provider, offer.type, offer.spot}];
    if (best == nullptr || offer.price.per_hour < best->price.per_hour) best = &offer;
  }
  std::vector<const Offer*> sorted;
  sorted.reserve(cheapest.size());
  for (const auto& [name, offer] : cheapest)
    sorted.push_back(offer);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Offer* a, const Offer* b) {
    return a->price.per_hour < b->price.per_hour;
  });
  std::vector<std::string> lines;
  lines.reserve(sorted.size());
  for (const Offer* offer : sorted)
    lines.push_back(fmt::format("{} has {}:{} ({}{}) from {} an hour", offer->provider, offer->gpu,
                                offer->gpus, offer->type, offer->spot ? ", spot" : "",
                                dollars_text(offer->price.per_hour)));
  return lines;
}

Error nothing_found(const Catalog& catalog, const Wish& wish, const Choice& choice) {
  Error error;
  error.code = Errc::unavailable;
  const std::string what = fmt::format("{}{}{}",
                                       wish.gpu.none            ? "machines without GPUs"
                                       : wish.gpu.kinds.empty() ? "machines with GPUs"
                                                                : wish.gpu.text(),
                                       wish.types.empty() ? "" : " of that type",
                                       wish.spot == SpotWish::only ? " on spot" : "");
  if (!choice.left_out.empty()) {
    const LeftOut& best = choice.left_out.front();
    const std::string rate = best.offer.has_price()
                                 ? fmt::format("at {} an hour", dollars_text(best.per_hour))
                                 : "at an unknown price";
    error.message =
        fmt::format("no offer of {} can be taken: the cheapest, {} {} in {} {}, is left out: {}",
                    what, best.offer.provider, best.offer.type,
                    best.offer.zone.empty() ? best.offer.region : best.offer.zone, rate, best.why);
    return error;
  }
  error.message = fmt::format("nobody offers {}", what);
  for (const NoAnswer& silence : catalog.silent) {
    // A provider without credentials was never asked.
    if (silence.no_keys) continue;
    error.message += fmt::format("; {}{}{} said nothing: {}", silence.provider,
                                 silence.region.empty() ? "" : " ", silence.region, silence.why);
    error.hint = fmt::format("`lockstep cloud check {}` says more", silence.provider);
  }
  if (!error.hint.empty()) return error;
  if (!wish.types.empty()) return error;  // alternatives would not be of the type that was named
  std::vector<std::string> near = near_offers(catalog.offers, wish);
  // Live offers first: the built-in tables may be out of date.
  if (near.empty()) near = near_offers(built_in_offers(), wish);
  if (near.size() > 3) near.resize(3);
  for (const std::string& line : near)
    error.hint += (error.hint.empty() ? "near it: " : "; ") + line;
  if (near.empty() && catalog.offers.empty())
    error.hint = "`lockstep cloud check` says which keys are found";
  return error;
}

}  // namespace lockstep::cloud
