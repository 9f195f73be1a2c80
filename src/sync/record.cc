#include "sync/record.h"

#include "base/fnv.h"
#include "base/text.h"

#include <fmt/core.h>

namespace lockstep::sync {
namespace {
constexpr std::string_view kMagic = "lockstep-synced 1\n";
}  // namespace

std::string owner_text(const Owner& owner) {
  return printable(owner.host) + ":" + printable(owner.root);
}

std::string encode_record(const Record& record) {
  std::string out(kMagic);
  for (const std::string* text : {&record.place, &record.owner.host, &record.owner.root})
    encode_text(*text, out);
  encode(record.sent, out);
  encode(record.coming, out);
  return out;
}

Result<Record> decode_record(std::string_view bytes) {
  const auto corrupt = [] { return fail(Errc::corrupt, "the record of what was sent is damaged"); };
  if (!bytes.starts_with(kMagic)) return corrupt();
  bytes.remove_prefix(kMagic.size());
  Record record;
  for (std::string* text : {&record.place, &record.owner.host, &record.owner.root}) {
    const auto read = decode_text(bytes, kMostPath);
    if (!read) return corrupt();
    *text = *read;
  }
  LOCKSTEP_TRY_ASSIGN(record.sent, decode(bytes));
  LOCKSTEP_TRY_ASSIGN(record.coming, decode(bytes));
  if (!bytes.empty()) return corrupt();
  return record;
}

std::string record_name(std::string_view place) {
  return fmt::format("{:016x}", fnv1a(place));
}

}  // namespace lockstep::sync
