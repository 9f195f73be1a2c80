// Reads and writes rentals for the journal and for guards. Another version may have written a
// record, whose machines must still be found and terminated. The reader is therefore tolerant, and
// only a rental without an id is an error.
#include "cloud/offer_json.h"
#include "cloud/rental.h"
#include "codec/json_fields.h"

#include <algorithm>
#include <array>

namespace lockstep::cloud {
namespace {

constexpr std::array<std::string_view, 7> kStates = {"asked",   "unknown", "refused", "answered",
                                                     "running", "ending",  "gone"};
constexpr std::array<std::string_view, 3> kSpots = {"no", "only", "prefer"};
constexpr std::int64_t kMostNodes = 1 << 20;
constexpr Micros kMostMoney = 10'000 * kDollar;                           // an hour
constexpr codec::JsonRange kTime{.least = 0, .most = 4'102'444'800'000};  // until the year 2100
constexpr codec::JsonLimits kLimits{.bytes = 8U << 20};

// A GPU that is unknown to this version matches no offer: nothing else is rented in its place. Its
// text stays as it was written, for the version that knows it.
GpuWish gpu_wish_of(const std::string& text) {
  if (text.empty() || text.starts_with(':')) return {};
  if (text == kNoGpus) return {.name = {}, .kinds = {}, .none = true};
  if (auto known = parse_gpu_wish(text)) return std::move(*known);
  static const Gpu kUnknown{.name = "?", .family = "?", .aliases = {}};
  return {.name = text, .kinds = {&kUnknown}, .count = 0};
}

}  // namespace

static void fields(codec::JsonFields& io, Wish& wish) {
  std::string gpu = wish.gpu.text();
  io("gpu", gpu);
  if (io.reads()) wish.gpu = gpu_wish_of(gpu);
  io("at_least", wish.gpu.at_least);
  io("nodes", wish.nodes, {1, kMostNodes});
  io("spot", wish.spot, kSpots);
  io("providers", wish.providers);
  io("regions", wish.regions);
  io("max_price", wish.max_price);
  io("disk_gb", wish.disk_gb, {0, 1 << 20});
  io("guarded", wish.guarded);
  io("archs", wish.archs);
  io("types", wish.types);
}

static void fields(codec::JsonFields& io, Terms& terms) {
  io("lifetime_s", terms.lifetime_s);
  io("autostop_s", terms.autostop_s);
  io("hold_s", terms.hold_s);
  io("budget", terms.budget);
  io("allow_from", terms.allow_from);
  io("image", terms.image);
  io("guard", terms.guard);
  io("guard_from", terms.guard_from);
  io("own_address", terms.own_address);
}

// Leaves Machine::intent out, which is the rental's id.
static void fields(codec::JsonFields& io, Held& held) {
  Machine& machine = held.machine;
  io("id", machine.id);
  io("name", machine.name);
  io("region", machine.region);
  io("zone", machine.zone);
  io("type", machine.type);
  auto state = static_cast<int>(machine.state);
  io("state", state, {0, static_cast<int>(Machine::State::gone)});
  if (io.reads()) machine.state = static_cast<Machine::State>(state);
  io("address", machine.address);
  io("port", machine.port, {0, 65'535});
  io("user", machine.user);
  io("private_address", machine.private_address);
  io("why", machine.why);
  io("taken", machine.taken);
  io("no_room", machine.no_room);
  io("token", machine.token);
  io("owner", machine.owner);
  io("cluster", machine.cluster);
  io("ends_ms", machine.ends_ms);
  io("launched_ms", machine.launched_ms);
  io("ended_ms", machine.ended_ms);
  io("per_hour", machine.per_hour);
  io("named_node", machine.node, {-1, kMostNodes});
  io("node", held.node, {kSurplus, 2 * kMostNodes});
  io("host_key", held.host_key);
  io("since_ms", held.since_ms, kTime);
  io("end_ms", held.end_ms);
  io("gone_ms", held.gone_ms, kTime);
}

static void fields(codec::JsonFields& io, LaunchCall& call) {
  io("region", call.region);
  io("zone", call.zone);
  io("token", call.token);
  io("target", call.target);
  io("body", call.body);
}

static void fields(codec::JsonFields& io, Attempt& attempt) {
  io("number", attempt.number, {1, 1 << 30});
  io("node", attempt.node, {0, kMostNodes});
  io("count", attempt.count, {1, kMostNodes});
  io("offer", attempt.offer);
  io("per_hour", attempt.per_hour, {0, kMostMoney});
  io("minimum_s", attempt.minimum_s, {0, 1 << 24});
  io("call", attempt.call);
  io("state", attempt.state, kStates);
  io("asked_ms", attempt.asked_ms);
  io("answered_ms", attempt.answered_ms);
  io("ended_ms", attempt.ended_ms);
  io("code", attempt.code);
  io("message", attempt.message);
  io("machines", attempt.machines);
}

static void fields(codec::JsonFields& io, Rental& rental) {
  io("id", rental.id);
  io.require(!rental.id.empty(), "id", "the id of a rental");
  io("cluster", rental.cluster);
  io("owner", rental.owner);
  io("wish", rental.wish);
  io("terms", rental.terms);
  io("created_ms", rental.created_ms);
  io("ends_ms", rental.ends_ms);
  io("wanted", rental.wanted);
  io("closed_ms", rental.closed_ms);
  io("told_ms", rental.told_ms, kTime);
  io("user_data", rental.user_data);
  io("start_script", rental.start_script);
  io("public_key", rental.public_key);
  io("attempts", rental.attempts);
}

std::string rental_json(const Rental& rental) {
  return codec::print_json(nlohmann::json(codec::write_fields(rental)));
}

Result<Rental> parse_rental(std::string_view text) {
  // A record without the member `wanted` must not keep machines alive.
  Rental rental{.id = {}, .cluster = {}, .owner = {}, .wanted = false};
  if (!codec::read_fields(codec::parse_json(text, kLimits), rental, codec::kTolerantJson))
    return fail(Errc::corrupt, "a rental in the journal cannot be read",
                "until it can, look for machines with the tag lockstep:intent in the provider's "
                "console");
  for (Attempt& attempt : rental.attempts)
    for (Held& held : attempt.machines)
      held.machine.intent = rental.id;
  return rental;
}

}  // namespace lockstep::cloud
