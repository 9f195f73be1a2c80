#include "machine/lease_terms.h"

#include "cloud/table/machine_endings.h"
#include "codec/json_fields.h"

#include <array>

namespace lockstep::machine {
namespace {

constexpr std::int64_t kMostSeconds = std::int64_t{400} * 24 * 3600;

constexpr std::array<std::string_view, 3> kNoticeNames = {"none", "token", "wait"};
constexpr std::array<std::string_view, 4> kPhaseNames = {"none", "running", "stopping", "ending"};

}  // namespace

void fields(codec::JsonFields& io, LeaseTerms& terms) {
  io("ends_ms", terms.ends_ms);
  io("now_ms", terms.now_ms);
  io("idle_s", terms.idle_s);
  io("metadata", terms.metadata);
  std::string ending(terms.ending.word);
  io.needed("ending", ending);
  if (io.reads()) {
    const cloud::MachineEnding* known = cloud::table::find_ending(ending);
    io.require(known != nullptr, "ending", "a known word");
    if (known != nullptr) terms.ending = *known;
  }
  io.needed("notice", terms.notice, kNoticeNames);
}

static void fields(codec::JsonFields& io, LeaseState& state) {
  io.needed("phase", state.phase, kPhaseNames);
  io("left_ms", state.left_ms);
  io("idle_ms", state.idle_ms);
  io("idle_limit_ms", state.idle_limit_ms);
  io("held_ms", state.held_ms);
  io("jobs", state.jobs);
  io("sessions", state.sessions);
  io("gpu_percent", state.gpu_percent);
  io("watched", state.watched);
  io("sudo", state.sudo);
  io("notice", state.notice);
  io("notice_ms", state.notice_ms);
  io("why", state.why);
}

nlohmann::ordered_json to_json(const LeaseTerms& terms) {
  return codec::write_fields(terms);
}

Result<LeaseTerms> terms_from_json(const nlohmann::json& json) {
  LeaseTerms terms;
  if (const Status read = codec::read_fields(json, terms, codec::kTolerantJson); !read)
    return fail(Errc::corrupt, "the terms of a lease make no sense: " + read.error().message);
  LOCKSTEP_TRY(check_terms(terms));
  return terms;
}

Status check_terms(const LeaseTerms& terms) {
  // Halves, since the difference of two numbers that a peer sent may overflow.
  const std::int64_t half_left_ms = terms.ends_ms / 2 - terms.now_ms / 2;
  if (terms.ends_ms <= 0 || terms.now_ms <= 0 || half_left_ms > kMostSeconds * 500 ||
      terms.idle_s < -1 || terms.idle_s > kMostSeconds)
    return fail(Errc::invalid_input, "a lease needs an end, and a time until then");
  return {};
}

nlohmann::ordered_json to_json(const LeaseState& state) {
  return codec::write_fields(state);
}

Result<LeaseState> lease_state_from_json(const nlohmann::json& json) {
  LeaseState state;
  if (const Status read = codec::read_fields(json, state, codec::kTolerantJson); !read)
    return fail(Errc::corrupt, "the state of a lease makes no sense: " + read.error().message);
  return state;
}

}  // namespace lockstep::machine
