#include "rent/guard_talk.h"

#include "base/text.h"
#include "codec/json_members.h"
#include "hosts/registry.h"
#include "rent/lease_answer.h"
#include "ssh/target.h"

#include <fmt/core.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace lockstep::rent {
namespace {

using cloud::Attempt;
using cloud::Held;
using cloud::Rental;

constexpr std::array<const char*, 3> kNewsKinds = {"launching", "working", "noting"};
constexpr std::size_t kIntentSize = 20;
constexpr std::size_t kOwnerSize = 16;
constexpr std::size_t kMostAttempts = 256;
constexpr std::size_t kMostUserKey = 4096;
constexpr std::size_t kMostId = 128;
constexpr std::int64_t kLatestMs = 4'102'444'800'000;  // the year 2100
constexpr std::int64_t kMostClockMs = 10'000;
constexpr std::size_t kNameKept = 55;
constexpr std::size_t kIntentShown = 7;
constexpr std::string_view kKeyBegins = "-----BEGIN OPENSSH PRIVATE KEY-----\n";

bool is_tag(std::string_view text, std::size_t size) {
  return text.size() == size && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
         });
}

bool is_time(std::int64_t ms) {
  return ms >= 0 && ms <= kLatestMs;
}

bool is_address(const std::string& text) {
  in6_addr any{};
  return text.empty() || inet_pton(AF_INET, text.c_str(), &any) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &any) == 1;
}

// Ids, addresses and user names become arguments of ssh on the guard's host, and times decide when
// machines end: accept only plain values.
bool is_good_machine(const Held& held) {
  const cloud::Machine& machine = held.machine;
  return !machine.id.empty() && machine.id.size() <= kMostId &&
         machine.id == printable(machine.id) && is_address(machine.address) && machine.port >= 1 &&
         machine.port <= 65'535 &&
         (machine.user.empty() || ssh::parse_target(machine.user + "@h")) &&
         (held.host_key.empty() || is_host_key(held.host_key)) && is_time(held.end_ms) &&
         is_time(machine.launched_ms) && is_time(machine.ended_ms);
}

bool is_good_attempt(const Attempt& attempt) {
  return is_time(attempt.asked_ms) && is_time(attempt.answered_ms) && is_time(attempt.ended_ms) &&
         attempt.machines.size() <= kMostAttempts &&
         std::all_of(attempt.machines.begin(), attempt.machines.end(), is_good_machine);
}

