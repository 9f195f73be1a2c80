#include "sync/record.h"

#include "base/fnv.h"
#include "base/text.h"

#include <fmt/core.h>

#include <initializer_list>
#include <utility>

namespace lockstep::sync {
namespace {
constexpr std::string_view kMagic = "lockstep-synced 2\n";
// Version 1 counted files that were equal on both sides as sent.
constexpr std::string_view kFirstMagic = "lockstep-synced 1\n";

bool decode_texts(std::string_view& bytes, std::initializer_list<std::string*> texts) {
  for (std::string* text : texts) {
    const auto read = decode_text(bytes, kMostPath);
    if (!read || read->find('\0') != std::string_view::npos) return false;
    *text = *read;
  }
  return true;
}

}  // namespace

std::string owner_text(const Owner& owner) {
  return printable(owner.host) + ":" + printable(owner.root);
}

bool same_owner(const Owner& a, const Owner& b) {
  if (a.root != b.root) return false;
  // Records of version 1 know only the host's name, which two machines can share.
  if (a.installation.empty() || b.installation.empty()) return a.host == b.host;
  return a.installation == b.installation;
}

void encode_owner(const Owner& owner, std::string& out) {
  for (const std::string* text : {&owner.host, &owner.root, &owner.installation})
    encode_text(*text, out);
}

std::optional<Owner> decode_owner(std::string_view& bytes) {
  Owner owner;
  if (!decode_texts(bytes, {&owner.host, &owner.root, &owner.installation})) return std::nullopt;
  return owner;
}

std::string encode_record(const Record& record) {
  std::string out(kMagic);
  encode_text(record.place, out);
  encode_owner(record.owner, out);
  for (const Manifest* manifest : {&record.sent, &record.coming, &record.met})
    encode(*manifest, out);
  return out;
}

Result<Record> decode_record(std::string_view bytes) {
  const auto corrupt = [] { return fail(Errc::corrupt, "the record of what was sent is damaged"); };
  const bool first = bytes.starts_with(kFirstMagic);
  if (!first && !bytes.starts_with(kMagic)) return corrupt();
  bytes.remove_prefix(kMagic.size());
  Record record;
  const auto place = decode_text(bytes, kMostPath);
  if (!place) return corrupt();
  record.place = *place;
  // Version 1 had no installation.
  Owner& owner = record.owner;
  if (!decode_texts(bytes, {&owner.host, &owner.root})) return corrupt();
  if (!first && !decode_texts(bytes, {&owner.installation})) return corrupt();
  LOCKSTEP_TRY_ASSIGN(record.sent, decode(bytes));
  LOCKSTEP_TRY_ASSIGN(record.coming, decode(bytes));
  if (first) {
    // Files of a version 1 record may not be ours, so treat them as met: then no sync removes them.
    std::swap(record.met, record.sent);
  } else {
    LOCKSTEP_TRY_ASSIGN(record.met, decode(bytes));
  }
  if (!bytes.empty()) return corrupt();
  return record;
}

std::string record_name(std::string_view place) {
  // The hash need not be unique: read_record() compares the place.
  return fmt::format("{:016x}", fnv1a(place));
}

}  // namespace lockstep::sync
