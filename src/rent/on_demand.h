// Machines on demand, as a cluster: the providers whose keys are found, the market, renting with
// first contact, and giving back. A cluster that is rented stands in the registry with its nodes
// while they are there.
#pragma once

#include "base/error.h"
#include "cloud/journal.h"
#include "cloud/provider.h"
#include "cloud/reconcile.h"
#include "cloud/renting.h"
#include "hosts/host_link.h"
#include "hosts/registry.h"
#include "io/fd.h"
#include "rent/guard_hosts.h"
#include "rent/rented_host.h"
#include "rent/silent_port.h"
#include "rent/sweep.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::rent {

class BootWatch;

// The step of a first contact with a machine that does not have the host key that it was given.
inline constexpr std::string_view kOwnHostKey =
    "its image has made a host key of its own: what its provider knows counts";

class OnDemand {
 public:
  using Tell = std::function<void(const cloud::RentEvent&)>;
  // Words about one machine, for people: "gpus-0: sshd does not answer yet".
  using TellStep = std::function<void(const std::string& line)>;

  struct Market {
    cloud::Catalog catalog;
    std::int64_t asked_ms = 0;  // 0: nobody was asked yet
  };
  // The kept answer that nothing of ours was there that nobody wanted.
  static constexpr const char* kCleanSweep = "clean-sweep";

  // The handled signals must be blocked: one that comes while something is asked ends that with
  // Errc::canceled.
  static Result<std::unique_ptr<OnDemand>> open();
  OnDemand(const OnDemand&) = delete;
  OnDemand& operator=(const OnDemand&) = delete;
  ~OnDemand();

  cloud::Journal& journal() { return *journal_; }
  cloud::Web& web() { return *web_; }
  // For what is asked beside the first, and for giving back.
  cloud::Web& other_web() { return *ending_; }
  // What is asked through it ends at once, as long as this is so.
  void stop_other(bool stop);
  const std::string& owner() const { return ground_.owner; }
  const std::string& cache() const { return ground_.cache; }
  GuardHosts& guards() { return *guards_; }
  const GuardHosts& guards() const { return *guards_; }

  // By name, with keys or without; nullptr: there is none.
  cloud::Provider* provider(std::string_view name) const;
  // Those with keys. names: only these, which must be known and have keys; empty: all.
  Result<std::vector<cloud::Provider*>> with_keys(const std::vector<std::string>& names) const;
  std::vector<cloud::Provider*> keyed() const;  // all that have, which may be none
  const std::vector<std::unique_ptr<cloud::Provider>>& all() const { return providers_; }

  // Asks all providers at once for what the wish may take. beside: a sweep, which is waited for.
  Result<Market> ask(const cloud::Wish& wish, bool fresh, const Asking::Waiting& waiting = {},
                     Sweep* beside = nullptr);
  // Looks at once, however long it takes.
  Result<cloud::Reconciled> sweep(const Asking::Waiting& waiting);
  // The second half of a sweep that has listed what is there.
  Result<cloud::Reconciled> settle(const std::vector<cloud::Rental>& before,
                                   const std::vector<cloud::Heard>& heard, cloud::Web& web);

