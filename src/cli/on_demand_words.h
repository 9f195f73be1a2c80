// Texts about machines on demand: offers as a table, the plan, events, the sweep's results, and
// costs.
#pragma once

#include "cloud/choice.h"
#include "cloud/reconcile.h"
#include "cloud/rental.h"
#include "cloud/renting_parts.h"
#include "codec/json.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

// Returns how old a price is: "live", "3 min old", or "of 2026-07-20" for a built-in price.
std::string price_words(const cloud::Price& price, std::int64_t now_ms);
std::string gpus_words(const cloud::Offer& offer);  // "8 x L4 (24 GB)", "no GPUs"
std::string offer_name(const cloud::Offer& offer);  // "aws g6.xlarge in us-east-1a, spot"

// Returns a table of all matching offers, available ones first, then the silent providers.
std::string offers_table(const cloud::Catalog& catalog, const cloud::Choice& choice,
                         const cloud::Wish& wish, std::int64_t now_ms);
// Returns the same for programs, with one entry for each zone.
nlohmann::ordered_json offers_json(const cloud::Catalog& catalog, const cloud::Choice& choice,
                                   std::int64_t now_ms);

// The purchase that the user is asked to confirm.
struct Plan {
  cloud::Candidate first;
  std::vector<cloud::Candidate> next;  // at most two
  int nodes = 1;
  std::int64_t ends_ms = 0;  // 0: only the user ends the bill
  std::int64_t autostop_s = 0;
  std::optional<cloud::Micros> most = {};  // upper limit of the cost; nullopt: there is none
  bool capped = true;         // true: `most` holds for every offer; false: only for those shown
  std::string fixed_by = {};  // provider whose machines `keep` cannot extend; "": none
};
// Returns the plan for the cheapest candidate. choice: has at least one candidate.
Plan plan_of(const cloud::Choice& choice, const cloud::Wish& wish, const cloud::Terms& terms,
             std::int64_t now_ms);
std::string plan_text(const Plan& plan, std::int64_t now_ms);
nlohmann::ordered_json plan_json(const Plan& plan);

// Returns one line about a step of the renting.
std::string event_text(const cloud::RentEvent& event);

// Returns lines about machines found, terminated and unknown; empty: nothing to report.
std::vector<std::string> sweep_lines(const cloud::Reconciled& swept, std::int64_t now_ms);

}  // namespace lockstep::cli
