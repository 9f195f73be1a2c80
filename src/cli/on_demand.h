// Renting for a command: asks the market, shows the plan, asks the user, rents. Also terminates
// machines for commands.
#pragma once

#include "base/error.h"
#include "cli/on_demand_options.h"
#include "cloud/reconcile.h"
#include "rent/gang.h"
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
  // The standing rental of a cluster that is rented on use: its wish and terms replace the options.
  std::optional<cloud::Rental> standing = {};
  // For a job: called with the rental before anything is requested; an error stops the renting.
  // With it, the guard here watches spot machines unless the user chose otherwise.
  std::function<Status(const cloud::Rental&)> before = {};
  // The rental gets this id and is written into the journal after `before`, and nothing is
  // requested: the course of the job rents.
  std::optional<std::string> hand_over = {};
  // Called with events and steps, besides telling the user.
  rent::TellEvent on_event = {};
  rent::TellStep on_step = {};
};

// Returns the rental recorded by `cluster add --on-demand` under that name; nullopt: none.
Result<std::optional<cloud::Rental>> standing_rental(rent::OnDemand& world,
                                                     const std::string& cluster);

struct Rented {
  std::optional<cloud::Rental> rental;  // nullopt: only the plan was shown
};

// Takes up the cluster's existing rental, or rents one. After an error all machines are terminated,
// or the error says what is left. canceled: the user said no, or a signal came (sys).
Result<Rented> rent_machines(rent::OnDemand& world, const RentRequest& request);

// Terminates the machines and tells their cost. The error says how the machines end otherwise.
Status give_machines_back(rent::OnDemand& world, std::string_view program, cloud::Rental& rental);

// Returns the rules for --wait.
cloud::RentRules rules_of(const std::optional<std::int64_t>& wait_s);

// Prints a line to stderr: "lockstep up: TEXT".
void tell_line(std::string_view program, const std::string& text);
// Returns a callback that tells which providers have not answered which question.
rent::Asking::Waiting waits_for(std::string_view program, std::string_view what);
inline constexpr std::string_view kForOffers = "what can be rented there";
inline constexpr std::string_view kForLeftovers = "was something of ours left over there";

// Returns the processors of machines that may be rented, in the words of offers ("arm64"): those
// for which a binary is here.
std::vector<std::string> rentable_archs();

// Returns whether a user can be asked.
bool at_terminal();
// Refuses a command that cannot ask the user and has no limit on the cost. Call this before any
// provider is asked.
Status check_consent(const OnDemandOptions& options, const cloud::Terms& terms,
                     const cloud::Wish& wish);
// Asks whether to rent what the plan shows, unless the user has agreed already.
Status consent(rent::OnDemand& world, const OnDemandOptions& options);
// Asks the user. canceled: the answer is no, or a signal came (sys).
Status ask_consent(rent::OnDemand& world, const std::string& question, const char* otherwise);

// Prints what the sweep has found.
void tell_sweep(std::string_view program, cloud::Reconciled swept, std::int64_t now_ms);

}  // namespace lockstep::cli
