#include "machine/lease_requests.h"

#include "base/clock_ms.h"
#include "base/environment.h"
#include "base/log.h"
#include "base/text.h"
#include "codec/json_members.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "machine/elevated.h"
#include "machine/ending_variables.h"
#include "machine/host_key.h"
#include "machine/lasting_lease.h"
#include "machine/lease_files.h"
#include "machine/lease_watch.h"
#include "proc/spawn.h"

#include <fmt/core.h>

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace lockstep::machine {
namespace {

constexpr std::size_t kMostRequest = 64UL << 10;
constexpr std::chrono::seconds kRootPatience{60};
constexpr int kFollowLook = 250;  // ms between looks for a change
// seconds: the daemon acts first, the timer only if the daemon is dead
constexpr std::int64_t kTimerBehind = 5;
constexpr std::int64_t kMostHold = std::int64_t{31} * 86400;  // seconds

using Json = nlohmann::ordered_json;

Result<std::string> read_request() {
  std::string text;
  std::array<char, 4096> bytes;
  // The client closes stdin after the request.
  while (text.size() <= kMostRequest) {
    const ssize_t got = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(bytes.data(), static_cast<std::size_t>(got));
  }
  return fail(Errc::invalid_input, "the request is too long");
}

std::string timer_name(int number) {
  return fmt::format("lockstep-lease-{}", number);
}

// If the copy for reboots fails, only the timer of the first boot ends the machine after one.
Status write_lease(const KeptLease& lease) {
  LOCKSTEP_TRY(write_kept_lease(lease));
  if (const Status kept = keep_for_reboots(lease); !kept) log::warning("{}", kept.error().message);
  return {};
}

// Arms the new timer before removing the old one: the machine is never without a timer.
Status arm(KeptLease& lease) {
  const std::int64_t left = (lease.end - boot_ms()) / 1000 + kTimerBehind;
  std::vector<std::string> environment = proc::own_environment();
  for (std::string& entry : variables_of(lease.terms.ending))
    environment.push_back(std::move(entry));
  LOCKSTEP_TRY(run_script(cloud::arm_script(timer_name(lease.timer + 1), left, lease.terms.ending),
                          environment));
  ++lease.timer;
  LOCKSTEP_TRY(write_lease(lease));
  return run_script(cloud::disarm_script(timer_name(lease.timer - 1)));
}

// The client's clock may be wrong, so only the duration from its "now" to its end counts.
void set_end(KeptLease& lease, const LeaseTerms& terms) {
  lease.end = boot_ms() + (terms.ends_ms - terms.now_ms);
  // The idle time starts again: a user who sets the end has just used the machine.
  lease.touched = boot_ms();
}

Json state_answer() {
  return {{"state", to_json(lease_state())}};
}

// --- as root

// request: {"terms": .., "home": .., "state": ..}
Result<Json> begin_as_root(const nlohmann::json& request) {
  if (!request.contains("terms")) return fail(Errc::corrupt, "the lease has no terms");
  KeptLease lease;
  LOCKSTEP_TRY_ASSIGN(lease.terms, terms_from_json(request["terms"]));
  LOCKSTEP_TRY(make_lease_folder());
  // Two clients may begin at once. Each would disarm the timer of the other.
  LOCKSTEP_TRY_ASSIGN(const io::Fd lock, lease_lock());
  // A repeated begin continues the numbers, so that the old timer is found and disarmed.
  if (const auto before = read_kept_lease()) lease.timer = before->timer;
  lease.home = codec::text_member(request, "home");
  lease.state = codec::text_member(request, "state");
  lease.begin = boot_ms();
  set_end(lease, lease.terms);
  LOCKSTEP_TRY(arm(lease));
  LOCKSTEP_TRY(start_lease_watch());
  // The lease has its own timer now.
  LOCKSTEP_TRY(run_script(cloud::disarm_script(cloud::kBootGuard)));
  return state_answer();
}

SshdPlace sshd_of(const nlohmann::json& request) {
  return {codec::text_member(request, "address"), codec::text_member(request, "port")};
}

Result<Json> make_key_as_root(const nlohmann::json& request) {
  LOCKSTEP_TRY(make_lease_folder());
  LOCKSTEP_TRY_ASSIGN(const std::string key, make_host_key());
  Json answer = state_answer();
  answer["host_key"] = key;
  answer["seen"] = can_see_host_key(sshd_of(request));
  return answer;
}

Result<Json> show_key_as_root(const nlohmann::json& request) {
  LOCKSTEP_TRY(make_lease_folder());
  const auto sees = request.find("sees");
  LOCKSTEP_TRY_ASSIGN(const HostKey key,
                      show_host_key(sshd_of(request), sees != request.end() && *sees == true));
  Json answer = state_answer();
  answer["host_key"] = key.public_line;
  answer["fresh"] = key.fresh;
  answer["note"] = key.note;
  return answer;
}

struct LockedLease {
  io::Fd lock;
  KeptLease lease;
};

// Reads the lease under its lock: another client may change the lease at the same time.
Result<LockedLease> lease_to_change() {
  // Without a lease there is no folder for the lock either.
  if (const auto any = read_kept_lease(); !any && any.error().code == Errc::not_found)
    return fail(Errc::not_found, "this machine has no lease");
  LOCKSTEP_TRY_ASSIGN(io::Fd lock, lease_lock());
  LOCKSTEP_TRY_ASSIGN(KeptLease lease, read_kept_lease());
  return LockedLease{std::move(lock), std::move(lease)};
}

Result<Json> keep_as_root(const nlohmann::json& request) {
  if (!request.contains("terms")) return fail(Errc::corrupt, "the lease has no terms");
  LOCKSTEP_TRY_ASSIGN(const LeaseTerms terms, terms_from_json(request["terms"]));
  LOCKSTEP_TRY_ASSIGN(LockedLease locked, lease_to_change());
  KeptLease& lease = locked.lease;
  if (terms.idle_s >= 0) lease.terms.idle_s = terms.idle_s;
  lease.terms.ends_ms = terms.ends_ms;
  lease.terms.now_ms = terms.now_ms;
  set_end(lease, terms);
  LOCKSTEP_TRY(arm(lease));
  LOCKSTEP_TRY(start_lease_watch());
  return state_answer();
}

Result<Json> hold_as_root(const nlohmann::json& request) {
  const std::int64_t seconds = codec::integer_member(request, "hold_s");
  if (seconds < 0 || seconds > kMostHold)
    return fail(Errc::invalid_input, "a machine can't be held for so long");
  LOCKSTEP_TRY_ASSIGN(LockedLease locked, lease_to_change());
  KeptLease& lease = locked.lease;
  // Several clients may hold the machine: the longest hold counts.
  lease.hold_until = std::max(lease.hold_until, boot_ms() + seconds * 1000);
  LOCKSTEP_TRY(write_lease(lease));
  LOCKSTEP_TRY(start_lease_watch());
  return state_answer();
}

Result<Json> serve_as_root(const std::string& verb, const nlohmann::json& request) {
  if (!request.is_object()) return fail(Errc::corrupt, "the request is unreadable");
  if (verb == "begin") return begin_as_root(request);
  if (verb == "keep") return keep_as_root(request);
  if (verb == "hold") return hold_as_root(request);
  if (verb == "make-key") return make_key_as_root(request);
  if (verb == "show-key") return show_key_as_root(request);
  return fail(Errc::invalid_input, "a lease has no verb '" + printable(verb) + "'");
}

// Runs at boot, as root, by systemd: resumes the lease and watches it in this process.
Result<int> resume_lease() {
  LOCKSTEP_TRY(make_lease_folder());
  {
    LOCKSTEP_TRY_ASSIGN(const io::Fd lock, lease_lock());
    if (!read_kept_lease()) {
      const auto lasting = read_lasting_lease();
      // Keep the timer of the first boot: this machine is a copy from an image, and its own client
      // has not come yet.
      if (!lasting && lasting.error().code == Errc::not_found) return 0;
      LOCKSTEP_TRY(lasting);
      KeptLease lease = lease_after_boot(*lasting, unix_ms(), boot_ms());
      LOCKSTEP_TRY(arm(lease));
    }
    LOCKSTEP_TRY(run_script(cloud::disarm_script(cloud::kBootGuard)));
  }
  return watch_lease();
}

// --- as the user who logs in

// SSH_CONNECTION is "CLIENT PORT SERVER PORT".
void add_server(Json& request) {
  const auto words = split(env_text("SSH_CONNECTION"), ' ');
  if (words.size() != 4) return;
  request["address"] = words[2];
  request["port"] = words[3];
}

Result<std::string> ask_root(const std::string& verb, const Json& request) {
  LOCKSTEP_TRY_ASSIGN(const std::string own, proc::own_executable());
  // sudo starts this same binary as root.
  LOCKSTEP_TRY_ASSIGN(const proc::ToolOutput said,
                      run_as_root({own, "host-lease", "as-root", verb, codec::print_json(request)},
                                  {.patience = kRootPatience}));
  if (said.exit.ok() && said.out.starts_with("{")) return said.out;
  return fail(Errc::unavailable, fmt::format("the lease could not be changed (code {}): {}",
                                             said.exit.shell_code(), printable(strip(said.err))));
}

Result<std::string> change_lease(const std::vector<std::string>& words) {
  Json request{{"home", io::home_folder()}, {"state", io::state_folder()}};
  if (words[0] == "hold") {
    const auto seconds = words.size() == 2 ? parse_int(words[1]) : std::nullopt;
    if (!seconds) return fail(Errc::invalid_input, "hold takes a number of seconds");
    request["hold_s"] = *seconds;
  } else if (words[0] == "make-key" || words[0] == "show-key") {
    add_server(request);
    request["sees"] = words.size() == 2 && words[1] == "sees";
  } else {
    LOCKSTEP_TRY_ASSIGN(const std::string text, read_request());
    LOCKSTEP_TRY_ASSIGN(const LeaseTerms terms, terms_from_json(codec::parse_json(text)));
    request["terms"] = to_json(terms);
  }
  return ask_root(words[0], request);
}

Status say(const std::string& line) {
  return io::write_all(STDOUT_FILENO, line, "the client");
}

std::string line_of(const Json& json) {
  return codec::print_json(json) + "\n";
}

std::string error_line(const Error& error) {
  return line_of({{"error", error.hint.empty() ? error.message : error.message + "; " + error.hint},
                  {"denied", error.code == Errc::denied}});
}

// Returns the state without the clocks that always run, for comparing.
std::string what_counts(LeaseState state, std::int64_t end) {
  state.idle_ms = state.idle_ms > 0 ? 1 : 0;
  state.held_ms = state.held_ms > 0 ? 1 : 0;
  state.left_ms = end;
  return codec::print_json(to_json(state));
}

Result<int> follow_lease() {
  std::string last;
  for (;;) {
    const auto lease = read_kept_lease();
    std::string now = what_counts(lease_state(), lease ? lease->end : 0);
    if (now != last) {
      LOCKSTEP_TRY(say(line_of(state_answer())));
      last = std::move(now);
    }
    pollfd in{STDIN_FILENO, POLLIN, 0};
    if (poll(&in, 1, kFollowLook) <= 0) continue;
    // The client sends nothing. The end of stdin means that the client is gone.
    std::array<char, 256> bytes;
    if (read(STDIN_FILENO, bytes.data(), bytes.size()) <= 0) return 0;
  }
}

}  // namespace

Result<int> serve_lease_request(const std::vector<std::string>& words) {
  const std::string verb = words.empty() ? "" : words.front();
  if (verb == "watch") return watch_lease();
  if (verb == "resume") return resume_lease();
  if (verb == "follow") return follow_lease();
  if (verb == "status") {
    LOCKSTEP_TRY(say(line_of(state_answer())));
    return 0;
  }
  if (verb == "as-root" && words.size() == 3) {
    const auto answer = serve_as_root(words[1], codec::parse_json(words[2]));
    LOCKSTEP_TRY(say(answer ? line_of(*answer) : error_line(answer.error())));
    return 0;
  }
  static constexpr std::string_view kChanges[] = {"begin", "make-key", "show-key", "keep", "hold"};
  if (std::find(std::begin(kChanges), std::end(kChanges), verb) == std::end(kChanges))
    return fail(Errc::invalid_input, "host-lease has no verb '" + printable(verb) + "'");
  const auto answer = change_lease(words);
  LOCKSTEP_TRY(say(answer ? *answer : error_line(answer.error())));
  return 0;
}

}  // namespace lockstep::machine
