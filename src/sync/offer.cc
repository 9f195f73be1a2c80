#include "sync/offer.h"

#include "base/text.h"
#include "codec/json_members.h"

#include <optional>
#include <utility>

namespace lockstep::sync {
namespace {

constexpr std::string_view kMagic = "lockstep-offer\n";
constexpr std::size_t kMostKeptNames = 1000;
constexpr codec::JsonLimits kLimits{
    .bytes = 256U << 20, .depth = 4, .members = kMostEntries, .values = 3 * kMostEntries};

Failure corrupt(const char* what) {
  return fail(Errc::corrupt, what);
}

std::optional<std::size_t> count_in(const nlohmann::json& object, const char* name) {
  const auto at = object.find(name);
  if (at == object.end() || !at->is_number_unsigned()) return std::nullopt;
  return at->get<std::size_t>();
}

bool flag_in(const nlohmann::json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_boolean() && at->get<bool>();
}

std::vector<std::string> texts_in(const nlohmann::json& object, const char* name) {
  std::vector<std::string> texts;
  const auto at = object.find(name);
  if (at == object.end() || !at->is_array()) return texts;
  for (const auto& each : *at)
    // A host's answer must not fill the client's memory or screen.
    if (each.is_string() && texts.size() < kMostKeptNames)
      texts.push_back(printable(each.get<std::string>()));
  return texts;
}

nlohmann::ordered_json some_of(const std::vector<std::string>& names) {
  auto some = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < names.size() && i < kMostKeptNames; ++i)
    // Names may be any bytes, and JSON is UTF-8.
    some.push_back(printable(names[i]));
  return some;
}

// Accepts only ascending spans without overlap: their sum cannot exceed the offer then.
std::optional<std::vector<Span>> spans_in(const nlohmann::json& object, std::size_t offered) {
  const auto at = object.find("needed");
  if (at == object.end() || !at->is_array() || at->size() % 2 != 0) return std::nullopt;
  std::vector<Span> spans;
  std::size_t next = 0;
  for (std::size_t i = 0; i < at->size(); i += 2) {
    const auto& first = (*at)[i];
    const auto& last = (*at)[i + 1];
    if (!first.is_number_unsigned() || !last.is_number_unsigned()) return std::nullopt;
    const Span span{first.get<std::size_t>(), last.get<std::size_t>()};
    if (span.first < next || span.last < span.first || span.last >= offered) return std::nullopt;
    spans.push_back(span);
    next = span.last + 1;
  }
  return spans;
}

}  // namespace

std::string encode_offer(const Offer& offer) {
  std::string out(kMagic);
  encode_text(offer.destination, out);
  encode_owner(offer.owner, out);
  encode_number((offer.force ? 1U : 0U) | (offer.dry_run ? 2U : 0U) | (offer.told ? 4U : 0U), out);
  encode(offer.manifest, out);
  return out;
}

Result<Offer> decode_offer(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return corrupt("this is not an offer of a tree");
  bytes.remove_prefix(kMagic.size());
  Offer offer;
  const auto destination = decode_text(bytes, kMostPath);
  auto owner = destination ? decode_owner(bytes) : std::nullopt;
  const auto flags = owner ? decode_number(bytes) : std::nullopt;
  if (!flags || *flags > 7 || destination->find('\0') != std::string_view::npos)
    return corrupt("the offer of a tree is cut or unreadable");
  offer.destination = *destination;
  offer.owner = std::move(*owner);
  offer.force = (*flags & 1) != 0;
  offer.dry_run = (*flags & 2) != 0;
  offer.told = (*flags & 4) != 0;
  LOCKSTEP_TRY_ASSIGN(offer.manifest, decode(bytes));
  if (!bytes.empty()) return corrupt("unexpected bytes follow the offer of a tree");
  return offer;
}

std::string print_answer(const Result<Answer>& answer) {
  nlohmann::ordered_json out;
  if (!answer) {
    out["error"] = answer.error().message;
    out["hint"] = answer.error().hint;
    return codec::print_json(out);
  }
  out["place"] = answer->place;
  out["drafts"] = answer->drafts;
  out["rsync"] = answer->rsync;
  auto needed = nlohmann::ordered_json::array();
  for (const Span& span : answer->needed) {
    needed.push_back(span.first);
    needed.push_back(span.last);
  }
  out["needed"] = std::move(needed);
  out["removed"] = answer->removed;
  out["edited"] = answer->edited;
  out["waits"] = answer->waits;
  out["removals"] = some_of(answer->removals);
  out["kept"] = some_of(answer->kept);
  out["theirs"] = some_of(answer->theirs);
  out["remarks"] = answer->remarks;
  return codec::print_json(out);
}

Result<Answer> parse_answer(std::string_view json, std::size_t offered) {
  const nlohmann::json read = codec::parse_json(json, kLimits);
  if (!read.is_object()) return corrupt("the host's answer is unreadable");
  if (read.contains("error"))
    return fail(Errc::unavailable, printable(codec::text_member(read, "error"), 1000),
                printable(codec::text_member(read, "hint"), 1000));
  const auto needed = spans_in(read, offered);
  const auto removed = count_in(read, "removed");
  const auto edited = count_in(read, "edited");
  Answer answer{.place = codec::text_member(read, "place"),
                .drafts = codec::text_member(read, "drafts")};
  if (!needed || !removed || !edited || !answer.place.starts_with('/'))
    return corrupt("the host's answer is unreadable");
  answer.rsync = flag_in(read, "rsync");
  answer.waits = flag_in(read, "waits");
  answer.needed = *needed;
  answer.removed = *removed;
  answer.edited = *edited;
  answer.removals = texts_in(read, "removals");
  answer.kept = texts_in(read, "kept");
  answer.theirs = texts_in(read, "theirs");
  answer.remarks = texts_in(read, "remarks");
  return answer;
}

Manifest pick(const Manifest& manifest, const std::vector<Span>& needed) {
  Manifest picked;
  for (const Span& span : needed)
    for (std::size_t i = span.first; i <= span.last; ++i)
      picked.push_back(manifest[i]);
  return picked;
}

}  // namespace lockstep::sync
