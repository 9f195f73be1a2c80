#include "machine/lease_terms.h"

#include "codec/json_members.h"

#include <array>
#include <utility>

namespace lockstep::machine {
namespace {

constexpr std::int64_t kMostSeconds = std::int64_t{400} * 24 * 3600;

constexpr std::array<std::string_view, 3> kNoticeNames = {"none", "token", "wait"};
constexpr std::array<std::string_view, 4> kPhaseNames = {"none", "running", "stopping", "ending"};

template <std::size_t Size>
Result<std::size_t> number_of(const std::array<std::string_view, Size>& names,
                              const std::string& name, const char* what) {
  for (std::size_t i = 0; i < Size; ++i)
    if (names[i] == name) return i;
  return fail(Errc::corrupt, std::string("a lease has no such ") + what);
}

bool flag(const nlohmann::json& json, const char* name, bool otherwise) {
  const auto at = json.find(name);
  return at != json.end() && at->is_boolean() ? at->get<bool>() : otherwise;
}

}  // namespace

nlohmann::ordered_json to_json(const LeaseTerms& terms) {
  return {{"ends_ms", terms.ends_ms},
          {"now_ms", terms.now_ms},
          {"idle_s", terms.idle_s},
          {"ending", cloud::ending_name(terms.ending)},
          {"notice", kNoticeNames[static_cast<std::size_t>(terms.notice)]},
          {"metadata", terms.metadata}};
}

Result<LeaseTerms> terms_from_json(const nlohmann::json& json) {
  if (!json.is_object()) return fail(Errc::corrupt, "a lease's terms are not readable");
  LeaseTerms terms;
  terms.ends_ms = codec::integer_member(json, "ends_ms");
  terms.now_ms = codec::integer_member(json, "now_ms");
  terms.idle_s = codec::integer_member(json, "idle_s");
  const std::int64_t left_ms = terms.ends_ms / 2 - terms.now_ms / 2;  // of any two numbers
  if (terms.ends_ms <= 0 || terms.now_ms <= 0 || left_ms > kMostSeconds * 500 ||
      terms.idle_s < -1 || terms.idle_s > kMostSeconds)
    return fail(Errc::invalid_input, "a lease needs an end, and a time until then");
  const std::string ending = codec::text_member(json, "ending");
  const std::string poweroff(cloud::ending_name(cloud::MachineEnding::poweroff));
  const std::string pod(cloud::ending_name(cloud::MachineEnding::runpod_pod));
  if (ending != poweroff && ending != pod) return fail(Errc::corrupt, "a lease has no such ending");
  if (ending == pod) terms.ending = cloud::MachineEnding::runpod_pod;
  LOCKSTEP_TRY_ASSIGN(const std::size_t notice,
                      number_of(kNoticeNames, codec::text_member(json, "notice"), "notice"));
  terms.notice = static_cast<NoticeSource>(notice);
  terms.metadata = codec::text_member(json, "metadata");
  return terms;
}

nlohmann::ordered_json to_json(const LeaseState& state) {
  return {{"phase", kPhaseNames[static_cast<std::size_t>(state.phase)]},
          {"left_ms", state.left_ms},
          {"idle_ms", state.idle_ms},
          {"idle_limit_ms", state.idle_limit_ms},
          {"held_ms", state.held_ms},
          {"jobs", state.jobs},
          {"sessions", state.sessions},
          {"gpu_percent", state.gpu_percent},
          {"watched", state.watched},
          {"sudo", state.sudo},
          {"notice", state.notice},
          {"notice_ms", state.notice_ms},
          {"why", state.why}};
}

Result<LeaseState> lease_state_from_json(const nlohmann::json& json) {
  if (!json.is_object()) return fail(Errc::corrupt, "a lease's state is not readable");
  LeaseState state;
  LOCKSTEP_TRY_ASSIGN(const std::size_t phase,
                      number_of(kPhaseNames, codec::text_member(json, "phase"), "phase"));
  state.phase = static_cast<LeaseState::Phase>(phase);
  state.left_ms = codec::integer_member(json, "left_ms");
  state.idle_ms = codec::integer_member(json, "idle_ms");
  state.idle_limit_ms = codec::integer_member(json, "idle_limit_ms");
  state.held_ms = codec::integer_member(json, "held_ms");
  state.jobs = static_cast<int>(codec::integer_member(json, "jobs"));
  state.sessions = static_cast<int>(codec::integer_member(json, "sessions"));
  state.gpu_percent = static_cast<int>(codec::integer_member(json, "gpu_percent"));
  state.watched = flag(json, "watched", false);
  state.sudo = flag(json, "sudo", true);
  state.notice = codec::text_member(json, "notice");
  state.notice_ms = codec::integer_member(json, "notice_ms");
  state.why = codec::text_member(json, "why");
  return state;
}

}  // namespace lockstep::machine
