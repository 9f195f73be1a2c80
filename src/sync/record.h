// What a host knows of a tree that was sent to it: by whom, and which files. It decides what may be
// removed or overwritten there.
#pragma once

#include "base/error.h"
#include "sync/manifest.h"

#include <string>
#include <string_view>

namespace lockstep::sync {

struct Owner {
  std::string host = {};
  std::string root = {};
  bool operator==(const Owner&) const = default;
};
std::string owner_text(const Owner& owner);  // "laptop:/home/me/project", for messages

struct Record {
  std::string place;  // where the tree lies, absolute
  Owner owner;
  Manifest sent;    // known to have arrived
  Manifest coming;  // may have arrived: a transfer was begun
};

std::string encode_record(const Record& record);
Result<Record> decode_record(std::string_view bytes);

// "HASH" of a place: its record's name in the folder of records.
std::string record_name(std::string_view place);

}  // namespace lockstep::sync
