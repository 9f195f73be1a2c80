// The memory of one command for refused launches and bad machines. Says which offers to leave out,
// and keeps the last refusal.
#pragma once

#include "base/error.h"
#include "cloud/choice.h"
#include "cloud/renting_parts.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::cloud {

// The end of a try to rent an offer.
struct Tried {
  enum class What { got, next, stop };
  What what = What::next;
  Error error = {};
  std::vector<std::string> zones_to_try = {};  // zones that the refusal named as having capacity
};

inline Tried stopped_by(Error error) {
  return {.what = Tried::What::stop, .error = std::move(error)};
}

class RefusalMemory {
 public:
  // parts: must outlive this object.
  explicit RefusalMemory(const RentParts& parts) : parts_(parts) {}

  // Takes in a refused launch. Returns what to try next.
  Tried refused(const Offer& offer, const LaunchOutcome& outcome);
  // Takes in a preparation without an answer: nothing was launched.
  Tried silent(const Offer& offer, const std::string& message);
  // Remembers any other reason to try the next offer.
  void note(Error why) { last_ = std::move(why); }
  const Error& last() const { return last_; }
  // Leaves offers out for a while, here and in the journal.
  Status learn(const Offer& offer, Block::Kind kind, const std::string& why);

  // Returns whether the provider refused this account, or this account's spot machines.
  bool is_out(const Offer& offer) const;
  const std::vector<Block>& learned() const { return learned_; }

 private:
  const RentParts& parts_;
  std::set<std::string> out_;       // providers out for this command (Refusal::provider_out)
  std::set<std::string> spot_out_;  // providers out for spot (Refusal::spot_out)
  int unknown_codes_ = 0;
  std::vector<Block> learned_;  // refusals in this command
  Error last_;                  // the last reason to try the next offer
};

}  // namespace lockstep::cloud
