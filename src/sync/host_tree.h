// The host's side of a sync: compares the host's tree with the offer, removes files that were sent
// earlier and are gone on the client, and says which files it needs.
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
  std::string records;  // made if missing
};

// Compares and prepares the host's tree, and returns what the host needs. Changes nothing if it
// fails or if the offer is a dry run. Never removes files that Lockstep did not send, and
// overwrites them only if the offer forces it.
Result<Answer> answer_offer(const Offer& offer, const HostFolders& folders);

// Writes the files wanted in an answered offer. Refuses all other files.
class DeliveryTaker {
 public:
  explicit DeliveryTaker(HostFolders folders) : folders_(std::move(folders)) {}
  // All deliveries must be for the destination of the first one.
  Status take(const Delivery& delivery);

 private:
  Status open(const Delivery& delivery);

  HostFolders folders_;
  std::string destination_;
  Record record_;
  std::optional<Confined> tree_;
};

// Returns all files and links at the wish's path, sent by Lockstep or not.
Result<Manifest> list_tree(const Wish& wish, const HostFolders& folders);
// Returns the bytes of each wanted piece, in order. A piece is shorter than wanted if the file has
// shrunk.
Result<std::vector<std::string>> give_contents(const Wish& wish, const HostFolders& folders);

}  // namespace lockstep::sync
