// The one exchange of a sync: the client offers its manifest, and the host answers with the files
// it needs. Pure bytes. Both ends are always the same build, so the format has no version.
#pragma once

#include "base/error.h"
#include "sync/manifest.h"
#include "sync/record.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::sync {

struct Offer {
  std::string destination = {};  // relative to the host's home, or absolute
  Owner owner = {};
  bool force = false;    // take over a tree of another owner, and overwrite files in the way
  bool dry_run = false;  // change nothing, only answer
  bool told = false;     // the user has been told what will be removed
  Manifest manifest = {};
};
std::string encode_offer(const Offer& offer);
Result<Offer> decode_offer(std::string_view bytes);

// A range of entries of the offered manifest, both ends included.
struct Span {
  std::size_t first;
  std::size_t last;
  bool operator==(const Span&) const = default;
};

struct Answer {
  std::string place;   // absolute path of the tree on the host
  std::string drafts;  // folder on the host's same file system for files in transfer; "": none
  bool rsync = false;  // rsync is installed on the host
  std::vector<Span> needed = {};
  std::size_t removed = 0;  // sent earlier and gone on the client, or forced out of the way
  std::vector<std::string> removals = {};  // the paths of `removed`, at most 1,000
  // True: nothing has changed yet, because something must be removed. The client tells the user and
  // sends the same offer again with `told`.
  bool waits = false;
  std::size_t edited = 0;              // sent earlier, edited on the host, now overwritten
  std::vector<std::string> kept = {};  // gone on the client but edited on the host: left alone
  // Never sent, equal once, and changed only on the host since: left alone.
  std::vector<std::string> theirs = {};
  std::vector<std::string> remarks = {};

  bool operator==(const Answer&) const = default;
};
// Prints JSON. An error of the host is an answer, too.
std::string print_answer(const Result<Answer>& answer);
// offered: the number of entries in the offer; spans beyond it are refused.
Result<Answer> parse_answer(std::string_view json, std::size_t offered);

// Returns the needed entries.
Manifest pick(const Manifest& manifest, const std::vector<Span>& needed);

}  // namespace lockstep::sync
