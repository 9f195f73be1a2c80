#include "rent/rented_host.h"

#include "base/callback_scope.h"
#include "base/clock_ms.h"
#include "base/text.h"
#include "codec/json_members.h"
#include "hosts/health_talk.h"
#include "hosts/small_command.h"
#include "io/open_files.h"
#include "machine/health_patience.h"
#include "proc/signal_watch.h"
#include "proc/signals.h"
#include "rent/key_swap.h"
#include "rent/lease_answer.h"
#include "rent/silent_port.h"
#include "rent/sshd_probe.h"
#include "ssh/connection.h"
#include "ssh/pins.h"
#include "ssh/ssh_trouble.h"

#include <fmt/core.h>

#include <signal.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace lockstep::rent {
namespace {

using std::chrono::milliseconds;

// The session's socket and pipes, and during a log-in also ssh's pipe, pidfd and lock.
constexpr std::size_t kFilesOfAContact = 12;
constexpr std::uint32_t kHealthChannel = 1;
constexpr std::uint32_t kLeaseChannel = 2;
constexpr std::uint32_t kKeyChannel = 3;  // uses this channel and the next
constexpr std::uint32_t kMoreHealth = 5;  // one more channel for each further check
constexpr milliseconds kHealthPause{5'000};
constexpr milliseconds kSoon{100};
constexpr milliseconds kLater{1000};
constexpr milliseconds kSoonFor{60'000};
constexpr std::chrono::seconds kHealthPatience{150};  // the host key is swapped meanwhile
constexpr std::chrono::seconds kLeasePatience{90};
// sshd may refuse users for a while during boot. A longer refusal is final.
constexpr milliseconds kRefusedFor{120'000};
// The contact with one machine. Calls `done` once.
class Contact {
 public:
  Contact(io::Loop& loop, const FirstContactRequest& request, std::size_t index,
          FirstContact& result, SilentPort& silent, std::function<void()> done);

  bool is_over() const { return stage_ == Stage::over; }
  void give_up(const std::string& why) { end(FirstContact::Outcome::unreachable, why); }

 private:
  enum class Stage { probing, logging_in, health, lease, leased, over };

  const RentedHost& host() const { return request_.hosts[index_]; }
  milliseconds waited() const {
    return std::chrono::duration_cast<milliseconds>(io::Clock::now() - begun_);
  }
  bool is_silent() const { return result_.answered_ms == 0 && waited() >= request_.silent_for; }
  Status pin_first();
  void say(ContactStep::Kind kind, std::string text);
  void probe();
  void on_probed(Status greeted);
  void try_again(std::string why);
  void log_in();
  void on_failed(const Error& error);
  void on_frame(const link::Frame& frame);
  void begin_health();
  void ask_health();
  void on_health(Result<hosts::HealthReport> report);
  void ask_lease();
  void on_lease(Result<std::string> answer);
  void swap_key();
  void on_key(Result<KeyAnswer> key);
  void end_if_ready();
  void hold_to(std::chrono::seconds patience, const char* what);
  void end(FirstContact::Outcome outcome, std::string error);

  io::Loop& loop_;
  const FirstContactRequest& request_;
  std::size_t index_;
  FirstContact& result_;
  SilentPort& silent_;
  std::function<void()> done_;
  Stage stage_ = Stage::probing;
  io::TimePoint begun_ = io::Clock::now();
  std::optional<io::TimePoint> refused_since_;
  std::optional<KeyAnswer> key_;  // the key that sshd shows now
  ContactStep said_;
  std::string why_ = "it does not answer";  // error of the last try
  std::unique_ptr<SshdProbe> probe_;
  std::unique_ptr<ssh::Connection> link_;
  std::unique_ptr<hosts::HealthTalk> health_;
  std::uint32_t health_channel_ = kHealthChannel;
  machine::HealthPatience health_patience_;
  std::unique_ptr<hosts::SmallCommand> lease_;
  std::unique_ptr<KeySwap> swap_;
  io::Timer turn_;
  io::Timer patience_;
  CallbackScope calls_;
};

Contact::Contact(io::Loop& loop, const FirstContactRequest& request, std::size_t index,
                 FirstContact& result, SilentPort& silent, std::function<void()> done)
    : loop_(loop),
      request_(request),
      index_(index),
      result_(result),
      silent_(silent),
      done_(std::move(done)),
      health_patience_(request.health_patience),
      turn_(loop),
      patience_(loop) {
  turn_.start({}, [this] {
    if (Status pinned = pin_first(); !pinned)
      return end(FirstContact::Outcome::unreachable, pinned.error().message);
    probe();
  });
}

// Pins the machine's host key before the first byte is sent. An interrupted command may have pinned
// newer keys for this machine: keep the newer keys.
Status Contact::pin_first() {
  const std::string origin = ssh::bare_key(host().host_public_key);
  LOCKSTEP_TRY_ASSIGN(ssh::Pins pins, ssh::read_pins(request_.pins, host().address, host().port));
  if (pins.origin != origin || pins.keys.empty()) pins = {.keys = {origin}, .origin = origin};
  const std::string told = ssh::bare_key(host().told_key);
  if (!told.empty() && std::find(pins.keys.begin(), pins.keys.end(), told) == pins.keys.end())
    pins.keys = {told};
  result_.host_public_key = pins.keys.back();
  return ssh::pin_host(request_.pins, host().address, host().port, pins);
}

void Contact::say(ContactStep::Kind kind, std::string text) {
  if (text == said_.text) return;
  said_ = {kind, std::move(text)};
  if (request_.on_step) request_.on_step(index_, said_);
}

void Contact::probe() {
  stage_ = Stage::probing;
  link_.reset();
  health_.reset();
  lease_.reset();
  swap_.reset();
  key_.reset();
  patience_.cancel();
  if (result_.answered_ms == 0 && !is_silent()) say(ContactStep::Kind::other, "waits for sshd");
  probe_ = std::make_unique<SshdProbe>(loop_, host().address, host().port,
                                       [this](Status greeted) { on_probed(std::move(greeted)); });
}

void Contact::on_probed(Status greeted) {
  if (!greeted) return try_again(greeted.error().message);
  if (result_.answered_ms == 0) result_.answered_ms = unix_ms();
  // log_in() destroys the probe, which is the caller here.
  turn_.start({}, [this] { log_in(); });
}

void Contact::try_again(std::string why) {
  why_ = std::move(why);
  if (waited() >= request_.patience) {
    // `silent` means that sshd never answered at all, as behind a firewall.
    result_.silent = result_.answered_ms == 0;
    return end(FirstContact::Outcome::unreachable,
               fmt::format("not reached within {} s: {}", request_.patience.count(), why_));
  }
  stage_ = Stage::probing;
  if (is_silent())
    say(ContactStep::Kind::other,
        silent_.words(host().address, host().port, request_.silent_for, why_));
  turn_.start(next_try(waited()), [this] { probe(); });
}

void Contact::log_in() {
  probe_.reset();
  stage_ = Stage::logging_in;
  say(ContactStep::Kind::logs_in, "logs in");
  link_ = std::make_unique<ssh::Connection>(
      loop_,
      ssh::ConnectionSettings{.target = {.host = host().address,
                                         .user = host().user,
                                         .port = host().port,
                                         .key_path = host().key_path,
                                         .host_keys = ssh::HostKeys::pinned},
                              .name = host().name,
                              .pins = request_.pins,
                              .commands = ssh::Commands::may_outlive_us},
      ssh::Connection::Events{[] {},
                              [this](const link::Hello&) {
                                begin_health();
                                swap_key();
                              },
                              [this](const link::Frame& frame) { on_frame(frame); },
                              [this](const Error& error) { on_failed(error); }});
}

void Contact::on_failed(const Error& error) {
  // A link that breaks after the end changes nothing.
  if (is_over()) return;
  const std::string prefix = host().name + ": ";
  std::string why = error.message;
  if (why.starts_with(prefix)) why.erase(0, prefix.size());
  if (error.hint == ssh::kWrongHost) return end(FirstContact::Outcome::wrong_host, why);
  // A wrong host key ends the contact at once. A refused log-in may pass while the machine boots.
  const bool refused = error.code == Errc::denied;
  if (!refused) refused_since_.reset();
  if (refused && !refused_since_) refused_since_ = io::Clock::now();
  if (refused && io::Clock::now() - *refused_since_ > kRefusedFor)
    return end(FirstContact::Outcome::unreachable, why);
  try_again(std::move(why));
}

void Contact::on_frame(const link::Frame& frame) {
  if (health_) health_->on_frame(frame);
  if (lease_) lease_->on_frame(frame);
  if (swap_) swap_->on_frame(frame);
}

void Contact::hold_to(std::chrono::seconds patience, const char* what) {
  patience_.start(patience, [this, patience, what] {
    try_again(fmt::format("no {} within {} s", what, patience.count()));
  });
}

void Contact::begin_health() {
  // The host key is swapped meanwhile: both take seconds, and neither needs the other.
  stage_ = Stage::health;
  health_channel_ = kHealthChannel;
  say(ContactStep::Kind::checked, "is checked");
  ask_health();
}

void Contact::ask_health() {
  hold_to(kHealthPatience, "health report");
  // The answer comes from inside the talk. Handle the answer from the loop, because a retry
  // destroys the talk.
  health_ = std::make_unique<hosts::HealthTalk>(
      loop_, health_channel_, [this](const link::Frame& frame) { link_->send(frame); },
      [this](Result<hosts::HealthReport> report) {
        loop_.post(calls_([this, report = std::move(report)] { on_health(report); }));
      });
  health_->begin(request_.wish.gpus > 0);
}

void Contact::swap_key() {
  swap_ = std::make_unique<KeySwap>(
      KeySwap::Settings{.pins = request_.pins,
                        .address = host().address,
                        .port = host().port,
                        .channel = kKeyChannel},
      [this](const link::Frame& frame) { link_->send(frame); },
      [this](Result<KeyAnswer> key) {
        loop_.post(calls_([this, key = std::move(key)] { on_key(key); }));
      });
  swap_->begin();
}

void Contact::on_health(Result<hosts::HealthReport> report) {
  if (stage_ != Stage::health) return;
  if (!report) return try_again(report.error().message);
  report->measures.provider_ahead_ms = static_cast<double>(request_.provider_ahead_ms);
  result_.findings = machine::judge_health(report->facts, report->measures, request_.wish);
  using Word = machine::HealthPatience::Word;
  Word word = health_patience_.judge(result_.findings, waited());
  if (word.kind == Word::Kind::healthy) return ask_lease();
  if (word.kind == Word::Kind::sick) return end(FirstContact::Outcome::sick, std::move(word.text));
  say(ContactStep::Kind::other, std::move(word.text));
  patience_.cancel();
  // Take a new channel for each check: a number is free again only once the machine has seen the
  // end of the channel.
  health_channel_ = std::max(health_channel_ + 1, kMoreHealth);
  turn_.start(kHealthPause, [this] { ask_health(); });
}

void Contact::ask_lease() {
  stage_ = Stage::lease;
  say(ContactStep::Kind::gets_lease, "gets its lease");
  hold_to(kLeasePatience, "lease or host key");
  machine::LeaseTerms terms = request_.lease;
  // The lease counts from this time, so fill it in as late as possible.
  terms.now_ms = unix_ms();
  lease_ = std::make_unique<hosts::SmallCommand>(
      kLeaseChannel, [this](const link::Frame& frame) { link_->send(frame); },
      [this](Result<std::string> answer) {
        loop_.post(calls_([this, answer = std::move(answer)] { on_lease(answer); }));
      });
  lease_->begin({"host-lease", "begin"}, codec::print_json(to_json(terms)));
}

void Contact::on_lease(Result<std::string> answer) {
  if (stage_ != Stage::lease) return;
  if (!answer) return try_again(answer.error().message);
  if (const auto state = read_lease_state(*answer); !state)
    return end(FirstContact::Outcome::no_lease, state.error().message);
  stage_ = Stage::leased;
  end_if_ready();
}

void Contact::on_key(Result<KeyAnswer> key) {
  if (!swap_ || is_over()) return;
  if (!key) return try_again(key.error().message);
  if (!key->error.empty()) return end(FirstContact::Outcome::no_lease, key->error);
  key_ = std::move(*key);
  end_if_ready();
}

void Contact::end_if_ready() {
  // The lease and the new host key arrive in any order; a machine is ready with both.
  if (stage_ != Stage::leased || !key_) return;
  result_.host_public_key = key_->host_key;
  result_.fresh_key = key_->fresh;
  if (!key_->note.empty())
    result_.findings.push_back({machine::HealthFinding::Kind::note, key_->note});
  end(FirstContact::Outcome::ready, {});
}

void Contact::end(FirstContact::Outcome outcome, std::string error) {
  if (is_over()) return;
  stage_ = Stage::over;
  result_.outcome = outcome;
  if (!error.empty()) result_.error = host().name + ": " + std::move(error);
  patience_.cancel();
  turn_.cancel();
  loop_.post(calls_([this] {
    probe_.reset();
    link_.reset();
    done_();
  }));
}

// Stops the loop on Ctrl-C and other signals to end. The caller decides what happens to the
// machines.
Result<std::unique_ptr<proc::SignalWatch>> watch_signals(io::Loop& loop, int& stopped_by) {
  return proc::SignalWatch::open(loop, [&loop, &stopped_by](int number) {
    if (number == SIGCHLD || number == SIGWINCH || number == SIGCONT) return;
    stopped_by = number;
    loop.stop();
  });
}

}  // namespace

milliseconds next_try(milliseconds waited) {
  return waited < kSoonFor ? kSoon : kLater;
}

Result<std::vector<FirstContact>> make_first_contact(const FirstContactRequest& request) {
  // Each contact takes several descriptors: refuse too many now, not in the middle.
  LOCKSTEP_TRY(io::check_open_files(kFilesOfAContact * (request.hosts.size() + 1)));
  io::raise_open_files_limit();
  // A machine may close the connection. The loss must end a single contact, and not this process.
  signal(SIGPIPE, SIG_IGN);
  proc::block(proc::handled_signals());
  io::Loop loop;
  int stopped_by = 0;
  LOCKSTEP_TRY_ASSIGN(const auto signals, watch_signals(loop, stopped_by));
  std::vector<FirstContact> results(request.hosts.size());
  SilentPort silent(loop, SilentPort::known_server());
  std::vector<std::unique_ptr<Contact>> contacts;
  std::size_t left = results.size();
  for (std::size_t i = 0; i < results.size(); ++i)
    contacts.push_back(std::make_unique<Contact>(loop, request, i, results[i], silent, [&] {
      if (--left == 0) loop.stop();
    }));
  // A gang is kept together, so the loss of one machine ends all contacts.
  std::optional<io::Watch> lost;
  if (request.lost_fd >= 0) {
    lost.emplace(loop, request.lost_fd);
    lost->start(io::kReadable, [&](int) {
      lost->stop();
      for (const auto& contact : contacts)
        contact->give_up("one of the machines is gone");
    });
  }
  if (left > 0) loop.run();
  if (stopped_by != 0)
    return Failure(Error{Errc::canceled,
                         proc::signal_name(stopped_by) + " while waiting for machines",
                         {},
                         stopped_by});
  return results;
}

}  // namespace lockstep::rent
