// What a host knows of a tree that was sent to it: by whom, and which files. It decides what may be
// removed or overwritten there.
#pragma once

#include "base/error.h"
#include "sync/manifest.h"

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::sync {

struct Owner {
  std::string host = {};  // for messages: it can change
  std::string root = {};
  std::string installation = {};  // a random id that the client's user keeps; empty: not known
  bool operator==(const Owner&) const = default;
};
std::string owner_text(const Owner& owner);  // "laptop:/home/me/project", for messages
// The root and the installation decide. The host's name stands in where an installation is not
// known, as in records of older versions.
bool same_owner(const Owner& a, const Owner& b);
void encode_owner(const Owner& owner, std::string& out);
std::optional<Owner> decode_owner(std::string_view& bytes);

struct Record {
  std::string place;  // where the tree lies, absolute
  Owner owner;
  Manifest sent = {};    // known to have arrived
  Manifest coming = {};  // may have arrived: a transfer was begun
  Manifest met = {};     // was the same on both sides already, and is never removed
};

std::string encode_record(const Record& record);
Result<Record> decode_record(std::string_view bytes);

// "HASH" of a place: its record's name in the folder of records.
std::string record_name(std::string_view place);

}  // namespace lockstep::sync
