#include "slurm/preflight_run.h"

#include "base/clock_ms.h"
#include "base/id.h"
#include "base/text.h"
#include "io/listen.h"
#include "io/place_text.h"
#include "slurm/preflight_text.h"

#include <fmt/core.h>

#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace lockstep::slurm {
namespace {

using std::chrono::milliseconds;

// All nodes of a large job connect at about the same time.
constexpr int kBacklog = 4096;
constexpr std::size_t kMostStrangers = 4096;

// Connections without a proof may take half of the descriptors and no more, to leave room for
// nodes.
std::size_t most_strangers() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return kMostStrangers;
  return std::min<std::size_t>(kMostStrangers, files.rlim_cur / 2);
}

}  // namespace

Preflight::Preflight(io::Loop& loop, PreflightSettings settings)
    : loop_(loop),
      settings_(std::move(settings)),
      told_(settings_.nodes.size()),
      tell_timer_(loop),
      turn_timer_(loop),
      end_timer_(loop) {}

std::optional<PreflightDecision> Preflight::run() {
  // A late node finds the decision of the others.
  if (read_decision()) return decision_;
  const io::TimePoint began = io::Clock::now();
  open();
  if (!settings_.ask.python.empty())
    python_.emplace(loop_, settings_.ask, [this] { maybe_tell(); });
  look();
  const int count = static_cast<int>(settings_.nodes.size());
  for (const int node : peers_of(settings_.self, count))
    dial(node);
  start_timers(std::chrono::floor<milliseconds>(io::Clock::now() - began));
  if (count == 1) maybe_tell();
  if (!done_) loop_.run();
  return decision_;
}

// Looks at this node. Runs after the start of Python, because nvidia-smi takes a second or two, as
// long as the import of PyTorch.
void Preflight::look() {
  NodeFacts seen = settings_.look();
  seen.port_trouble = std::move(facts_.port_trouble);
  facts_ = std::move(seen);
}

