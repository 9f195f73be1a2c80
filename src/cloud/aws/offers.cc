#include "cloud/aws/offers.h"

#include "base/text.h"
#include "cloud/aws/market.h"
#include "cloud/aws/places.h"
#include "cloud/aws/quota_table.h"
#include "cloud/bounded_web.h"
#include "cloud/machine_table.h"

#include <fmt/core.h>

#include <set>

namespace lockstep::cloud::aws {
namespace {

using Jobs = std::vector<std::function<void(Web&)>>;

// Limits all questions together: a silent region answers none of its questions.
constexpr std::chrono::seconds kMostTime{10};

Asked<KeptRows> not_asked() {
  return tl::make_unexpected(without_answer({}, false));
}

std::vector<std::string> wanted_types(const OfferQuery& query) {
  std::vector<std::string> types;
  for (const MachineType& type : machine_table("aws")->types)
    if (query.gpu.admits(type.gpu, type.gpus)) types.push_back(type.type);
  return types;
}

// Collects questions and asks them at once. Skips questions with a kept answer.
struct Asking {
  Web& web;
  Api& api;
  bool fresh = false;
  Jobs jobs = {};

  // `to` must not be written by another question.
  void add(KeptQuestion question, Asked<KeptRows>& to) {
    if (fresh) question.most_age_ms = 0;
    if (auto kept = rows_at_hand(web, api, question)) {
      to = std::move(*kept);
      return;
    }
    jobs.emplace_back([this, &to, question = std::move(question)](Web& own) {
      to = kept_rows(own, api, question);
    });
  }
  void run() {
    if (jobs.size() == 1)
      jobs[0](web);
    else if (!jobs.empty())
      web.at_once(jobs);
  }
};

// Asks all questions about all regions at once.
void ask_regions_at_once(Web& web, Api& api, const OfferQuery& query,
                         std::vector<RegionNews>& news) {
  std::set<std::string> codes;
  for (const std::string& type : wanted_types(query))
    if (const auto code = quota_code(type, query.spot); !code.empty()) codes.emplace(code);
  Asking asking{.web = web, .api = api, .fresh = query.fresh};
  for (RegionNews& one : news) {
    asking.add(zones_question(api, one.region), one.zones);
    asking.add(types_question(api, one.region), one.types);
    if (query.spot) asking.add(spot_question(api, one.region), one.spot.emplace(not_asked()));
    for (const std::string& code : codes)
      asking.add(quota_question(api, one.region, code),
                 one.quotas.emplace(code, not_asked()).first->second);
  }
  asking.run();
}

struct Heard {
  std::vector<RegionNews> news;
  PriceNews prices;
  Asked<std::vector<std::string>> regions;
};

void hear_of_regions(Web& web, Api& api, const OfferQuery& query, Heard& heard) {
  heard.regions = query.regions.empty() ? open_regions(web, api, query.fresh ? 0 : kDayMs)
                                        : Asked<std::vector<std::string>>(query.regions);
  // Without an answer use the regions of the last day.
  if (!heard.regions) heard.regions = open_regions(web, api, kDayMs);
  if (!heard.regions) return;
  for (const std::string& region : *heard.regions)
    heard.news.push_back({.region = region, .zones = not_asked(), .types = not_asked()});
  ask_regions_at_once(web, api, query, heard.news);
}

NoAnswer whole_silence(const ApiFailure& trouble) {
  NoAnswer silence{.provider = "aws", .why = trouble.message};
  silence.no_keys = trouble.kind == ApiFailure::Kind::no_keys;
  if (!silence.no_keys && !trouble.hint.empty()) silence.why += "; " + trouble.hint;
  return silence;
}

}  // namespace

Catalog find_offers(Web& patient, Api& api, const OfferQuery& query) {
  Catalog catalog;
  BoundedWeb web(patient, io::Clock::now() + kMostTime);
  if (const auto ready = api.ready(web); !ready)
    return {.offers = {}, .silent = {whole_silence(ready.error())}};
  const std::vector<std::string> types = wanted_types(query);
  // AWS sells no such GPU: ask nothing.
  if (types.empty()) return catalog;
  Heard heard;
  Asking asking{.web = web, .api = api, .fresh = query.fresh};
  // Ask for prices first: they take longest and do not depend on the list of regions.
  asking.jobs.emplace_back([&](Web& own) { hear_of_regions(own, api, query, heard); });
  for (const std::string& type : types)
    asking.add(price_question(api, type), heard.prices.emplace(type, not_asked()).first->second);
  asking.run();
  if (!heard.regions) return {.offers = {}, .silent = {whole_silence(heard.regions.error())}};
  for (const RegionNews& news : heard.news) {
    if (const ApiFailure* trouble = missing_news(news))
      catalog.silent.push_back(region_silence(web, api, news.region, *trouble));
    for (Offer& offer : region_offers(news, heard.prices, query))
      catalog.offers.push_back(std::move(offer));
  }
  return catalog;
}

}  // namespace lockstep::cloud::aws
