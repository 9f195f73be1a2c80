#include "rent/guard_hosts.h"

#include "base/callback_scope.h"
#include "base/clock_ms.h"
#include "base/text.h"
#include "hosts/place.h"
#include "hosts/registry.h"
#include "hosts/small_command.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "proc/signals.h"
#include "rent/guard_plan.h"
#include "rent/rental_files.h"

#include <fmt/core.h>

#include <poll.h>
#include <signal.h>

#include <memory>
#include <optional>
#include <utility>

namespace lockstep::rent {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr std::uint32_t kGuardChannel = 1;
constexpr seconds kAgreePatience{600};  // the binary may have to be copied first
constexpr seconds kTellPatience{60};
constexpr seconds kNotePatience{20};
// Do not ask a silent host again for this long, unless a launch depends on the answer.
constexpr seconds kSilentFor{30};
constexpr int kInsistTries = 3;
constexpr int kInsistPauseMs = 2'000;

// Sends one request to one host and waits for the answer.
class GuardCall {
 public:
  GuardCall(const hosts::HostPlace& place, seconds patience, int stop_fd)
      : patience_(loop_), stop_(loop_, stop_fd) {
    // The request may start a guard on the host, which must outlive the connection.
    link_ = std::make_unique<hosts::HostLink>(
        loop_, hosts::HostLink::Settings{.place = place, .commands = ssh::Commands::may_outlive_us},
        hosts::HostLink::Events{[this](const link::Frame& frame) { command_->on_frame(frame); },
                                [this, name = place.name + ": "](std::string why) {
                                  if (why.starts_with(name)) why.erase(0, name.size());
                                  end(fail(Errc::unavailable, std::move(why)));
                                }});
    command_ = std::make_unique<hosts::SmallCommand>(
        kGuardChannel, [this](const link::Frame& frame) { link_->send(frame); },
        [this](Result<std::string> said) { end(std::move(said)); });
    stop_.start(io::kReadable, [this](int) { end(fail(Errc::canceled, "stopped by the user")); });
    patience_.start(patience, [this, patience] {
      end(fail(Errc::unavailable, fmt::format("no answer within {} s", patience.count())));
    });
  }

  Result<std::string> ask(std::vector<std::string> words, std::string input) {
    command_->begin(std::move(words), std::move(input));
    loop_.run();
    return std::move(*said_);
  }

 private:
  void end(Result<std::string> said) {
    if (!said_) said_ = std::move(said);
    loop_.stop();
  }

  io::Loop loop_;
  std::optional<Result<std::string>> said_;
  io::Timer patience_;
  io::Watch stop_;
  std::unique_ptr<hosts::SmallCommand> command_;
  std::unique_ptr<hosts::HostLink> link_;
};

GuardHosts::Word word_for(const Result<GuardAnswer>& answer) {
  using Word = GuardHosts::Word;
  if (!answer) return answer.error().code == Errc::denied ? Word::refuses : Word::silent;
  if (answer->over) return Word::over;
  return answer->started ? Word::started : Word::guards;
}

std::string line_of(const Error& error) {
  return error.hint.empty() ? error.message : error.message + "; " + error.hint;
}

}  // namespace

Result<GuardAnswer> GuardHosts::say(const std::string& host, std::vector<std::string> words,
                                    std::string input, std::chrono::seconds patience) {
  LOCKSTEP_TRY_ASSIGN(const hosts::HostPlace place, place_of(host));
  signal(SIGPIPE, SIG_IGN);
  proc::block(proc::handled_signals());
  GuardCall call(place, patience, stop_fd_);
  // The host's clock is compared with the time between these two readings.
  const std::int64_t left_ms = unix_ms();
  auto said = call.ask(std::move(words), std::move(input));
  const std::int64_t came_ms = unix_ms();
  // Any answer shows that the host is back, also a refusal.
  if (said) silent_.erase(host);
  auto answer = said ? read_guard_answer(*said) : Failure(said.error());
  if (answer)
    // Leases end at a time of day, so a host with a wrong clock would end them early or late.
    if (const std::string trouble = clock_trouble(answer->now_ms, left_ms, came_ms);
        !trouble.empty())
      answer = fail(Errc::denied, trouble, "set one of the clocks");
  if (answer) return answer;
  Error error = std::move(answer).error();
  // A stop by the user says nothing about the host.
  if (error.code != Errc::canceled)
    error.message = fmt::format("the guard on {}: {}", printable(host, 60), error.message);
  if (!said && error.code == Errc::unavailable) silent_[host] = {error, steady_clock::now()};
  return Failure(std::move(error));
}