bool is_good_key(const std::string& text) {
  return text.empty() || (text.starts_with(kKeyBegins) && text.size() <= kMostUserKey &&
                          std::all_of(text.begin(), text.end(),
                                      [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
}

bool needs_guard(const Attempt& attempt) {
  return attempt.offer.ending == cloud::Ending::with_guard;
}

// Returns the part of a rental that a guard on another host needs. User data and launch requests
// contain the machines' private host keys and are left out. Machines that terminate themselves are
// left out too.
Rental guarded_part(const Rental& rental) {
  Rental part = rental;
  std::erase_if(part.attempts,
                [](const Attempt& attempt) { return !attempt.open() || !needs_guard(attempt); });
  part.user_data.clear();
  part.start_script.clear();
  for (Attempt& attempt : part.attempts)
    attempt.call.body.clear();
  part.terms.guard = "here";
  // The guard keeps the port rules as they are and never changes them.
  part.terms.allow_from = rental.terms.allowed(cloud::Ending::with_guard);
  part.terms.own_address = false;
  return part;
}

bool yes(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

}  // namespace

bool is_owner(std::string_view text) {
  return is_tag(text, kOwnerSize);
}

bool is_rental_id(std::string_view text) {
  return is_tag(text, kIntentSize);
}

std::string name_there(const std::string& cluster, const std::string& rental) {
  // The host may know a cluster of the same name, so a part of the rental's id tells both apart.
  return fmt::format("{}-{}", cluster.substr(0, kNameKept), rental.substr(0, kIntentShown));
}

GuardNews guard_news(const Rental& rental, GuardNewsKind kind, std::string user_key) {
  return {.kind = kind,
          .rental = guarded_part(rental),
          .user_key = std::move(user_key),
          .newest = newest_number(rental)};
}

std::string guard_news_text(const GuardNews& news) {
  return codec::print_json(
      nlohmann::ordered_json{{"kind", kNewsKinds[static_cast<std::size_t>(news.kind)]},
                             {"rental", cloud::rental_json(news.rental)},
                             {"user_key", news.user_key},
                             {"newest", news.newest}});
}

Result<GuardNews> read_guard_news(std::string_view text, std::string_view owner) {
  const nlohmann::json object = codec::parse_json(text);
  const auto refuse = [](const char* what) {
    return fail(Errc::corrupt, fmt::format("invalid message to the guard: {}", what));
  };
  if (!object.is_object()) return refuse("it must be a JSON object");
  GuardNews news;
  const std::string kind = codec::text_member(object, "kind");
  const auto at = std::find(kNewsKinds.begin(), kNewsKinds.end(), kind);
  if (at == kNewsKinds.end()) return refuse("its kind");
  news.kind = static_cast<GuardNewsKind>(at - kNewsKinds.begin());
  news.user_key = codec::text_member(object, "user_key");
  if (!is_good_key(news.user_key)) return refuse("its ssh key");
  news.newest = static_cast<int>(std::clamp<std::int64_t>(codec::integer_member(object, "newest"),
                                                          0, std::numeric_limits<int>::max()));
  LOCKSTEP_TRY_ASSIGN(news.rental, cloud::parse_rental(codec::text_member(object, "rental")));
  const Rental& rental = news.rental;
  // Both become parts of file names on the guard's host.
  if (!is_rental_id(rental.id) || rental.owner != owner) return refuse("the rental's id or owner");
  LOCKSTEP_TRY(hosts::check_cluster_name(rental.cluster));
  if (!is_time(rental.created_ms) || !is_time(rental.ends_ms) || !is_time(rental.closed_ms))
    return refuse("its times");
  if (rental.attempts.size() > kMostAttempts ||
      !std::all_of(rental.attempts.begin(), rental.attempts.end(), is_good_attempt))
    return refuse("its machines");
  return news;
}

std::string guard_answer_text(const Result<GuardAnswer>& answer) {
  if (!answer)
    return codec::print_json(nlohmann::ordered_json{
        {"error", answer.error().message},
        {"hint", answer.error().hint},
        {"again",
         answer.error().code == Errc::unavailable || answer.error().code == Errc::timeout}});
  const nlohmann::ordered_json object{{"now_ms", answer->now_ms},
                                      {"cidr", answer->cidr},
                                      {"started", answer->started},
                                      {"over", answer->over}};
  return codec::print_json(object);
}

Result<GuardAnswer> read_guard_answer(std::string_view text) {
  constexpr std::size_t kMostWords = 1000;
  const nlohmann::json object = codec::parse_json(strip(text));
  if (!object.is_object()) return fail(Errc::corrupt, "unreadable answer");
  if (const std::string error = codec::text_member(object, "error"); !error.empty())
    // `again` tells trouble that may pass from a refusal.
    return fail(yes(object, "again") ? Errc::unavailable : Errc::denied,
                printable(error, kMostWords),
                printable(codec::text_member(object, "hint"), kMostWords));
  GuardAnswer answer{.now_ms = codec::integer_member(object, "now_ms"),
                     .cidr = codec::text_member(object, "cidr"),
                     .started = yes(object, "started"),
                     .over = yes(object, "over")};
  // The answer opens a port, so accept only the address of a single machine.
  const std::size_t slash = answer.cidr.find('/');
  if (answer.now_ms <= 0 || !is_time(answer.now_ms) || !is_address(answer.cidr.substr(0, slash)) ||
      (!answer.cidr.empty() && answer.cidr.substr(std::min(slash, answer.cidr.size())) != "/32"))
    return fail(Errc::corrupt, "invalid answer");
  return answer;
}

std::string clock_trouble(std::int64_t there_ms, std::int64_t left_ms, std::int64_t came_ms) {
  // The host's clock was read between the two times, so only a value outside them is wrong.
  const std::int64_t ahead = there_ms > came_ms   ? there_ms - came_ms
                             : there_ms < left_ms ? there_ms - left_ms
                                                  : 0;
  if (ahead <= kMostClockMs && ahead >= -kMostClockMs) return {};
  return fmt::format("its clock is {} s {} this machine's, and leases end by the clock",
                     (ahead < 0 ? -ahead : ahead) / 1000, ahead < 0 ? "behind" : "ahead of");
}

std::string guard_host_of(const Rental& rental) {
  return rental.terms.guard == "here" ? std::string() : rental.terms.guard;
}

bool concerns_guard(const Rental& rental) {
  return !guard_host_of(rental).empty() &&
         std::any_of(rental.attempts.begin(), rental.attempts.end(), needs_guard);
}

int newest_number(const Rental& rental) {
  int newest = 0;
  for (const Attempt& attempt : rental.attempts)
    newest = std::max(newest, attempt.number);
  return newest;
}

bool has_open_attempt(const Rental& rental) {
  return std::any_of(rental.attempts.begin(), rental.attempts.end(),
                     [](const Attempt& attempt) { return attempt.open(); });
}

NewsFate fate_of_news(const Rental* known, const GuardNews& news) {
  const Rental& told = news.rental;
  if (known == nullptr || told.closed_ms != 0 || !has_open_attempt(told)) return NewsFate::take;
  const int newest = newest_number(*known);
  // The number of the newest attempt orders the news: a slow request may arrive after a newer one.
  if (news.newest != newest) return news.newest > newest ? NewsFate::take : NewsFate::stale;
  if (told.wanted && (known->closed_ms != 0 || !known->wanted)) return NewsFate::over;
  return NewsFate::take;
}

}  // namespace lockstep::rent
