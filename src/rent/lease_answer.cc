#include "rent/lease_answer.h"

#include "base/text.h"
#include "codec/json_members.h"

#include <algorithm>
#include <cctype>

namespace lockstep::rent {
namespace {

constexpr std::string_view kHostKeyType = "ssh-ed25519 ";
constexpr std::size_t kMostKeyText = 200;

}  // namespace

// A control character could start a second line in known_hosts, which would trust another key.
bool is_host_key(const std::string& line) {
  const auto harmless = [](char c) { return c >= ' ' && c <= '~'; };
  return line.starts_with(kHostKeyType) && line.size() > kHostKeyType.size() &&
         line.size() <= kMostKeyText && std::all_of(line.begin(), line.end(), harmless);
}

Result<machine::LeaseState> read_lease_state(std::string_view line) {
  const nlohmann::json answer = codec::parse_json(strip(line));
  if (!answer.is_object()) return fail(Errc::corrupt, "unreadable answer about the lease");
  if (std::string error = codec::text_member(answer, "error"); !error.empty())
    return fail(Errc::unavailable, printable(error, 1000));
  const auto state = answer.find("state");
  if (state == answer.end()) return fail(Errc::corrupt, "the answer has no lease");
  LOCKSTEP_TRY_ASSIGN(machine::LeaseState read, machine::lease_state_from_json(*state));
  // Texts from the machine are shown in the user's terminal: remove control characters.
  read.notice = printable(read.notice);
  read.why = printable(read.why);
  return read;
}

KeyAnswer read_key_answer(std::string_view line) {
  const auto state = read_lease_state(line);
  if (!state) return {.error = state.error().message};
  const nlohmann::json answer = codec::parse_json(strip(line));
  const auto is_true = [&answer](const char* name) {
    const auto found = answer.find(name);
    return found != answer.end() && *found == true;
  };
  KeyAnswer key{.host_key = codec::text_member(answer, "host_key"),
                .fresh = is_true("fresh"),
                .seen = is_true("seen"),
                .note = printable(codec::text_member(answer, "note"))};
  if (!is_host_key(key.host_key)) return {.error = "the answer has no host key"};
  return key;
}

}  // namespace lockstep::rent
