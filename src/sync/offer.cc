#include "sync/offer.h"

#include "base/text.h"
#include "codec/json_fields.h"

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

// A host's error as its whole answer.
struct Refusal {
  std::string error;
  std::string hint;
};

void fields(codec::JsonFields& io, Refusal& refusal) {
  io.needed("error", refusal.error);
  io("hint", refusal.hint);
}

constexpr codec::JsonRules kShown{.strict = false, .printable = 1000};

// Names may be any bytes, and JSON is UTF-8. A host's answer must not fill the client's memory or
// screen.
std::vector<std::string> shown(std::vector<std::string> names) {
  if (names.size() > kMostKeptNames) names.resize(kMostKeptNames);
  for (std::string& name : names)
    name = printable(name);
  return names;
}

void some_names(codec::JsonFields& io, const char* member, std::vector<std::string>& names) {
  std::vector<std::string> some = shown(names);
  io.optional(member, some);
  if (io.reads()) names = shown(std::move(some));
}

std::vector<std::size_t> numbers_of(const std::vector<Span>& spans) {
  std::vector<std::size_t> numbers;
  for (const Span& span : spans)
    numbers.insert(numbers.end(), {span.first, span.last});
  return numbers;
}

// Accepts only ascending spans without overlap: their sum cannot exceed the offer then.
std::optional<std::vector<Span>> spans_of(const std::vector<std::size_t>& numbers) {
  if (numbers.size() % 2 != 0) return std::nullopt;
  std::vector<Span> spans;
  std::size_t next = 0;
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    const Span span{numbers[i], numbers[i + 1]};
    if (span.first < next || span.last < span.first) return std::nullopt;
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

static void fields(codec::JsonFields& io, Answer& answer) {
  io("place", answer.place);
  io.require(answer.place.starts_with('/'), "place", "an absolute path");
  io.optional("drafts", answer.drafts);
  io.optional("rsync", answer.rsync);
  std::vector<std::size_t> needed = numbers_of(answer.needed);
  io("needed", needed);
  io("removed", answer.removed);
  io("edited", answer.edited);
  io.optional("waits", answer.waits);
  some_names(io, "removals", answer.removals);
  some_names(io, "kept", answer.kept);
  some_names(io, "theirs", answer.theirs);
  io.optional("remarks", answer.remarks);
  if (!io.reads()) return;
  answer.remarks = shown(std::move(answer.remarks));
  auto spans = spans_of(needed);
  io.require(spans.has_value(), "needed", "a list of ascending spans");
  answer.needed = std::move(spans).value_or(std::vector<Span>());
}

std::string print_answer(const Result<Answer>& answer) {
  if (answer) return codec::print_json(codec::write_fields(*answer));
  return codec::print_json(
      codec::write_fields(Refusal{answer.error().message, answer.error().hint}));
}

Result<Answer> parse_answer(std::string_view json, std::size_t offered) {
  const nlohmann::json read = codec::parse_json(json, kLimits);
  if (Refusal refusal; codec::read_fields(read, refusal, kShown))
    return fail(Errc::unavailable, refusal.error, refusal.hint);
  Answer answer;
  if (!codec::read_fields(read, answer) ||
      // The spans ascend, so the last span bounds all.
      (!answer.needed.empty() && answer.needed.back().last >= offered))
    return corrupt("the host's answer is unreadable");
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