Result<GuardAnswer> GuardHosts::agree(const std::string& host,
                                      const std::vector<std::string>& providers,
                                      bool with_address) {
  LOCKSTEP_TRY_ASSIGN(
      GuardAnswer answer,
      say(host,
          {kHostGuardCommand, "ask", owner_, join(providers, ","), with_address ? "address" : "-"},
          {}, kAgreePatience));
  if (with_address && answer.cidr.empty())
    return fail(Errc::corrupt, fmt::format("the guard on {} did not report its address", host));
  return answer;
}

Result<hosts::HostPlace> GuardHosts::place_of(const std::string& host) {
  const auto refuse = [&](std::string_view why) {
    return fail(Errc::invalid_input, fmt::format("--guard {}: {}", printable(host, 60), why),
                "name a machine that is on all the time, as you would for ssh, or --guard here");
  };
  LOCKSTEP_TRY_ASSIGN(const hosts::Registry registry, hosts::Registry::open(io::state_folder()));
  if (const auto known = registry.find(host); known && known->is_rented())
    // A rented machine may be terminated before the machines that it should guard.
    return refuse("a rented cluster cannot be a guard");
  auto places = hosts::find_places(registry, host, std::nullopt, {});
  if (!places)
    return Failure(std::move(places).error().within(fmt::format("--guard {}", printable(host))));
  if (places->size() != 1) return refuse(fmt::format("it has {} nodes", places->size()));
  if (places->front().here) return refuse("that is this machine");
  return std::move(places->front());
}

GuardHosts::Heard GuardHosts::hear(const cloud::Rental& rental, const Result<GuardAnswer>& answer) {
  Heard heard{.word = word_for(answer), .trouble = {}};
  if (!answer) heard.trouble = answer.error();
  // The client learns here that the machines are gone: the rental must not be used.
  if (heard.word == Word::over)
    heard.trouble = fail(Errc::denied, fmt::format("the guard on {} has ended '{}'",
                                                   guard_host_of(rental), rental.cluster))
                        .value();
  return heard;
}

Status GuardHosts::tell(const cloud::Rental& rental, GuardNewsKind kind) {
  if (!concerns_guard(rental)) return {};
  // The guard needs the ssh key only once there is a machine that a client has met.
  std::string key;
  if (!met_machines(rental).empty())
    if (auto text = io::read_file(user_key_file(rental.cluster), 4096)) key = std::move(*text);
  const GuardNews news = guard_news(rental, kind, std::move(key));
  const std::string host = guard_host_of(rental);
  const auto silent = silent_.find(host);
  Heard& heard = heard_[rental.id];
  if (silent != silent_.end() && steady_clock::now() - silent->second.at < kSilentFor &&
      kind != GuardNewsKind::launching) {
    heard = {.word = Word::silent, .trouble = silent->second.why};
  } else {
    // Termination must not wait long for a guard host that does not answer.
    const bool brief = kind == GuardNewsKind::noting || !rental.wanted;
    heard = hear(rental, say(host, {kHostGuardCommand, "tell", owner_}, guard_news_text(news),
                             brief ? kNotePatience : kTellPatience));
  }
  // A guard with nothing left to terminate need not know: no error.
  if (heard.word == Word::guards || heard.word == Word::started || !has_open_attempt(news.rental))
    return {};
  return Failure(heard.trouble);
}

Status GuardHosts::insist(const cloud::Rental& rental) {
  Status told;
  for (int tries = 0; tries < kInsistTries; ++tries) {
    pollfd stop{stop_fd_, POLLIN, 0};
    if (tries > 0 && poll(&stop, 1, kInsistPauseMs) != 0) break;
    // Forget that the host was silent: otherwise tell() would not ask again.
    silent_.erase(guard_host_of(rental));
    told = tell(rental, GuardNewsKind::working);
    if (told || told.error().code != Errc::unavailable) break;
  }
  return told;
}

GuardHosts::Word GuardHosts::word_of(const cloud::Rental& rental) const {
  const auto found = heard_.find(rental.id);
  return found == heard_.end() ? Word::nothing : found->second.word;
}

std::string GuardHosts::trouble_of(const cloud::Rental& rental) const {
  const auto found = heard_.find(rental.id);
  return found == heard_.end() ? std::string() : line_of(found->second.trouble);
}

}  // namespace lockstep::rent