  // A rental for this cluster, not yet kept: keys and user data made.
  Result<cloud::Rental> new_rental(const std::string& cluster, const cloud::Wish& wish,
                                   const cloud::Terms& terms);
  // Until a healthy gang runs and stands in the registry. market: what was shown to the user; it is
  // asked again when it is no longer fresh.
  Status rent(cloud::Rental& rental, Market market, const cloud::RentRules& rules, const Tell& tell,
              const TellStep& step);
  // Ends the machines and forgets their cluster. Goes on where the user has asked to stop; a second
  // signal ends it. patience: until all must be seen gone.
  Status give_back(cloud::Rental& rental, const Tell& tell,
                   std::chrono::milliseconds patience = cloud::RentRules{}.end_patience);
  // Ends its machines, which are taken or of no use, and keeps the rental wanted.
  Status drop_machines(cloud::Rental& rental, const std::string& why, const Tell& tell);
  // How its machines are now, as the journal is told.
  Status look(cloud::Rental& rental);
  // The same, and nothing is noted.
  Status look_only(cloud::Rental& rental);
  Status look_only(cloud::Rental& rental, cloud::Web& web);
  // This machine's public address, "198.51.100.7/32".
  static Result<std::string> own_address(cloud::Web& web);
  // Who may log in to machines of this wish: this machine's public address, or everybody where no
  // provider of the wish can close port 22.
  Result<std::string> address_for(const cloud::Wish& wish);
  static bool lets_in(const cloud::Rental& rental, const std::string& address);
  // Where they were rented from another address: opens their port to this one.
  Status follow_address(cloud::Rental& rental, const std::string& address, const TellStep& step);
  Status open_to(cloud::Rental& rental, const std::string& address);
  // "AWS EC2 us-east-1": of what may be alive.
  std::string rented_where(const cloud::Rental& rental) const;
  // A new host key and user data, for machines that take the place of others.
  Status new_keys(cloud::Rental& rental);

  // The cost so far, with each provider's least billing.
  cloud::Micros cost(const cloud::Rental& rental) const;

  // Whether machines may be rented under that name.
  Status check_name(const std::string& cluster) const;
  // Another lockstep has it: unavailable.
  Status lock(const std::string& cluster);
  void unlock(const std::string& cluster);
  // While it is held no other lockstep of this user makes, changes or removes what machines need in
  // an account beside them: keys, rules. Empty: whoever has it does not go on, and it was waited
  // for long enough.
  Result<io::Fd> hold_account();

  // The private key that logs in to the cluster's machines.
  static std::string user_key_file(const std::string& cluster);
  // The file whose time says when the cluster's machines were last used from here.
  static std::string used_file(const std::string& cluster);
  static void note_use(const std::string& cluster);

  // canceled, with the signal as sys: the user has asked to stop, which is heeded hereby.
  Status check_stopped();
  // Takes the signals that have come; the last of them, or 0.
  int take_signal();
  int stop_fd() const { return signals_.get(); }  // readable when there is one

 private:
  explicit OnDemand(cloud::Ground ground);
  cloud::Renting renting(const cloud::RentRules& rules, const Tell& tell);
  cloud::Renting renting_by(cloud::Web& web, cloud::Web& ending, const cloud::RentRules& rules,
                            const Tell& tell);
  Result<std::unique_ptr<BootWatch>> watch_boot(const cloud::Rental& rental);
  cloud::Verdict first_contact(cloud::Rental& rental, const TellStep& step);
  cloud::Verdict verdict_of(const std::vector<FirstContact>& met);
  void note_address(const std::string& cluster, const std::string& address);
  Status take_name(const cloud::Rental& rental) const;
  Status enter_registry(const cloud::Rental& rental) const;
  Status leave_registry(const std::string& cluster) const;
  std::string folder_of(const std::string& cluster) const;

  cloud::Ground ground_;
  std::vector<std::unique_ptr<cloud::Provider>> providers_;
  std::unique_ptr<cloud::Journal> journal_;
  io::Fd signals_;
  io::Fd quit_;          // an eventfd: what is asked beside has become of no use
  io::Fd ending_stops_;  // of both
  std::unique_ptr<cloud::Web> web_;
  std::unique_ptr<cloud::Web> ending_;  // heeds only a second signal
  std::unique_ptr<GuardHosts> guards_;
  std::vector<std::pair<std::string, io::Fd>> locks_;
  SilentMachines silent_machines_;
};

// Its machines as places for commands, in the order of their nodes.
std::vector<hosts::HostPlace> rented_places(const cloud::Rental& rental, const std::string& pins,
                                            const std::string& key_path);

}  // namespace lockstep::rent
