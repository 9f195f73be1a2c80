#include "cli/own_answer.h"

#include "io/read_now.h"
#include "proc/tool_output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr std::size_t kMostSaid = 32UL << 20;
constexpr std::size_t kMostErrors = 64UL << 10;
// A host over ssh may need a log-in first.
constexpr std::chrono::seconds kAnswerLimit{60};

}  // namespace

Result<std::unique_ptr<OwnAnswer>> OwnAnswer::ask(io::Loop& loop, const Args& words,
                                                  std::function<void(Said)> then) {
  proc::SpawnSpec spec;
  LOCKSTEP_TRY_ASSIGN(spec.executable, proc::own_executable());
  LOCKSTEP_TRY_ASSIGN(io::Pipe out, io::make_pipe());
  LOCKSTEP_TRY_ASSIGN(io::Pipe err, io::make_pipe());
  const io::Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) return fail_sys("open /dev/null", errno);
  spec.argv = {"lockstep"};
  spec.argv.insert(spec.argv.end(), words.begin(), words.end());
  spec.env = proc::own_environment();
  spec.stdin_fd = null.get();
  spec.stdout_fd = out.write.get();
  spec.stderr_fd = err.write.get();
  LOCKSTEP_TRY_ASSIGN(proc::Child child, proc::spawn(spec));
  return std::unique_ptr<OwnAnswer>(new OwnAnswer(loop, std::move(child), std::move(out.read),
                                                  std::move(err.read), std::move(then)));
}

OwnAnswer::OwnAnswer(io::Loop& loop, proc::Child child, io::Fd out, io::Fd err,
                     std::function<void(Said)> then)
    : child_(std::move(child)),
      out_(std::move(out)),
      err_(std::move(err)),
      then_(std::move(then)),
      out_watch_(std::make_unique<io::Watch>(loop, out_.get())),
      err_watch_(std::make_unique<io::Watch>(loop, err_.get())),
      end_watch_(loop, child_.pidfd()),
      limit_(loop) {
  out_watch_->start(io::kReadable, [this](int) { read(out_, out_watch_, said_.out, kMostSaid); });
  err_watch_->start(io::kReadable, [this](int) { read(err_, err_watch_, said_.err, kMostErrors); });
  end_watch_.start(io::kReadable, [this](int) { on_end(); });
  limit_.start(kAnswerLimit, [this] { give_up(); });
}

OwnAnswer::~OwnAnswer() {
  if (child_.alive()) child_.signal_group(SIGKILL);
}

// Killed commands are awaited, too: on_end() comes next.
void OwnAnswer::give_up() {
  said_.whole = false;
  child_.signal_group(SIGKILL);
}

void OwnAnswer::read(io::Fd& fd, std::unique_ptr<io::Watch>& watch, std::string& into,
                     std::size_t most) {
  std::array<char, 64UL << 10> bytes;
  const ssize_t got = ::read(fd.get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return watch->stop();
  if (into.size() < most) into.append(bytes.data(), static_cast<std::size_t>(got));
  // Errors beyond the limit are dropped. A cut answer is none.
  if (&into == &said_.out && into.size() >= most) give_up();
}

void OwnAnswer::on_end() {
  const auto exit = child_.reap();
  if (!exit) return;
  end_watch_.stop();
  limit_.cancel();
  // The end may be seen before the last bytes are.
  io::read_now(out_, said_.out, kMostSaid);
  io::read_now(err_, said_.err, kMostErrors);
  said_.code = exit->shell_code();
  // then_ may destroy this object: call it last.
  const auto then = std::exchange(then_, nullptr);
  then(std::move(said_));
}

}  // namespace lockstep::cli
