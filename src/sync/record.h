// The host's record of a received tree: its owner and its files. The record decides about removing
// and overwriting files.
#pragma once

#include "base/error.h"
#include "sync/manifest.h"

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::sync {

struct Owner {
  std::string host = {};  // for messages only; a machine may be renamed
  std::string root = {};
  std::string installation = {};  // a random id kept by the client's user; empty: unknown
  bool operator==(const Owner&) const = default;
};
std::string owner_text(const Owner& owner);  // "laptop:/home/me/project", for messages
// Compares root and installation. The host's name stands in if an installation is unknown, as in
// records of older versions.
bool same_owner(const Owner& a, const Owner& b);
void encode_owner(const Owner& owner, std::string& out);
std::optional<Owner> decode_owner(std::string_view& bytes);

struct Record {
  std::string place;  // absolute path of the tree
  Owner owner;
  Manifest sent = {};    // have arrived
  Manifest coming = {};  // may have arrived: a transfer was begun
  Manifest met = {};     // were equal on both sides before any transfer; never removed
};

std::string encode_record(const Record& record);
Result<Record> decode_record(std::string_view bytes);

// Returns the record's file name for a place: 16 hex digits.
std::string record_name(std::string_view place);

}  // namespace lockstep::sync
