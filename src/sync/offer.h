// The one question that decides a sync: the client offers its manifest, the host says which files
// it needs. Both as bytes; pure. The two ends are always the same build.
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
  std::string destination = {};  // relative to the home there, or absolute
  Owner owner = {};
  bool force = false;    // takes over what others sent, overwrites what is in the way
  bool dry_run = false;  // only says what would be
  bool told = false;     // the user knows what will be removed
  Manifest manifest = {};
};
std::string encode_offer(const Offer& offer);
Result<Offer> decode_offer(std::string_view bytes);

// Entries of the offered manifest, [first, last].
struct Span {
  std::size_t first;
  std::size_t last;
  bool operator==(const Span&) const = default;
};

struct Answer {
  std::string place;   // absolute, where the tree lies there
  std::string drafts;  // a folder there on the same file system, for files that are not whole yet
  bool rsync = false;  // it is installed there
  std::vector<Span> needed = {};
  std::size_t removed = 0;                 // sent earlier and gone here, or forced out of the way
  std::vector<std::string> removals = {};  // their names, or some of them
  // Nothing was changed yet, as something is to be removed: the same offer comes again once the
  // user was told.
  bool waits = false;
  std::size_t edited = 0;              // sent earlier, changed there, now overwritten
  std::vector<std::string> kept = {};  // gone here, and not there as they were sent: left alone
  // Changed there and not here since both were the same, and never sent: left alone.
  std::vector<std::string> theirs = {};
  std::vector<std::string> remarks = {};

  bool operator==(const Answer&) const = default;
};
// JSON. An error of the host is an answer too.
std::string print_answer(const Result<Answer>& answer);
// offered: how many entries the spans may speak of.
Result<Answer> parse_answer(std::string_view json, std::size_t offered);

// The entries that are needed.
Manifest pick(const Manifest& manifest, const std::vector<Span>& needed);

}  // namespace lockstep::sync
