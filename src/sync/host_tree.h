// The host's side of a sync: compares what lies there with what is offered, removes what was sent
// earlier and is gone at the client, and says what it needs.
#pragma once

#include "base/error.h"
#include "sync/confined.h"
#include "sync/offer.h"
#include "sync/pieces.h"
#include "sync/record.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::sync {

struct HostFolders {
  std::string home;
  std::string records;  // made where it is missing
};

// Nothing is changed where this fails, and nothing by a dry run. What was not sent by Lockstep is
// never removed, and overwritten only if the offer forces it.
Result<Answer> answer_offer(const Offer& offer, const HostFolders& folders);

// Writes what the host has said that it needs. Only files of an offer that was answered are taken.
class DeliveryTaker {
 public:
  explicit DeliveryTaker(HostFolders folders) : folders_(std::move(folders)) {}
  // All deliveries are for the place of the first.
  Status take(const Delivery& delivery);

 private:
  Status open(const Delivery& delivery);

  HostFolders folders_;
  std::string destination_;
  Record record_;
  std::optional<Confined> tree_;
};

// The files and links at the wish's path, whoever put them there.
Result<Manifest> list_tree(const Wish& wish, const HostFolders& folders);
Result<std::vector<std::string>> give_contents(const Wish& wish, const HostFolders& folders);

}  // namespace lockstep::sync
