#include "machine/lease_terms.h"

#include "codec/json_members.h"
#include "machine/members.h"

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

// The other members are names out of a list.
std::array<Member, 4> members_of(LeaseTerms& terms) {
  return {Member{"ends_ms", terms.ends_ms}, Member{"now_ms", terms.now_ms},
          Member{"idle_s", terms.idle_s}, Member{"metadata", terms.metadata}};
}

std::array<Member, 12> members_of(LeaseState& state) {
  return {Member{"left_ms", state.left_ms},
          Member{"idle_ms", state.idle_ms},
          Member{"idle_limit_ms", state.idle_limit_ms},
          Member{"held_ms", state.held_ms},
          Member{"jobs", state.jobs},
          Member{"sessions", state.sessions},
          Member{"gpu_percent", state.gpu_percent},
          Member{"watched", state.watched},
          Member{"sudo", state.sudo},
          Member{"notice", state.notice},
          Member{"notice_ms", state.notice_ms},
          Member{"why", state.why}};
}

}  // namespace

nlohmann::ordered_json to_json(const LeaseTerms& terms) {
  nlohmann::ordered_json json;
  LeaseTerms copy = terms;
  print_members(members_of(copy), json);
  json["ending"] = cloud::ending_name(terms.ending);
  json["notice"] = kNoticeNames[static_cast<std::size_t>(terms.notice)];
  return json;
}

Result<LeaseTerms> terms_from_json(const nlohmann::json& json) {
  if (!json.is_object()) return fail(Errc::corrupt, "a lease's terms are not readable");
  LeaseTerms terms;
  read_members(json, members_of(terms));
  // halved: the difference of any two numbers fits
  const std::int64_t left_ms = terms.ends_ms / 2 - terms.now_ms / 2;
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
  return terms;
}

nlohmann::ordered_json to_json(const LeaseState& state) {
  nlohmann::ordered_json json;
  LeaseState copy = state;
  json["phase"] = kPhaseNames[static_cast<std::size_t>(state.phase)];
  print_members(members_of(copy), json);
  return json;
}

Result<LeaseState> lease_state_from_json(const nlohmann::json& json) {
  if (!json.is_object()) return fail(Errc::corrupt, "a lease's state is not readable");
  LeaseState state;
  LOCKSTEP_TRY_ASSIGN(const std::size_t phase,
                      number_of(kPhaseNames, codec::text_member(json, "phase"), "phase"));
  state.phase = static_cast<LeaseState::Phase>(phase);
  read_members(json, members_of(state));
  return state;
}

}  // namespace lockstep::machine
