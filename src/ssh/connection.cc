#include "ssh/connection.h"

#include "base/last_line.h"
#include "base/text.h"
#include "io/read_now.h"
#include "ssh/control_place.h"

#include <fmt/core.h>

#include <unistd.h>

#include <chrono>
#include <utility>

namespace lockstep::ssh {
namespace {
constexpr std::size_t kMostSaid = 64UL << 10;
constexpr std::chrono::milliseconds kTurn{100};
// A login shell or a home on a dead file system may hang for ever.
constexpr std::chrono::seconds kLongestSilence{60};
}  // namespace

Connection::Connection(io::Loop& loop, ConnectionSettings settings, Events events)
    : loop_(loop),
      settings_(std::move(settings)),
      events_(std::move(events)),
      turn_(loop),
      silence_(loop) {
  // Start on the next turn of the loop, so that the caller can finish setting up.
  if (settings_.name.empty()) settings_.name = target_text(settings_.target);
  turn_.start({}, [this] { begin(); });
}

void Connection::begin() {
  auto socket = control_socket(settings_.target, settings_.pins);
  if (!socket) return fail_with(std::move(socket).error());
  socket_ = std::move(*socket);
  auto binary = own_binary();
  if (!binary) return fail_with(std::move(binary).error());
  binary_ = std::move(*binary);
  // Try a running master first: the log-in is the slow part, and other commands may have done it
  // already.
  const Status booted = boot();
  if (booted) return;
  // unavailable: no master listens at the socket.
  if (booted.error().code == Errc::unavailable) return log_in();
  fail_with(booted.error());
}

void Connection::log_in() {
  stage_ = Stage::login;
  logged_in_ = true;
  MasterSettings settings;
  settings.socket = socket_;
  settings.pins = settings_.pins;
  settings.may_ask = settings_.may_ask;
  master_ = std::make_unique<Master>(loop_, settings_.target, std::move(settings),
                                     calls_([this](Status there) {
                                       master_.reset();
                                       if (there) there = boot();
                                       if (!there) fail_with(std::move(there).error());
                                     }));
  events_.asked();
}

Status Connection::boot() {
  stage_ = Stage::booting;
  reset_session();
  LOCKSTEP_TRY_ASSIGN(io::Pipe in, io::make_pipe());
  LOCKSTEP_TRY_ASSIGN(io::Pipe out, io::make_pipe());
  LOCKSTEP_TRY_ASSIGN(io::Pipe err, io::make_pipe());
  const MuxSession::Streams streams{std::move(in.read), std::move(out.write), std::move(err.write)};
  LOCKSTEP_TRY_ASSIGN(
      session_,
      MuxSession::open(loop_, socket_, boot_command(binary_->name, settings_.commands), streams,
                       {[this] { events_.asked(); },
                        [this](std::optional<int> code) {
                          session_over_ = true;
                          code_ = code;
                          on_session_over();
                        },
                        [this](Error error) { fail_with(std::move(error)); }}));
  link_ = std::make_unique<link::Endpoint>(
      loop_, std::move(out.read), std::move(in.write), link::FrameReader::Wants::greeting,
      link::Endpoint::Events{[this](link::Frame frame) { on_frame(std::move(frame)); },
                             [this](const Error& error) {
                               if (error.code == Errc::corrupt) return fail_with(error);
                               link_over_ = true;
                               on_session_over();
                             }});
  // Send before the host's greeting, which saves a round trip. If the binary is missing, no program
  // reads these bytes.
  link_->send(link::Hello{.software = LOCKSTEP_VERSION});
  err_ = std::move(err.read);
  from_err_ = std::make_unique<link::Source>(loop_, err_.get(), true,
                                             link::Source::Events{[this](const std::string& bytes) {
                                                                    if (said_.size() < kMostSaid)
                                                                      said_ += bytes;
                                                                    // Keep reading after the limit,
                                                                    // or the remote command would
                                                                    // block.
                                                                    from_err_->grant(bytes.size());
                                                                  },
                                                                  [] {}});
  silence_.start(kLongestSilence, [this] {
    fail_with(fail(Errc::timeout,
                   fmt::format("the log-in succeeded, but then nothing came for {} s",
                               kLongestSilence.count()),
                   "run `ssh HOST true`: a login shell or a file system may hang there")
                  .value());
  });
  return {};
}

void Connection::reset_session() {
  silence_.cancel();
  from_err_.reset();
  err_.reset();
  link_.reset();
  session_.reset();
  said_.clear();
  code_.reset();
  link_over_ = session_over_ = false;
}

void Connection::send(const link::Frame& frame) {
  if (stage_ == Stage::ready) return link_->send(frame);
  // Callers may start commands at once. The frames follow the host's hello.
  waiting_frames_.push_back(frame);
}

void Connection::on_frame(link::Frame frame) {
  if (stage_ == Stage::ready) return events_.frame(std::move(frame));
  const auto* hello = std::get_if<link::Hello>(&frame);
  if (hello == nullptr || hello->version != link::kVersion)
    return fail_with(fail(Errc::corrupt, "the binary there speaks another protocol").value());
  stage_ = Stage::ready;
  silence_.cancel();
  // The binary is in place: let other clients look for it.
  push_lock_ = io::FileLock();
  for (const link::Frame& waiting : waiting_frames_)
    link_->send(waiting);
  waiting_frames_.clear();
  events_.ready(*hello);
}

// Waits for both ends, output and session: only together they tell the cause.
void Connection::on_session_over() {
  if (!link_over_ || !session_over_) return;
  if (stage_ == Stage::ready)
    return fail_with(fail(Errc::unavailable, "the connection was lost").value());
  const auto absent = parse_absent(link_->chatter());
  if (absent) return push(*absent);
  boot_failed();
}

void Connection::boot_failed() {
  if (!code_ && !logged_in_) {  // a master whose connection died before this session
    // Remove the dead socket, or ssh would not become a master.
    unlink(socket_.c_str());
    reset_session();
    return log_in();
  }
  // The session may end before the loop has read all of stderr.
  from_err_.reset();
  io::read_now(err_, said_, kMostSaid);
  const std::string words = link_->chatter() + "\n" + said_;
  const std::string_view last = last_line(words);
  const std::string why = last.empty() ? "" : ": " + printable(last);
  if (!code_) return fail_with(fail(Errc::unavailable, "the connection was lost" + why).value());
  fail_with(
      fail(Errc::denied,
           fmt::format("the login shell there does not run commands (exit code {}){}", *code_, why),
           "run `ssh HOST true` to see the error")
          .value());
}

void Connection::push(const Absent& absent) {
  if (pushed_)
    return fail_with(
        fail(Errc::unavailable, "the binary was sent there, but is gone again").value());
  if (absent.system != "Linux")
    return fail_with(
        fail(Errc::invalid_input,
             fmt::format("the host runs {}, and Lockstep needs Linux", printable(absent.system)))
            .value());
  auto binary = binary_for(absent.machine);
  if (!binary) return fail_with(std::move(binary).error());
  // The name contains the id of the other architecture's binary, which may already be on the host:
  // look again under that name.
  const bool look_again = binary->name.id != binary_->name.id;
  binary_ = std::move(*binary);
  if (look_again && std::exchange(looked_again_, true))
    return fail_with(fail(Errc::corrupt, "the host names one processor and then another",
                          "run `ssh HOST uname -m` several times: is HOST several machines?")
                         .value());
  if (look_again) return boot_again();
  // Another client of this user is pushing the same binary. Look again until it is there.
  if (!may_push()) return turn_.start(kTurn, [this] { boot_again(); });
  pushed_ = true;
  silence_.cancel();
  stage_ = Stage::pushing;
  push_ = std::make_unique<Push>(loop_, socket_, *binary_, pushes_all_ ? 0 : absent.partial,
                                 calls_([this](Status done) { on_pushed(std::move(done)); }));
  if (Status begun = push_->begin(); !begun) fail_with(std::move(begun).error());
}

// A killed client leaves bytes in flight, which may still be written while the next push appends to
// the same part. The digest shows that. By then the old writer has ended, so a second push from the
// beginning succeeds.
void Connection::on_pushed(Status done) {
  // `done` was called from inside Push: destroy it on the next turn.
  loop_.post(calls_([this] { push_.reset(); }));
  if (push_->arrived_damaged() && !std::exchange(pushes_all_, true)) {
    pushed_ = false;
    stage_ = Stage::booting;
    return boot_again();
  }
  if (done) done = boot();
  if (!done) fail_with(std::move(done).error());
}

void Connection::boot_again() {
  if (Status booted = boot(); !booted) fail_with(std::move(booted).error());
}

// The lock lasts until the connection is ready or has failed.
bool Connection::may_push() {
  if (!push_lock_) push_lock_ = io::FileLock::open(socket_ + ".push").value_or(io::FileLock());
  return push_lock_ && push_lock_.try_lock().value_or(false);
}

void Connection::fail_with(Error error) {
  if (stage_ == Stage::failed) return;
  stage_ = Stage::failed;
  silence_.cancel();
  Error named = std::move(error).within(settings_.name);
  // Report on the next turn: fail_with() may run inside a callback of an object that
  // reset_session() destroys.
  turn_.start({}, [this, named = std::move(named)]() mutable {
    reset_session();
    master_.reset();
    push_.reset();
    push_lock_ = io::FileLock();
    events_.failed(std::move(named));
  });
}

}  // namespace lockstep::ssh
