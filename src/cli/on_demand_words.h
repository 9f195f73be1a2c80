// What is said of machines on demand: offers as a table, the plan, what goes on, what was found and
// ended on the way, and the bill.
#pragma once

#include "cloud/choice.h"
#include "cloud/reconcile.h"
#include "cloud/rental.h"
#include "cloud/renting.h"
#include "codec/json.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

// "live", "3 min old", "of 2026-07-20".
std::string price_words(const cloud::Price& price, std::int64_t now_ms);
std::string gpus_words(const cloud::Offer& offer);  // "8 x L4 (24 GB)", "no GPUs"
std::string offer_name(const cloud::Offer& offer);  // "aws g6.xlarge in us-east-1a, spot"

// All offers that the wish is about, those that can be taken first; then who said nothing.
std::string offers_table(const cloud::Catalog& catalog, const cloud::Choice& choice,
                         const cloud::Wish& wish, std::int64_t now_ms);
nlohmann::ordered_json offers_json(const cloud::Catalog& catalog, const cloud::Choice& choice,
                                   std::int64_t now_ms);

struct Plan {
  cloud::Candidate first;
  std::vector<cloud::Candidate> next;  // two at most
  int nodes = 1;
  std::int64_t ends_ms = 0;  // 0: nothing ends its bill but the user
  std::int64_t autostop_s = 0;
  std::optional<cloud::Micros> most = {};  // that it can cost; nullopt: nothing bounds it
  bool capped = true;                      // whatever offer is had; false: if the first one is
  std::string fixed_by = {};  // the provider whose machines `keep` can't give more time; "": none
  std::string watcher = {};   // the host that watches the job; "": none
};
Plan plan_of(const cloud::Choice& choice, const cloud::Wish& wish, const cloud::Terms& terms,
             std::int64_t now_ms);
std::string plan_text(const Plan& plan, std::int64_t now_ms);
nlohmann::ordered_json plan_json(const Plan& plan);

std::string event_text(const cloud::RentEvent& event);

// Lines about what was found, ended and not heard; empty: all was as it should be.
std::vector<std::string> sweep_lines(const cloud::Reconciled& swept, std::int64_t now_ms);

}  // namespace lockstep::cli
