// Machines on demand as a cluster: the providers with credentials, the market, renting with first
// contact, and terminating. A rented cluster stands in the registry, with its nodes for as long as
// they exist.
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

// Owns the providers, the journal, the signals and the locks of one process.
class OnDemand {
 public:
  using Tell = std::function<void(const cloud::RentEvent&)>;
  // The step's text names the machine: "gpus-0: sshd does not answer yet".
  using TellStep = std::function<void(const ContactStep& step)>;

  struct Market {
    cloud::Catalog catalog;
    std::int64_t asked_ms = 0;  // 0: no provider was asked yet
  };
  // The name of the cached answer that a sweep found no machine without a rental.
  static constexpr const char* kCleanSweep = "clean-sweep";

  // Opens the journal and the providers. The handled signals must be blocked: a signal during a
  // request ends the request with Errc::canceled.
  static Result<std::unique_ptr<OnDemand>> open();
  OnDemand(const OnDemand&) = delete;
  OnDemand& operator=(const OnDemand&) = delete;
  ~OnDemand();

  cloud::Journal& journal() { return *journal_; }
  cloud::Web& web() { return *web_; }
  // For requests beside the main ones, and for terminating machines.
  cloud::Web& other_web() { return *ending_; }
  // While stop is set, requests through other_web() end at once.
  void stop_other(bool stop);
  const std::string& owner() const { return ground_.owner; }
  const std::string& cache() const { return ground_.cache; }
  GuardHosts& guards() { return *guards_; }
  const GuardHosts& guards() const { return *guards_; }

  // Returns the provider of that name, with or without credentials; nullptr: there is none.
  cloud::Provider* provider(std::string_view name) const;
  // Returns the providers with credentials. names: only these, which must exist and have
  // credentials; empty: all.
  Result<std::vector<cloud::Provider*>> with_keys(const std::vector<std::string>& names) const;
  std::vector<cloud::Provider*> keyed() const;  // all with credentials; may be empty
  const std::vector<std::unique_ptr<cloud::Provider>>& all() const { return providers_; }

  // Asks all providers at the same time for offers that fit the wish. beside: a sweep, which is
  // waited for too.
  Result<Market> ask(const cloud::Wish& wish, bool fresh, const Asking::Waiting& waiting = {},
                     Sweep* beside = nullptr);
  // Runs a whole sweep now, without a time limit.
  Result<cloud::Reconciled> sweep(const Asking::Waiting& waiting);
  // The second half of a sweep: compares the providers' lists with the journal.
  Result<cloud::Reconciled> settle(const std::vector<cloud::Rental>& before,
                                   const std::vector<cloud::Heard>& heard, cloud::Web& web);

  // Makes a rental for this cluster, with keys and user data. The journal does not have it yet.
  Result<cloud::Rental> new_rental(const std::string& cluster, const cloud::Wish& wish,
                                   const cloud::Terms& terms);
  // Rents until a healthy gang runs and stands in the registry. market: the offers that the user
  // has seen; the providers are asked again if it is stale.
  Status rent(cloud::Rental& rental, Market market, const cloud::RentRules& rules, const Tell& tell,
              const TellStep& step);
  // Terminates the machines and removes their cluster. Continues after a first signal to stop; a
  // second signal ends it. patience: how long to wait until the providers report all machines gone.
  Status give_back(cloud::Rental& rental, const Tell& tell,
                   std::chrono::milliseconds patience = cloud::RentRules{}.end_patience);
  // Terminates the machines, which are preempted or of no use, and keeps the rental for new ones.
  Status drop_machines(cloud::Rental& rental, const std::string& why, const Tell& tell);
  // Asks the providers for the state of the machines and writes it into the journal.
  Status look(cloud::Rental& rental);
  // Like look(), but does not write into the journal.
  Status look_only(cloud::Rental& rental);
  Status look_only(cloud::Rental& rental, cloud::Web& web);
  // Returns this machine's public address, "198.51.100.7/32". unavailable: it was not found out.
  static Result<std::string> own_address(cloud::Web& web);
  // Returns the address that may log in to machines of this wish: this machine's public address, or
  // any address if no provider of the wish can close port 22.
  Result<std::string> address_for(const cloud::Wish& wish);
  static bool lets_in(const cloud::Rental& rental, const std::string& address);
  // Opens the ssh port of machines rented from another address to `address`. denied: --allow-from
  // fixed the address.
  Status follow_address(cloud::Rental& rental, const std::string& address,
                        const std::function<void(const std::string& line)>& tell);
  Status open_to(cloud::Rental& rental, const std::string& address);
  // Returns the provider and region of an attempt that may have machines: "AWS EC2 us-east-1".
  std::string rented_where(const cloud::Rental& rental) const;
  // Makes a new host key and new user data, for machines that replace others.
  Status new_keys(cloud::Rental& rental);

  // Returns the cost so far, each provider's minimum billing time included.
  cloud::Micros cost(const cloud::Rental& rental) const;

  // Checks that machines may be rented under that name.
  Status check_name(const std::string& cluster) const;
  // Takes the cluster's lock, without waiting. unavailable: another lockstep holds it.
  Status lock(const std::string& cluster);
  void unlock(const std::string& cluster);
  // Takes the lock for changes of keys and firewall rules in providers' accounts, which several
  // rentals share. Waits up to 60 s, then returns an empty Fd: the holder hangs, and the caller
  // goes on without the lock.
  Result<io::Fd> hold_account();

  // Returns the path of the private key for the cluster's machines.
  static std::string user_key_file(const std::string& cluster);
  // Returns the file whose modification time says when the cluster was last used from here.
  static std::string used_file(const std::string& cluster);
  static void note_use(const std::string& cluster);

  // Returns canceled, with the signal's number as sys, if the user asked to stop. Takes the signal.
  Status check_stopped();
  // Takes all pending signals. Returns the last one, or 0.
  int take_signal();
  int stop_fd() const { return signals_.get(); }  // readable when a signal is pending

 private:
  explicit OnDemand(cloud::Ground ground);
  cloud::RentParts parts(const Tell& tell);
  cloud::RentParts parts_with(cloud::Web& web, cloud::Web& ending, const Tell& tell);
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
  io::Fd quit_;          // eventfd: requests through other_web() must end
  io::Fd ending_stops_;  // epoll of `signals_` and `quit_`
  std::unique_ptr<cloud::Web> web_;
  // Terminates machines. Stops at a second signal only.
  std::unique_ptr<cloud::Web> ending_;
  std::unique_ptr<GuardHosts> guards_;
  std::vector<std::pair<std::string, io::Fd>> locks_;
  SilentMachines silent_machines_;
};

// Returns the rental's machines as places for commands, in the order of their nodes.
std::vector<hosts::HostPlace> rented_places(const cloud::Rental& rental, const std::string& pins,
                                            const std::string& key_path);

}  // namespace lockstep::rent
