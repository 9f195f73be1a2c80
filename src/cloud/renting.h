// Fulfils a wish: one attempt after another, each on disk before a byte leaves, until a whole gang
// runs; and gives back what is not wanted. Never two launches for one wanted node at once, and
// nothing else is tried while an answer is missing.
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

// What goes on, for people.
struct RentEvent {
  enum class Kind {
    asking,     // a launch is on its way
    refused,    // and came to nothing
    no_answer,  // nobody knows yet whether it exists
    booting,    // it exists
    running,
    rejected,  // it runs, and is of no use
    ending,
    not_ended,  // the provider refuses to end a machine; `text` says which and what to do
    pausing,    // nobody has it now; `text` says who is asked when
  };
  Kind kind = Kind::asking;
  const Offer* offer = nullptr;  // may be null
  std::string text = {};
};

// Whether machines that run are good for the job.
struct Verdict {
  enum class Kind {
    good,
    bad,   // these are ended, the next offer is tried; they may be gone already
    stop,  // all are ended
  };
  Kind kind = Kind::good;
  Error error = {};
};

struct RentRules {
  using ms = std::chrono::milliseconds;
  // For somebody to have it; nullopt: for ever; less than 0: only what was asked for is taken up.
  std::optional<ms> wait = std::chrono::minutes(15);
  ms boot_patience = std::chrono::minutes(20);
  ms unknown_patience = std::chrono::minutes(5);  // for an answer that did not come
  ms end_patience = std::chrono::minutes(10);
  ms unlisted = std::chrono::seconds(60);  // a new machine may be missing in lists so long
  std::size_t most_kept = 100;             // of attempts that came to nothing, in the journal
};

struct RentParts {
  Journal& journal;
  Web& web;
  Web& ending;  // for giving back: goes on where the user has asked `web` to stop
  std::function<Provider*(std::string_view name)> provider;  // nullptr: not there
  std::function<void(const RentEvent&)> tell;
  // Once a launch is on disk and before a byte of it goes out. An error: it does not.
  std::function<Status(const Rental&)> before_call = {};
  // Held while prepare() makes what a launch needs: others may remove that, or change it, too.
  std::function<Result<io::Fd>()> hold_account = {};
};

class Renting {
 public:
  using AskOffers = std::function<Catalog()>;
  using Judge = std::function<Verdict(Rental&)>;

  explicit Renting(RentParts parts, RentRules rules = {})
      : parts_(std::move(parts)), rules_(rules) {}

  // rental: wanted, with keys and user data; kept in the journal all along. Settles first what an
  // earlier client left of it. On success a whole gang runs, which `judge` has found good. On an
  // error nothing of it is alive, or the error's hint says what may be.
  Status rent(Rental& rental, const AskOffers& offers, const Judge& judge);

  // Ends all of it, and closes it when everything was seen gone.
  Status give_back(Rental& rental);
  // Ends those attempts of a rental that stays wanted: its machines are taken, or bad.
  Status end_all(Rental& rental, const std::string& why);

  // How its machines are now; those that are gone are noted as gone.
  Status look(Rental& rental, bool note = true);
  // Whether the newest gang is whole and runs.
  static bool whole(const Rental& rental);
  // Whether the newest gang will never be whole: a machine has ended, or is of no use any more.
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
  std::set<std::string> out_;                           // providers that are out, for this command
  std::set<std::string> spot_out_;                      // those whose spot is
  std::set<std::pair<int, std::string>> refused_ends_;  // attempts and reasons that were told
  int unknown_codes_ = 0;
  std::vector<Block> learned_;  // by this command
  bool hope_ = true;            // there are offers that may be had later
  std::int64_t again_ms_ = 0;   // when somebody of the last pass may be asked again
  Error last_;                  // the last refusal
};

}  // namespace lockstep::cloud
