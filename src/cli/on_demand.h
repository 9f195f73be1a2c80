// Renting for a command: the market, the plan, the question, the machines; and giving them back.
#pragma once

#include "base/error.h"
#include "cli/on_demand_options.h"
#include "rent/on_demand.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::cli {

struct RentRequest {
  std::string_view program;  // "lockstep up", for messages
  std::string cluster;
  OnDemandOptions options;
  std::optional<std::string> nodes;
  bool json = false;
  // A cluster that is rented at its use: its wish and terms, in place of the options.
  std::optional<cloud::Rental> standing = {};
  // Of a job: hears of the rental before anything of it is asked for; an error keeps it from that.
  // Spot machines for a job are watched by the guard here, unless the user says otherwise.
  std::function<Status(const cloud::Rental&)> before = {};
  // Hear what goes on besides the user.
  rent::OnDemand::Tell on_event = {};
  rent::OnDemand::TellStep on_step = {};
};

// What `cluster add --on-demand` has noted under that name; nullopt: nothing.
Result<std::optional<cloud::Rental>> standing_rental(rent::OnDemand& world,
                                                     const std::string& cluster);

struct Rented {
  std::optional<cloud::Rental> rental;  // nullopt: only the plan was shown
};

// Takes up what is rented for the cluster already, else rents. Errors: canceled where the user said
// no, or by a signal (sys); whatever there was is given back then, or the error says what is left.
Result<Rented> rent_machines(rent::OnDemand& world, const RentRequest& request);

// Ends them and says what they cost. A failure says how they end all the same.
Status give_machines_back(rent::OnDemand& world, std::string_view program, cloud::Rental& rental);

// For --wait.
cloud::RentRules rules_of(const std::optional<std::int64_t>& wait_s);

// Lines to stderr, as "lockstep up: TEXT".
void tell_line(std::string_view program, const std::string& text);
// Says who has not answered yet, and what.
rent::Asking::Waiting waits_for(std::string_view program, std::string_view what);
inline constexpr std::string_view kForOffers = "what can be rented there";
inline constexpr std::string_view kForLeftovers = "was something of ours left over there";

// Whether somebody can be asked.
bool at_terminal();
// canceled, with the user's signal if there was one: no.
Status ask_consent(rent::OnDemand& world, const std::string& question, const char* otherwise);

// What the sweep has found.
void tell_sweep(std::string_view program, const cloud::Reconciled& swept, std::int64_t now_ms);

}  // namespace lockstep::cli
