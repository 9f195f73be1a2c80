// What a client and the guard on another machine say to each other, as JSON: both sides read it
// strictly. Pure. Provider keys are in none of it.
#pragma once

#include "base/error.h"
#include "cloud/rental.h"
#include "rent/watch_talk.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::rent {

inline constexpr const char* kHostGuardCommand = "host-guard";

enum class GuardNewsKind {
  launching,  // a launch goes out as soon as this is known
  working,    // the client is at work on it
  noting,     // how it is
};

// What the guard is to know of a rental: with its ssh key, to ask machines whether they are idle.
struct GuardNews {
  GuardNewsKind kind = GuardNewsKind::noting;
  cloud::Rental rental = {};
  std::string user_key = {};  // OpenSSH's private text; empty: it is not there
  int newest = 0;             // the number of its newest attempt, which may be over
};
// Of a client's rental.
GuardNews guard_news(const cloud::Rental& rental, GuardNewsKind kind, std::string user_key);

std::string guard_news_text(const GuardNews& news);
// owner: the installation that says it; all of a rental that becomes a path, an argument or a time
// is checked.
Result<GuardNews> read_guard_news(std::string_view text, std::string_view owner);
bool is_owner(std::string_view text);
bool is_rental_id(std::string_view text);
// What a rental is called there: what its client calls by one name may come twice, as one whose end
// was not heard of.
std::string name_there(const std::string& cluster, const std::string& rental);

struct GuardAnswer {
  std::int64_t now_ms = 0;  // the clock there
  std::string cidr = {};    // its public address, where that was asked for
  bool started = false;     // the guard there did not run, and does now
  bool over = false;        // it has ended the machines, or is at it
  // Of its keys: "aws=account 1234", where machines end themselves, whosever they are.
  std::vector<std::string> accounts = {};
  std::optional<WatchAnswer> watch = {};  // of a job
};
// "aws=account 1234" of what Provider::account() says, without who we are in it.
std::string account_word(std::string_view provider, std::string_view account);

std::string guard_answer_text(const Result<GuardAnswer>& answer);
// unavailable: what ails it there may pass; denied: it does not guard.
Result<GuardAnswer> read_guard_answer(std::string_view text);

// What is the matter between two clocks, where a question left and its answer came at these times
// of ours; empty: nothing. Leases are times of day.
std::string clock_trouble(std::int64_t there_ms, std::int64_t left_ms, std::int64_t came_ms);

// The host whose guard is to end it; empty: there is none elsewhere.
std::string guard_host_of(const cloud::Rental& rental);
// Whether anything was ever asked for that such a guard must know of.
bool concerns_guard(const cloud::Rental& rental);
enum class NewsFate {
  take,
  stale,  // more is known there already
  over,   // the guard has ended it by itself
};
// known: what the guard knows of that rental; nullptr: nothing.
NewsFate fate_of_news(const cloud::Rental* known, const GuardNews& news);
bool has_open_attempt(const cloud::Rental& rental);
// Of its attempts; 0: it has none.
int newest_number(const cloud::Rental& rental);

}  // namespace lockstep::rent