// Starts the timers. spent: time that this node's own checks have taken. Count it, but leave a
// second to hear other nodes.
void Preflight::start_timers(milliseconds spent) {
  constexpr milliseconds kToHear(1'000);
  spent = std::min(spent, std::max(settings_.tell_at - kToHear, milliseconds(0)));
  tell_timer_.start(settings_.tell_at - spent, [this] { tell(); });
  const milliseconds decide_at = settings_.decide_at - spent;
  if (settings_.self < kDeciders)
    turn_timer_.start(decide_at + settings_.self * settings_.next_decider, [this] { on_turn(); });
  end_timer_.start(decide_at + kDeciders * settings_.next_decider, [this] { give_up(); });
}

void Preflight::open() {
  if (settings_.nodes.size() == 1) return;
  auto listener = io::open_listener("", settings_.port, kBacklog);
  if (!listener) {
    facts_.port_trouble = listener.error().message;
    return;
  }
  most_strangers_ = most_strangers();
  listener_ = std::move(listener->fd);
  accepting_ = std::make_unique<io::Watch>(loop_, listener_.get());
  accepting_->start(io::kReadable, [this](int) { accept(); });
}

// --- the way to the others ---

void Preflight::dial(int node) {
  Peer& peer = peers_[node];
  peer.failure = {node, "it did not answer", Unreached::How::cut};
  io::DialRules rules;
  rules.patience = settings_.tell_at;
  rules.most_for_address = milliseconds(2'500);
  rules.first_pause = milliseconds(10);
  rules.longest_pause = milliseconds(100);
  const std::string& host = settings_.nodes[static_cast<std::size_t>(node)];
  const auto note = [this, node](const Error& error) {
    Unreached& failure = peers_[node].failure;
    // The last failure decides: a node that starts late refuses first.
    if (error.sys == ECONNREFUSED)
      failure.how = Unreached::How::refused;
    else if (error.sys != 0)
      failure.how = Unreached::How::cut;
    failure.why = printable(error.message);
  };
  peer.dialer = std::make_unique<io::Dialer>(
      loop_,
      io::Dialer::Target{"connect to " + io::place_text(printable(host), settings_.port), host,
                         settings_.port},
      rules,
      io::Dialer::Events{.connected = [this, node](io::Fd fd) { greet(node, std::move(fd)); },
                         .round_failed = note,
                         .gave_up =
                             [this, note](const Error& error) {
                               note(error);
                               maybe_tell();
                             }});
}

void Preflight::greet(int node, io::Fd fd) {
  Peer& peer = peers_[node];
  peer.stream = std::make_unique<PreflightStream>(
      loop_, std::move(fd), PreflightStream::Side::dials, settings_.token, settings_.job,
      PreflightStream::Events{
          .message = [this, node](PreflightKind kind,
                                  std::string_view body) { on_peer(node, kind, body); },
          .ended = [this, node](const Error& error) { lost_peer(node, error); }});
  peer.stream->send(PreflightKind::hello, std::to_string(settings_.self));
}

void Preflight::on_peer(int node, PreflightKind kind, std::string_view body) {
  if (kind == PreflightKind::decision) {
    if (auto decision = decision_from_text(body)) settle(*decision);
    return;
  }
  Peer& peer = peers_[node];
  if (kind != PreflightKind::welcome || peer.reached) return;
  if (body != std::to_string(node)) {
    Error error{
        Errc::corrupt, fmt::format("another node answers there: {}", printable(body)), {}, 0};
    return lost_peer(node, error);
  }
  peer.reached = true;
  maybe_tell();
}

// Handles a closed connection. A node that was reached before has heard the decision, or has died.
void Preflight::lost_peer(int node, const Error& error) {
  Peer& peer = peers_[node];
  peer.stream.reset();
  if (peer.reached) {
    read_decision();
    return;
  }
  peer.failure = {node, printable(error.message), Unreached::How::other};
  peer.dialer->go_on(Error{error.code, error.message, {}, 0}, true);
}

// --- the others' way here ---

void Preflight::accept() {
  io::Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd) {
    const bool full = errno == EMFILE || errno == ENFILE;
    // Out of descriptors: drop the oldest stranger. Without strangers, stop listening, or the loop
    // would spin.
    if (full && !send_stranger_away()) accepting_->stop();
    return;
  }
  const int id = ++last_guest_;
  guests_[id].stream = std::make_unique<PreflightStream>(
      loop_, std::move(fd), PreflightStream::Side::accepts, settings_.token, settings_.job,
      PreflightStream::Events{
          .message = [this, id](PreflightKind kind,
                                std::string_view body) { on_guest(id, kind, body); },
          .ended =
              [this, id](const Error&) {
                strangers_.erase(id);
                guests_.erase(id);
              }});
  strangers_.insert(id);
  if (strangers_.size() > most_strangers_) send_stranger_away();
}

// Closes the connection that has been silent longest. A real node dials again.
bool Preflight::send_stranger_away() {
  if (strangers_.empty()) return false;
  guests_.erase(*strangers_.begin());
  strangers_.erase(strangers_.begin());
  return true;
}

void Preflight::on_guest(int id, PreflightKind kind, std::string_view body) {
  Guest& guest = guests_.at(id);
  if (kind == PreflightKind::hello && guest.node < 0) {
    const auto node = parse_int(body);
    if (!node || *node < 0 || *node >= static_cast<std::int64_t>(told_.size())) return;
    guest.node = static_cast<int>(*node);
    strangers_.erase(id);
    guest.stream->send(PreflightKind::welcome, std::to_string(settings_.self));
    // The node has started now. Dial it at once instead of after the pause, which grew while it
    // refused.
    if (const auto peer = peers_.find(guest.node); peer != peers_.end())
      peer->second.dialer->hurry();
  } else if (kind == PreflightKind::facts && guest.node >= 0) {
    take_facts(guest.node, body);
  }
}

// --- what is told, and decided ---

void Preflight::maybe_tell() {
  if (has_told_) return;
  // tell() comes at the latest when tell_timer_ ends.
  if (python_ && !python_->answer().finished) return;
  for (const auto& [node, peer] : peers_)
    if (!peer.reached && io::Clock::now() < peer.dialer->until()) return;
  tell();
}

void Preflight::tell() {
  if (std::exchange(has_told_, true)) return;
  NodeFacts& facts = facts_;
  if (python_) facts.python = python_->answer();
  for (const auto& [node, peer] : peers_)
    if (!peer.reached) facts.unreached.push_back(peer.failure);
  facts.clock_ms = unix_ms();
  const std::string text = facts_text(facts);
  for (const auto& [node, peer] : peers_)
    if (node < kDeciders && peer.reached && peer.stream)
      peer.stream->send(PreflightKind::facts, text);
  take_facts(settings_.self, text);
}

void Preflight::take_facts(int node, std::string_view body) {
  const int count = static_cast<int>(told_.size());
  auto facts = facts_from_text(body, count);
  if (!facts) return;
  facts->arrived_ms = unix_ms();
  told_[static_cast<std::size_t>(node)] = std::move(*facts);
  const bool all = std::all_of(told_.begin(), told_.end(), [](const auto& each) { return each; });
  // With all facts, node 0 decides early. Other deciders wait for their turn.
  if (all && settings_.self == 0) decide_now();
}

void Preflight::on_turn() {
  if (done_ || read_decision()) return;
  const auto told =
      std::count_if(told_.begin(), told_.end(), [](const auto& each) { return each; });
  if (may_decide(settings_.self, static_cast<int>(told), static_cast<int>(told_.size())))
    decide_now();
}

// Ends a pre-flight without a decision. Writes "go on" into the file, so that a late decider cannot
// decide otherwise.
void Preflight::give_up() {
  if (done_ || read_decision()) return;
  PreflightDecision none;
  none.lines = {"no node has heard from most other nodes in time: all nodes go on"};
  if (const auto kept = keep_first_decision(settings_.file, none, decided_here_))
    return settle(*kept);
  loop_.stop();
}

void Preflight::decide_now() {
  if (done_) return;
  const PreflightDecision own = decide(settings_.nodes, told_, settings_.size);
  bool made = false;
  const auto kept = keep_first_decision(settings_.file, own, made);
  // This node's folder is broken. Let another node decide, which also reports this one.
  if (!kept && told_.size() > 1) return;
  decided_here_ = made || !kept;
  settle(kept ? *kept : own);
}

void Preflight::settle(const PreflightDecision& decision) {
  if (std::exchange(done_, true)) return;
  decision_ = decision;
  const std::string text = decision_text(decision);
  for (const auto& [id, guest] : guests_)
    if (guest.node >= 0) guest.stream->send(PreflightKind::decision, text);
  loop_.stop();
}

bool Preflight::read_decision() {
  const auto text = io::read_file(settings_.file, 16U << 20);
  auto found = text ? decision_from_text(*text) : Result<PreflightDecision>(Failure(text.error()));
  if (!found) return false;
  settle(*found);
  return true;
}

Result<PreflightDecision> keep_first_decision(const std::string& file,
                                              const PreflightDecision& decision, bool& made) {
  const std::string draft = fmt::format("{}.{}.tmp", file, random_suffix(12));
  made = false;
  LOCKSTEP_TRY(io::write_file(draft, decision_text(decision)));
  // link() fails if the file exists, so exactly one node's decision counts, on network file
  // systems, too.
  made = ::link(draft.c_str(), file.c_str()) == 0;
  const int error = made ? 0 : errno;
  // link() fails on file systems without hard links. Then rename: two nodes that decide at the same
  // moment may both count.
  const bool renamed = !made && error != EEXIST && access(file.c_str(), F_OK) != 0 &&
                       ::rename(draft.c_str(), file.c_str()) == 0;
  made = made || renamed;
  if (!renamed) ::unlink(draft.c_str());
  if (made) return decision;
  LOCKSTEP_TRY_ASSIGN(const std::string text, io::read_file(file, 16U << 20));
  return decision_from_text(text);
}

}  // namespace lockstep::slurm
