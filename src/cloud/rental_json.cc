#include "cloud/offer_json.h"
#include "cloud/rental.h"
#include "codec/json.h"
#include "codec/json_members.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace lockstep::cloud {
namespace {

using codec::integer_member;
using codec::text_member;
using nlohmann::json;

constexpr std::array<const char*, 7> kStates = {"asked",   "unknown", "refused", "answered",
                                                "running", "ending",  "gone"};
constexpr std::array<const char*, 3> kSpots = {"no", "only", "prefer"};
constexpr std::int64_t kMostNodes = 1 << 20;
constexpr Micros kMostMoney = 10'000 * kDollar;        // an hour
constexpr std::int64_t kLatestMs = 4'102'444'800'000;  // the year 2100
constexpr codec::JsonLimits kLimits{.bytes = 8U << 20};

template <std::size_t size>
std::size_t index_in(const std::array<const char*, size>& names, const std::string& name) {
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const char* one) { return name == one; });
  return found == names.end() ? 0 : static_cast<std::size_t>(found - names.begin());
}

bool yes(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

// Money that may not be set.
json maybe(const std::optional<Micros>& amount) {
  return amount ? json(*amount) : json(nullptr);
}

std::optional<Micros> maybe_member(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<Micros>();
}

json wish_json(const Wish& wish) {
  return {{"gpu", wish.gpu.text()},
          {"at_least", wish.gpu.at_least},
          {"nodes", wish.nodes},
          {"spot", kSpots[static_cast<std::size_t>(wish.spot)]},
          {"providers", wish.providers},
          {"regions", wish.regions},
          {"max_price", maybe(wish.max_price)},
          {"disk_gb", wish.disk_gb},
          {"guarded", wish.guarded},
          {"archs", wish.archs},
          {"types", wish.types}};
}

// Whatever another version has written, its machines must be ended: a GPU that this one does not
// know is none that can be rented anew.
GpuWish gpu_wish_of(const std::string& text) {
  if (text.empty() || text.starts_with(':')) return {};
  if (text == kNoGpus) return {.name = {}, .kinds = {}, .none = true};
  if (auto known = parse_gpu_wish(text)) return std::move(*known);
  static const Gpu kUnknown{.name = "?", .family = "?", .aliases = {}};
  return {.name = text.substr(0, text.rfind(':')), .kinds = {&kUnknown}};
}

std::int64_t time_member(const json& object, const char* name) {
  return std::clamp<std::int64_t>(integer_member(object, name), 0, kLatestMs);
}

int bounded(const json& object, const char* name, std::int64_t least, std::int64_t most) {
  return static_cast<int>(std::clamp(integer_member(object, name), least, most));
}

Wish wish_of(const json& object) {
  Wish wish;
  wish.gpu = gpu_wish_of(text_member(object, "gpu"));
  wish.gpu.at_least = yes(object, "at_least");
  wish.nodes = bounded(object, "nodes", 1, kMostNodes);
  wish.spot = static_cast<SpotWish>(index_in(kSpots, text_member(object, "spot")));
  wish.providers = codec::texts_member(object, "providers");
  wish.regions = codec::texts_member(object, "regions");
  wish.max_price = maybe_member(object, "max_price");
  wish.disk_gb = bounded(object, "disk_gb", 0, 1 << 20);
  wish.guarded = yes(object, "guarded");
  wish.archs = codec::texts_member(object, "archs");
  wish.types = codec::texts_member(object, "types");
  return wish;
}

json terms_json(const Terms& terms) {
  return {{"lifetime_s", terms.lifetime_s},
          {"autostop_s", terms.autostop_s},
          {"hold_s", terms.hold_s},
          {"budget", maybe(terms.budget)},
          {"allow_from", terms.allow_from},
          {"image", terms.image},
          {"guard", terms.guard},
          {"guard_from", terms.guard_from},
          {"own_address", terms.own_address},
          {"watched", terms.watched}};
}

Terms terms_of(const json& object) {
  return {.lifetime_s = integer_member(object, "lifetime_s"),
          .autostop_s = integer_member(object, "autostop_s"),
          .hold_s = integer_member(object, "hold_s"),
          .budget = maybe_member(object, "budget"),
          .allow_from = text_member(object, "allow_from"),
          .image = text_member(object, "image"),
          .guard = text_member(object, "guard"),
          .guard_from = text_member(object, "guard_from"),
          .own_address = yes(object, "own_address"),
          .watched = yes(object, "watched")};
}

json held_json(const Held& held) {
  const Machine& machine = held.machine;
  return {{"id", machine.id},
          {"name", machine.name},
          {"region", machine.region},
          {"zone", machine.zone},
          {"type", machine.type},
          {"state", static_cast<int>(machine.state)},
          {"address", machine.address},
          {"port", machine.port},
          {"user", machine.user},
          {"private_address", machine.private_address},
          {"why", machine.why},
          {"taken", machine.taken},
          {"no_room", machine.no_room},
          {"token", machine.token},
          {"owner", machine.owner},
          {"cluster", machine.cluster},
          {"ends_ms", machine.ends_ms},
          {"launched_ms", machine.launched_ms},
          {"ended_ms", machine.ended_ms},
          {"per_hour", machine.per_hour},
          {"named_node", machine.node},
          {"node", held.node},
          {"host_key", held.host_key},
          {"since_ms", held.since_ms},
          {"end_ms", held.end_ms},
          {"gone_ms", held.gone_ms}};
}

Held held_of(const json& object, const std::string& intent) {
  Held held;
  Machine& machine = held.machine;
  machine.id = text_member(object, "id");
  machine.name = text_member(object, "name");
  machine.region = text_member(object, "region");
  machine.zone = text_member(object, "zone");
  machine.type = text_member(object, "type");
  machine.state = static_cast<Machine::State>(std::clamp<std::int64_t>(
      integer_member(object, "state"), 0, static_cast<std::int64_t>(Machine::State::gone)));
  machine.address = text_member(object, "address");
  machine.port = bounded(object, "port", 0, 65'535);
  machine.user = text_member(object, "user");
  machine.private_address = text_member(object, "private_address");
  machine.why = text_member(object, "why");
  machine.taken = yes(object, "taken");
  machine.no_room = yes(object, "no_room");
  machine.token = text_member(object, "token");
  machine.owner = text_member(object, "owner");
  machine.cluster = text_member(object, "cluster");
  machine.ends_ms = integer_member(object, "ends_ms");
  machine.launched_ms = integer_member(object, "launched_ms");
  machine.ended_ms = integer_member(object, "ended_ms");
  machine.per_hour = integer_member(object, "per_hour");
  machine.node = bounded(object, "named_node", -1, kMostNodes);
  machine.intent = intent;
  held.node = bounded(object, "node", kSurplus, 2 * kMostNodes);
  held.host_key = text_member(object, "host_key");
  held.since_ms = time_member(object, "since_ms");
  held.end_ms = integer_member(object, "end_ms");
  held.gone_ms = time_member(object, "gone_ms");
  return held;
}

json attempt_json(const Attempt& attempt) {
  json machines = json::array();
  for (const Held& held : attempt.machines)
    machines.push_back(held_json(held));
  return {{"number", attempt.number},
          {"node", attempt.node},
          {"count", attempt.count},
          {"offer", offer_json(attempt.offer)},
          {"per_hour", attempt.per_hour},
          {"minimum_s", attempt.minimum_s},
          {"call",
           {{"region", attempt.call.region},
            {"zone", attempt.call.zone},
            {"token", attempt.call.token},
            {"target", attempt.call.target},
            {"body", attempt.call.body}}},
          {"state", attempt_state_name(attempt.state)},
          {"asked_ms", attempt.asked_ms},
          {"answered_ms", attempt.answered_ms},
          {"ended_ms", attempt.ended_ms},
          {"code", attempt.code},
          {"message", attempt.message},
          {"machines", std::move(machines)}};
}

Attempt attempt_of(const json& object, const std::string& intent) {
  Attempt attempt;
  attempt.number = bounded(object, "number", 1, 1 << 30);
  attempt.node = bounded(object, "node", 0, kMostNodes);
  attempt.count = bounded(object, "count", 1, kMostNodes);
  if (const auto offer = object.find("offer"); offer != object.end())
    attempt.offer = offer_of(*offer);
  attempt.per_hour = std::clamp<Micros>(integer_member(object, "per_hour"), 0, kMostMoney);
  attempt.minimum_s = bounded(object, "minimum_s", 0, 1 << 24);
  if (const auto call = object.find("call"); call != object.end() && call->is_object())
    attempt.call = {.region = text_member(*call, "region"),
                    .zone = text_member(*call, "zone"),
                    .token = text_member(*call, "token"),
                    .target = text_member(*call, "target"),
                    .body = text_member(*call, "body")};
  attempt.state = static_cast<Attempt::State>(index_in(kStates, text_member(object, "state")));
  attempt.asked_ms = integer_member(object, "asked_ms");
  attempt.answered_ms = integer_member(object, "answered_ms");
  attempt.ended_ms = integer_member(object, "ended_ms");
  attempt.code = text_member(object, "code");
  attempt.message = text_member(object, "message");
  if (const auto machines = object.find("machines");
      machines != object.end() && machines->is_array())
    for (const json& machine : *machines)
      attempt.machines.push_back(held_of(machine, intent));
  return attempt;
}

}  // namespace

const char* attempt_state_name(Attempt::State state) {
  return kStates[static_cast<std::size_t>(state)];
}

std::string rental_json(const Rental& rental) {
  json attempts = json::array();
  for (const Attempt& attempt : rental.attempts)
    attempts.push_back(attempt_json(attempt));
  return codec::print_json(json{{"id", rental.id},
                                {"cluster", rental.cluster},
                                {"owner", rental.owner},
                                {"wish", wish_json(rental.wish)},
                                {"terms", terms_json(rental.terms)},
                                {"created_ms", rental.created_ms},
                                {"ends_ms", rental.ends_ms},
                                {"wanted", rental.wanted},
                                {"closed_ms", rental.closed_ms},
                                {"told_ms", rental.told_ms},
                                {"user_data", rental.user_data},
                                {"start_script", rental.start_script},
                                {"public_key", rental.public_key},
                                {"attempts", std::move(attempts)}});
}

Result<Rental> parse_rental(std::string_view text) {
  const json object = codec::parse_json(text, kLimits);
  if (!object.is_object() || text_member(object, "id").empty())
    return fail(Errc::corrupt, "a rental in the journal cannot be read",
                "until it can, look for machines with the tag lockstep:intent in the provider's "
                "console");
  Rental rental;
  rental.id = text_member(object, "id");
  rental.cluster = text_member(object, "cluster");
  rental.owner = text_member(object, "owner");
  if (const auto wish = object.find("wish"); wish != object.end() && wish->is_object())
    rental.wish = wish_of(*wish);
  if (const auto terms = object.find("terms"); terms != object.end() && terms->is_object())
    rental.terms = terms_of(*terms);
  rental.created_ms = integer_member(object, "created_ms");
  rental.ends_ms = integer_member(object, "ends_ms");
  rental.wanted = yes(object, "wanted");
  rental.closed_ms = integer_member(object, "closed_ms");
  rental.told_ms = time_member(object, "told_ms");
  rental.user_data = text_member(object, "user_data");
  rental.start_script = text_member(object, "start_script");
  rental.public_key = text_member(object, "public_key");
  if (const auto attempts = object.find("attempts");
      attempts != object.end() && attempts->is_array())
    for (const json& attempt : *attempts)
      rental.attempts.push_back(attempt_of(attempt, rental.id));
  return rental;
}

}  // namespace lockstep::cloud
