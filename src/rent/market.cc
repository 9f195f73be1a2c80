#include "rent/market.h"

#include "rent/on_demand.h"
#include "rent/sweep.h"

#include <iterator>
#include <utility>
#include <vector>

namespace lockstep::rent {

Result<Market> ask_market(OnDemand& world, const cloud::Wish& wish, bool fresh,
                          const Asking::Waiting& waiting, Sweep* beside) {
  LOCKSTEP_TRY_ASSIGN(const auto asked, world.providers().with_keys(wish.providers));
  std::vector<cloud::OfferQuery> queries;
  for (const bool spot : {false, true}) {
    if (spot ? wish.spot == cloud::SpotWish::no : wish.spot == cloud::SpotWish::only) continue;
    queries.push_back({.gpu = wish.gpu, .spot = spot, .regions = wish.regions, .fresh = fresh});
  }
  std::vector<cloud::Catalog> catalogs(asked.size() * queries.size());
  std::vector<Asking::Job> jobs;
  for (std::size_t i = 0; i < catalogs.size(); ++i) {
    const cloud::OfferQuery& query = queries[i % queries.size()];
    cloud::Provider* provider = asked[i / queries.size()];
    if (query.spot && !provider->traits().has_spot) continue;
    jobs.push_back(
        {provider->traits().name, [&catalog = catalogs[i], provider, &query](cloud::Web& web) {
           catalog = provider->offers(web, query);
         }});
  }
  Market market;
  market.asked_ms = world.now_ms();
  // All providers at once: the slowest one alone decides how long the user waits.
  Asking(world.web(), std::move(jobs)).wait(waiting);
  // All requests must be over before a signal is taken: each request looks for the signal itself.
  if (beside != nullptr) beside->wait();
  LOCKSTEP_TRY(world.signals().check());
  for (cloud::Catalog& part : catalogs) {
    std::move(part.offers.begin(), part.offers.end(), std::back_inserter(market.catalog.offers));
    std::move(part.silent.begin(), part.silent.end(), std::back_inserter(market.catalog.silent));
  }
  // If the user named no provider, list those without credentials too: the user sees what was not
  // asked.
  if (!wish.providers.empty()) return market;
  for (const auto& one : world.providers().all())
    if (auto keys = one->keys(); !keys)
      market.catalog.silent.push_back({.provider = std::string(one->traits().name),
                                       .why = keys.error().message,
                                       .no_keys = true});
  return market;
}

}  // namespace lockstep::rent
