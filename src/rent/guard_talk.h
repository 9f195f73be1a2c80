// The requests and answers between a client and the guard on another host, as JSON. Both sides
// check what they read strictly. Pure. No message carries provider credentials.
#pragma once

#include "base/error.h"
#include "cloud/rental.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::rent {

inline constexpr const char* kHostGuardCommand = "host-guard";

enum class GuardNewsKind {
  launching,  // a launch follows once the guard knows of it
  working,    // the client is working on the rental
  noting,     // only a new state of the rental
};

// The guard's knowledge of a rental, with the ssh key for asking machines whether they are idle.
struct GuardNews {
  GuardNewsKind kind = GuardNewsKind::noting;
  cloud::Rental rental = {};
  std::string user_key = {};  // private key in OpenSSH's format; empty: not known
  int newest = 0;             // number of the newest attempt, which may be over
};
// Returns the news about a client's rental.
GuardNews guard_news(const cloud::Rental& rental, GuardNewsKind kind, std::string user_key);

std::string guard_news_text(const GuardNews& news);
// Reads and checks news. owner: the id of the sending installation. Every member used as a path, an
// argument or a time is checked. corrupt: the news is not valid.
Result<GuardNews> read_guard_news(std::string_view text, std::string_view owner);
bool is_owner(std::string_view text);
bool is_rental_id(std::string_view text);
// Returns the rental's name on the guard's host, which includes the rental's id. A client may use a
// name again before the guard hears of the first rental's end.
std::string name_there(const std::string& cluster, const std::string& rental);

struct GuardAnswer {
  std::int64_t now_ms = 0;  // the host's clock, Unix time
  std::string cidr = {};    // the host's public address, if that was asked for
  bool started = false;     // the guard did not run there and was started
  bool over = false;        // the guard has terminated the machines, or is doing so
};

std::string guard_answer_text(const Result<GuardAnswer>& answer);
// Reads a guard's answer. unavailable: the trouble may pass. denied: the host does not guard the
// rental.
Result<GuardAnswer> read_guard_answer(std::string_view text);

// Returns the error of the host's clock as text, or "". left_ms, came_ms: the times of the request
// and the answer on this machine. Leases end at a time of day, so both clocks must agree.
std::string clock_trouble(std::int64_t there_ms, std::int64_t left_ms, std::int64_t came_ms);

// Returns the host that guards the rental; empty: no other host does.
std::string guard_host_of(const cloud::Rental& rental);
// Returns whether the rental ever had an attempt that a guard on another host must know of.
bool concerns_guard(const cloud::Rental& rental);
enum class NewsFate {
  take,
  stale,  // the guard knows something newer
  over,   // the guard has terminated the machines by itself
};
// Returns what to do with the news. known: the guard's record of that rental; nullptr: none.
NewsFate fate_of_news(const cloud::Rental* known, const GuardNews& news);
bool has_open_attempt(const cloud::Rental& rental);
// Returns the highest number of the rental's attempts; 0: there are none.
int newest_number(const cloud::Rental& rental);

}  // namespace lockstep::rent
