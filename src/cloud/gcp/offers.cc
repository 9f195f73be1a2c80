#include "cloud/gcp/offers.h"

#include "base/text.h"
#include "cloud/gcp/types.h"
#include "cloud/gcp/values.h"
#include "cloud/kept_answer.h"
#include "cloud/machine_table.h"
#include "codec/url.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::cloud::gcp {
namespace {

constexpr std::int64_t kMinute = 60'000;
constexpr std::int64_t kDay = 24LL * 60 * kMinute;
constexpr Micros kAddress = 5'000;         // per hour
constexpr Nanos kDiskMonth = 100'000'000;  // per GB, used without a price list
constexpr int kImageGb = 50;               // the largest image that we choose
constexpr int kPlainImageGb = 10;
constexpr int kMostPages = 100;
constexpr std::int64_t kMostOfPrices = 90'000;           // ms, for some thirty pages
constexpr std::string_view kCompute = "6F81-5844-456A";  // Google's number of Compute Engine

const MachineType* built_in_type(const MachineTable& table, const MachineParts& parts) {
  for (const MachineType& row : table.types)
    if (row.type == parts.type && row.gpus == parts.gpus &&
        (row.accelerator.empty() || row.accelerator == parts.accelerator))
      return &row;
  return nullptr;
}

// Sets the price. Returns false if the price is unknown.
bool set_price(Offer& offer, const MachineParts& parts, const PriceList& prices) {
  if (const auto price = price_of(prices.units, parts, offer.region, offer.spot)) {
    offer.price = {price->machine, prices.source, prices.as_of_ms};
    offer.extra_per_hour = price->local_ssd;
    return true;
  }
  // The price list has this GPU in other regions, so Google does not sell it here.
  if (prices.units.has_part(fmt::format("gpu:{}", parts.accelerator))) return false;
  const MachineTable* table = machine_table("gcp");
  const MachineType* row = table == nullptr ? nullptr : built_in_type(*table, parts);
  if (row == nullptr) return false;
  const auto price = offer.spot ? row->spot : row->on_demand;
  if (!price) return false;
  offer.price = {*price, Price::Source::built_in, table->date_ms};
  // The table has the prices of a single region. Say so for other regions.
  if (offer.region != table->region) offer.note = fmt::format("{}'s price", table->region);
  return true;
}

// gpu: nullptr for machines without GPUs.
Offer bare_offer(const Places::Type& type, const Accelerator* accelerator, const Gpu* gpu,
                 bool spot) {
  const Series* series = series_of(type.parts.type);
  Offer offer{.provider = "gcp",
              .region = region_of(type.zone),
              .zone = type.zone,
              .type = type.parts.type,
              .gpu = gpu == nullptr ? "" : gpu->name,
              .gpus = type.parts.gpus,
              .gpu_memory_gb = gpu == nullptr ? 0 : gpu->memory_gb,
              .vcpus = type.parts.vcpus,
              .memory_gb = static_cast<int>(type.parts.memory_mb / 1024),
              .min_disk_gb = gpu == nullptr ? kPlainImageGb : kImageGb,
              .arch = series->arm ? "arm64" : "x86_64",
              .spot = spot,
              .most_nodes = 1000,
              .address_per_hour = kAddress};
  if (gpu != nullptr && accelerator->added()) offer.type += fmt::format("+{}", accelerator->name);
  if (!spot) offer.not_for_sale = series->only;
  return offer;
}

std::string kept_name(const std::string& project) {
  std::string name = "gcp-places-" + project;
  // Projects of a domain contain a colon ("example.com:project").
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}

}  // namespace

Catalog make_offers(const Places& places, const PriceList& prices, const OfferQuery& query,
                    const std::string& project) {
  Catalog catalog{.offers = {}, .silent = places.silent};
  const auto asked = [&](const std::string& region) {
    return query.regions.empty() ||
           std::find(query.regions.begin(), query.regions.end(), region) != query.regions.end();
  };
  bool unpriced = false;
  for (const Places::Type& type : query.gpu.none ? places.plain() : places.with_gpus()) {
    const Accelerator* accelerator = find_accelerator(type.parts.accelerator);
    const Gpu* gpu = accelerator == nullptr ? nullptr : find_gpu(accelerator->gpu);
    if ((gpu == nullptr) != query.gpu.none || !asked(region_of(type.zone)) ||
        !query.gpu.admits(gpu == nullptr ? "" : gpu->name, type.parts.gpus))
      continue;
    Offer offer = bare_offer(type, accelerator, gpu, query.spot);
    if (!set_price(offer, type.parts, prices)) {
      unpriced = true;
      continue;
    }
    const bool hyper = series_of(type.parts.type)->hyperdisk;
    const auto disk =
        prices.units.find(hyper ? "hyperdisk-balanced" : "pd-balanced", offer.region, false);
    offer.disk_per_gb_month = disk.value_or(kDiskMonth) / 1000;
    if (const auto limit = places.quota(type.parts.accelerator, offer.region, offer.spot))
      offer.quota = Quota{
          *limit, offer.gpus, "GPUs",
          fmt::format("https://console.cloud.google.com/iam-admin/quotas?project={}", project)};
    catalog.offers.push_back(std::move(offer));
  }
  if (catalog.offers.empty() && unpriced && !prices.trouble.empty())
    catalog.silent.push_back({.provider = "gcp", .why = "no prices: " + prices.trouble});
  for (const std::string& region : query.regions)
    if (std::find(places.regions.begin(), places.regions.end(), region) == places.regions.end())
      catalog.silent.push_back({.provider = "gcp", .region = region, .why = "no such region"});
  return catalog;
}

