// Rents the machines of a wish, and terminates unwanted machines. Renting makes one attempt after
// another until a whole gang runs. Invariants:
// - An attempt is on disk before any byte of its launch leaves.
// - No node ever has two launches under way at once.
// - While a launch is unanswered, no other launch is made.
#pragma once

#include "base/error.h"
#include "cloud/choice.h"
#include "cloud/journal.h"
#include "cloud/provider.h"
#include "cloud/rental.h"
#include "io/fd.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::cloud {

// Progress, for people.
struct RentEvent {
  enum class Kind {
    asking,     // a launch request is under way
    refused,    // the launch made no machine
    no_answer,  // the launch may have made machines
    booting,    // the machines exist
    running,
    rejected,  // the machines run, but are not usable
    ending,
    not_ended,  // the provider refuses to terminate a machine; `text` says what to do
    pausing,    // no provider has capacity now; `text` says when each is asked again
  };
  Kind kind = Kind::asking;
  const Offer* offer = nullptr;  // may be null
  std::string text = {};
};

// The judgement on running machines: are they fit for the job?
struct Verdict {
  enum class Kind {
    good,
    bad,   // terminate these machines (some may be gone already) and try the next offer
    stop,  // terminate all machines and give up
  };
  Kind kind = Kind::good;
  Error error = {};
};

struct RentRules {
  using ms = std::chrono::milliseconds;
  // The time to wait for capacity. nullopt: for ever. Negative: launch nothing, and only take up
  // machines of an earlier command.
  std::optional<ms> wait = std::chrono::minutes(15);
  ms boot_patience = std::chrono::minutes(20);
  ms unknown_patience = std::chrono::minutes(5);  // to settle an unanswered launch
  ms end_patience = std::chrono::minutes(10);
  ms unlisted = std::chrono::seconds(60);  // lists may lack a new machine for so long
  std::size_t most_kept = 100;             // attempts without machines that the journal keeps
};

struct RentParts {
  Journal& journal;
  Web& web;
  Web& ending;  // for terminating, even after the user stopped `web`
  std::function<Provider*(std::string_view name)> provider;  // nullptr: no credentials for it
  std::function<void(const RentEvent&)> tell;
  // Called when a launch is on disk, before any byte of it leaves. An error cancels the launch.
  std::function<Status(const Rental&)> before_call = {};
  // Takes a lock for the time of prepare(), since another process may change or remove the same
  // firewall rules and keys.
  std::function<Result<io::Fd>()> hold_account = {};
};

class Renting {
 public:
  using AskOffers = std::function<Catalog()>;
  using Judge = std::function<Verdict(Rental&)>;

  explicit Renting(RentParts parts, RentRules rules = {})
      : parts_(std::move(parts)), rules_(rules) {}

  // Rents `rental`, which must be wanted and have keys and user data. Keeps every step in the
  // journal. First settles the launches and machines of an earlier client. On success a whole gang
  // runs, and `judge` has accepted it. After an error no machine is alive, or the error's hint
  // names machines that may be alive.
  Status rent(Rental& rental, const AskOffers& offers, const Judge& judge);

  // Terminates all machines, and closes the rental once all machines were seen gone.
  Status give_back(Rental& rental);
  // Terminates the open attempts of a rental that stays wanted: its machines were preempted or bad.
  Status end_all(Rental& rental, const std::string& why);

  // Updates the state of all machines from the providers' lists. note: also writes the state to the
  // journal.
  Status look(Rental& rental, bool note = true);
  // Returns whether every node of the newest gang runs.
  static bool whole(const Rental& rental);
  // Returns whether the newest gang can never be whole: a machine has ended or is unusable.
  static bool lost(const Rental& rental);

 private:
  struct Tried {
    enum class What { got, next, stop };
    What what = What::next;
    Error error = {};
    std::vector<std::string> zones_to_try = {};
  };

  Status rest(const Rental& rental, RentRules::ms time);
  Status keep(const Rental& rental) { return parts_.journal.keep(rental); }
  void tell(RentEvent::Kind kind, const Offer* offer, std::string text = {}) const;
  LaunchSpec spec_of(const Rental& rental, const Attempt& attempt) const;

  Status course(Rental& rental, const AskOffers& offers, const Judge& judge);
  Status settle_old(Rental& rental);
  Status take_up(Rental& rental, const Judge& judge);
  Result<bool> pass(Rental& rental, const AskOffers& offers, const Judge& judge, bool first);
  Result<std::int64_t> asked_again_ms(const std::vector<Candidate>& all) const;
  std::string pause_words(std::chrono::milliseconds pause, std::int64_t until_ms) const;
  Result<std::int64_t> lease_of(const Rental& rental, const Candidate& candidate) const;
  void drop_unpaid(const Rental& rental, std::vector<Candidate>& candidates);
  Tried try_offer(Rental& rental, const Candidate& candidate, const Judge& judge);
  Tried launch_gang(Rental& rental, const Candidate& candidate);
  Tried launch_one(Rental& rental, Attempt attempt, Provider& provider);
  Tried bring_up(Rental& rental);
  std::optional<Tried> lost_one(Rental& rental);
  void end_surplus(Attempt& attempt, Provider& provider);
  Tried refused(const Offer& offer, const LaunchOutcome& outcome);
  Tried silent(const Offer& offer, const std::string& message);
  void forget_old(Rental& rental) const;
  Status settle(Rental& rental, std::size_t at, const LaunchOutcome& outcome);
  Status resolve(Rental& rental, std::size_t at, Provider& provider, Web& web,
                 LaunchOutcome& outcome);
  void end_listed(const Rental& rental, const Offer& offer, Provider& provider);
  Status see(Rental& rental, Attempt& attempt, Provider& provider, Web& web);
  bool seen_gone(const Attempt& attempt, std::int64_t now) const;
  static void close(Attempt& attempt, std::int64_t now);
  Tried judged(Rental& rental, Tried tried, const Offer& offer, const Judge& judge);
  Tried rejected(Rental& rental, const Offer& offer, const Error& why);
  Status ask_to_end(Attempt& attempt, Provider& provider, Web& web);
  void tell_refused_end(const Attempt& attempt, const Provider& provider, const Error& why);
  bool is_out(const Offer& offer) const;
  void start_ending(Attempt& attempt, const std::string& why) const;
  Status end_attempt(Rental& rental, std::size_t at, const std::string& why);
  Failure not_gone(const Offer& offer, const Error& trouble) const;
  Status learn(const Offer& offer, Block::Kind kind, const std::string& why);

  RentParts parts_;
  RentRules rules_;
  std::set<std::string> out_;       // providers out for this command (Refusal::provider_out)
  std::set<std::string> spot_out_;  // providers out for spot (Refusal::spot_out)
  std::set<std::pair<int, std::string>> refused_ends_;  // reported attempts and reasons
  int unknown_codes_ = 0;
  std::vector<Block> learned_;  // refusals in this command
  bool hope_ = true;            // some offer may have capacity later
  std::int64_t again_ms_ = 0;   // Unix time at which the first offer may be asked again
  Error last_;                  // the last refusal
};

}  // namespace lockstep::cloud
