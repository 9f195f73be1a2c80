// lockstep offers: shows the price of machines with GPUs at all providers.
#include "base/text.h"
#include "cli/on_demand.h"
#include "cli/on_demand_words.h"
#include "cli/rent_tables.h"
#include "cli/subcommand.h"
#include "cli/swept.h"
#include "codec/json.h"
#include "rent/market.h"

#include <fmt/core.h>

#include <cstdio>

namespace lockstep::cli {
namespace {

Result<ExitCode> show_offers(const Call& call, Swept& swept) {
  OnDemandOptions options;
  UpOptions own;
  fill(offers_table_options(), call.parsed, options);
  fill(offers_table_options(), call.parsed, own);
  if (call.parsed.names.size() != 1)
    return fail(Errc::invalid_input,
                call.parsed.names.empty()
                    ? std::string("no GPU is named")
                    : fmt::format("'{}' is one word too many", printable(call.parsed.names[1])),
                "write lockstep offers A100:8");
  options.gpus = call.parsed.names.front();
  LOCKSTEP_TRY_ASSIGN(cloud::Wish wish, wish_of(options, own.nodes));
  wish.archs = rentable_archs();
  // Also show machines that need a guard. The last column of the table marks such machines.
  wish.guarded = true;
  LOCKSTEP_TRY_ASSIGN(rent::OnDemand* const world, swept.open());
  swept.begin();
  LOCKSTEP_TRY_ASSIGN(const auto market, rent::ask_market(*world, wish, false,
                                                          waits_for(swept.program(), kForOffers)));
  const std::int64_t now = world->web().now_ms();
  // Rank as `up` does: an offer that a provider refused lately stands lower, with the reason.
  LOCKSTEP_TRY_ASSIGN(const auto blocks, world->journal().blocks(now));
  const cloud::Choice choice = cloud::choose(market.catalog.offers, wish, blocks, now);
  if (own.json) {
    std::puts(codec::print_json(offers_json(market.catalog, choice, now)).c_str());
    return choice.candidates.empty() ? ExitCode::failed : ExitCode::ok;
  }
  std::fputs(offers_table(market.catalog, choice, wish, now).c_str(), stdout);
  if (!choice.candidates.empty()) return ExitCode::ok;
  return Failure(cloud::nothing_found(market.catalog, wish, choice));
}

Result<ExitCode> offers_command(const Call& call) {
  return run_swept(call, offers_table_options(), show_offers);
}

}  // namespace

extern constinit const Subcommand kOffers{
    .name = "offers",
    .summary = "show current prices of rented machines with GPUs",
    .table = offers_table_options,
    .run = offers_command,
    .signals = Signals::blocked};

}  // namespace lockstep::cli