Asked<Places> ask_places(Api& api, Web& web, const Ground& ground, bool fresh) {
  const std::string name = kept_name(api.project());
  if (!fresh)
    if (const auto kept = kept_answer(ground.cache, name, web.now_ms(), 10 * kMinute))
      return Places::parse(kept->text);
  // Series with GPUs, n1 machines for added GPUs, and the self-test's e2-small.
  const std::string types =
      codec::percent_code("name eq \"(a2|a3|a4|a4x|g2|g4|n1-standard)-.*|e2-small\"");
  struct List {
    std::string target;
    void (Places::*add)(const nlohmann::json&);
    Places places;
    Asked<void> done;
  };
  const std::string tail = "maxResults=500&returnPartialSuccess=true";
  std::array<List, 4> lists = {{
      {fmt::format("/aggregated/machineTypes?filter={}&{}", types, tail),
       &Places::add_types,
       {},
       {}},
      {"/aggregated/acceleratorTypes?" + tail, &Places::add_accelerators, {}, {}},
      {"/regions?" + tail, &Places::add_regions, {}, {}},
      {"", &Places::add_project, {}, {}},
  }};
  std::vector<std::function<void(Web&)>> jobs;
  jobs.reserve(lists.size());
  for (List& list : lists)
    jobs.push_back([&list, &api](Web& own) {
      list.done = api.ask_pages(own,
                                {.target = api.path(list.target),
                                 .shown = "machine types and quotas",
                                 .values = 1'000'000},
                                kMostPages, [&](const nlohmann::json& page) {
                                  (list.places.*list.add)(page);
                                  return true;
                                });
    });
  web.at_once(jobs);
  Places places = std::move(lists[0].places);
  places.added = std::move(lists[1].places.added);
  places.regions = std::move(lists[2].places.regions);
  places.quotas = std::move(lists[2].places.quotas);
  places.quotas.merge(lists[3].places.quotas);
  for (const List& list : lists)
    if (!list.done) return tl::make_unexpected(list.done.error());
  // Never keep a partial answer: for ten minutes a zone would seem to have no machines.
  if (places.silent.empty()) keep_answer(ground.cache, name, places.text(), web.now_ms());
  return places;
}

PriceList ask_prices(Api& api, Web& web, const Ground& ground, bool fresh) {
  constexpr std::string_view kName = "gcp-prices";
  const std::int64_t now = web.now_ms();
  const auto kept = kept_answer(ground.cache, kName, now, 30 * kDay);
  const auto as_kept = [&](std::string trouble) {
    return PriceList{UnitPrices::parse(kept->text), Price::Source::cached, kept->as_of_ms,
                     std::move(trouble)};
  };
  // Reading the whole price list takes many pages, so a list of today is good enough.
  if (kept && !fresh && now - kept->as_of_ms <= kDay) return as_kept({});
  PriceList list{.units = {}, .source = Price::Source::live, .as_of_ms = now, .trouble = {}};
  bool late = false;
  const auto done = api.ask_pages(
      web,
      {.target = fmt::format("/v1/services/{}/skus?pageSize=5000", kCompute),
       .shown = "the price list",
       .timeout = std::chrono::seconds(30),
       .values = 2'000'000,
       .host = ApiCall::Host::billing},
      kMostPages, [&](const nlohmann::json& page) {
        list.units.add_page(page);
        // Give up after 90 s: a user is waiting, and older prices will do.
        late = web.now_ms() - now > kMostOfPrices && !text_at(page, "nextPageToken").empty();
        return !late;
      });
  if (done && !late && !list.units.empty()) {
    keep_answer(ground.cache, kName, list.units.text(), now);
    return list;
  }
  const std::string trouble = !done  ? done.error().message
                              : late ? "the price list takes too long"
                                     : "the price list is empty";
  // An old price list is better than none: up to 30 days. Users see its age.
  if (kept) return as_kept(trouble);
  return {.units = {}, .source = Price::Source::built_in, .as_of_ms = 0, .trouble = trouble};
}

}  // namespace lockstep::cloud::gcp
