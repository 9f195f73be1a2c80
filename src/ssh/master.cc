#include "ssh/master.h"

#include "io/read_now.h"
#include "io/unix_socket.h"
#include "proc/find_in_path.h"
#include "proc/tool_output.h"
#include "ssh/find_trusts.h"
#include "ssh/ssh_environment.h"
#include "ssh/ssh_trouble.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <utility>

namespace lockstep::ssh {
namespace {
constexpr std::chrono::milliseconds kTurn{20};
constexpr std::size_t kMostSaid = 64UL << 10;
// TCP has sent the first packet twice by then, and repeats it after 3 and 7 s.
constexpr std::chrono::milliseconds kSlow{1500};
SlowLogin slow_login_told = nullptr;
}  // namespace

void tell_slow_logins(SlowLogin told) {
  slow_login_told = told;
}

bool listens(const std::string& socket) {
  return io::connect_unix(socket).has_value();
}

Master::Master(io::Loop& loop, Target target, MasterSettings settings,
               std::function<void(Status)> done)
    : loop_(loop),
      target_(std::move(target)),
      settings_(std::move(settings)),
      done_(std::move(done)),
      retry_(loop),
      slow_(loop) {
  retry_.start({}, [this] { take_turn(); });
}

void Master::take_turn() {
  if (!lock_) {
    auto opened = io::FileLock::open(settings_.socket + ".lock");
    if (!opened) return finish(Failure(opened.error()));
    lock_ = std::move(*opened);
  }
  // The loop cannot watch flock(), so poll.
  if (!lock_.try_lock().value_or(false)) return retry_.start(kTurn, [this] { take_turn(); });
  // Another client may have started the master while it held the lock.
  if (listens(settings_.socket)) return finish({});
  // A socket without a listener would make ssh refuse to become a master.
  unlink(settings_.socket.c_str());
  if (Status trusts = find_trusts(target_, settings_); !trusts) return finish(std::move(trusts));
  if (Status started = start(master_command(target_, settings_)); !started)
    finish(std::move(started));
}

Status Master::start(std::vector<std::string> argv) {
  auto ssh = proc::find_in_path("ssh");
  if (!ssh) return fail(Errc::not_found, "ssh is not in PATH", "install OpenSSH's client");
  LOCKSTEP_TRY_ASSIGN(io::Pipe pipe, io::make_pipe());
  const io::Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  proc::SpawnSpec spec;
  spec.executable = *ssh;
  spec.argv = std::move(argv);
  spec.env = ssh_environment(proc::own_environment());
  spec.stdin_fd = null.get();
  spec.stdout_fd = null.get();
  spec.stderr_fd = pipe.write.get();
  spec.own_session = false;  // ssh must reach the terminal to ask for a passphrase
  LOCKSTEP_TRY_ASSIGN(child_, proc::spawn(spec));
  said_fd_ = std::move(pipe.read);
  said_source_ =
      std::make_unique<link::Source>(loop_, said_fd_.get(), true,
                                     link::Source::Events{[this](const std::string& bytes) {
                                                            if (said_.size() < kMostSaid)
                                                              said_ += bytes;
                                                            said_source_->grant(bytes.size());
                                                          },
                                                          [] {}});
  end_watch_ = std::make_unique<io::Watch>(loop_, child_->pidfd());
  end_watch_->start(io::kReadable, [this](int) { on_end(); });
  if (slow_login_told != nullptr)
    slow_.start(kSlow, [this] { slow_login_told(target_, settings_.pins); });
  return {};
}

// Does not wait for the end of stderr: the master in the background may keep the pipe open.
void Master::on_end() {
  const auto exit = child_->reap();
  if (!exit) return;
  slow_.cancel();
  end_watch_.reset();
  said_source_.reset();
  io::read_now(said_fd_, said_, kMostSaid);
  if (exit->ok() && !probing_) return finish({});
  if (exit->signal != 0)
    return finish(fail(Errc::canceled, "a signal ended ssh during the log-in"));
  on_failure();
}

void Master::on_failure() {
  // ssh shows this name for a host reached through a ProxyCommand. A master hides the words of that
  // program, so log in once more without a master.
  if (said_.find("UNKNOWN port 65535") != std::string::npos && !std::exchange(probing_, true)) {
    said_.clear();
    if (start(probe_command(target_, settings_))) return;
  }
  const bool locked = !settings_.may_ask && !settings_.locked_keys.empty();
  finish(Failure(ssh_trouble(target_, said_, locked ? settings_.locked_keys.front() : "")));
}

void Master::finish(Status status) {
  lock_ = io::FileLock();
  const auto done = std::move(done_);  // may destroy this
  done(std::move(status));
}

}  // namespace lockstep::ssh
