// The host's side of a sync: compares what lies there with what is offered, removes what was sent
// earlier and is gone at the client, and says what it needs.
#pragma once

#include "base/error.h"
#include "sync/offer.h"

#include <string>

namespace lockstep::sync {

struct HostFolders {
  std::string home;
  std::string records;  // made where it is missing
};

// Nothing is changed where this fails, and nothing by a dry run. What was not sent by Lockstep is
// never removed, and overwritten only if the offer forces it.
Result<Answer> answer_offer(const Offer& offer, const HostFolders& folders);

}  // namespace lockstep::sync
