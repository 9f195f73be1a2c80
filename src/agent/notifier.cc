// Starts a child process for each notice.
#include "agent/notifier.h"

#include "base/log.h"
#include "base/text.h"
#include "io/fd.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

namespace lockstep::agent {
namespace {

constexpr std::chrono::seconds kNoticeLimit{15};  // for one notice
// A webhook that never answers costs kNoticeLimit each, and hangs may come faster than that.
constexpr std::size_t kMostWaiting = 32;
constexpr std::size_t kMostComplaint = 4096;

// A file in memory with this content, at its beginning.
Result<io::Fd> memory_file(std::string_view content) {
  io::Fd fd(memfd_create("lockstep-notice", MFD_CLOEXEC));
  if (!fd) return fail_sys("notify", errno);
  LOCKSTEP_TRY(io::write_all(fd.get(), content, "a file in memory"));
  if (lseek(fd.get(), 0, SEEK_SET) != 0) return fail_sys("notify", errno);
  return fd;
}

// The agent itself may have been started by a notice of another job, with variables of that job.
std::vector<std::string> notice_environment(Environment environment, const Notice& notice,
                                            const std::optional<std::string>& url) {
  environment.erase(std::string(kWebhookVariable));
  if (url) environment[std::string(kWebhookVariable)] = *url;
  environment["LOCKSTEP_NOTICE"] = notice.what;
  environment["LOCKSTEP_TEXT"] = notice_text(notice);
  environment["LOCKSTEP_ATTEMPT"] = std::to_string(notice.event.attempt);
  std::vector<std::string> made;
  for (const auto& [name, value] : environment)
    made.push_back(fmt::format("{}={}", name, value));
  return made;
}

}  // namespace

class Notifier::Courier {
 public:
  Courier(io::Loop& loop, const Node& node, proc::Containment& containment,
          std::function<void()> reaped, bool webhook)
      : loop_(loop),
        node_(node),
        containment_(containment),
        reaped_(std::move(reaped)),
        webhook_(webhook),
        next_(loop),
        limit_(loop) {}
  ~Courier() { stop(); }
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;

  void tell(const Notice& notice) {
    // Drop the oldest: the latest notices are worth more than those of a hang an hour ago.
    if (waiting_.size() == kMostWaiting) {
      waiting_.pop_front();
      warn("too slow, so notices are lost");
    }
    waiting_.push_back(notice);
    // In the next turn of the loop: the failure of a rank must stop the others first.
    if (!child_) next_.start({}, [this] { send_next(); });
  }
  bool busy() const { return child_ || !waiting_.empty(); }

  void stop() {
    waiting_.clear();
    next_.cancel();
    limit_.cancel();
    watch_.reset();
    if (!child_) return;
    child_->signal_group(SIGKILL);
    containment_.unspare(child_->pid());
    child_.reset();
  }

 private:
  const launch::EventConfig& config() const { return node_.config.events; }

  void send_next() {
    while (!child_ && !waiting_.empty()) {
      const Notice notice = std::move(waiting_.front());
      waiting_.pop_front();
      if (const Status sent = send(notice); !sent) warn(sent.error().message);
    }
  }

  Status send(const Notice& notice) {
    LOCKSTEP_TRY_ASSIGN(
        const io::Fd input,
        memory_file(webhook_ && config().slack ? slack_json(notice) : notice_json(notice) + "\n"));
    // A file, not a pipe: a child that prints much never blocks, and nothing is read before its
    // end.
    LOCKSTEP_TRY_ASSIGN(complaint_, memory_file(""));
    proc::SpawnSpec spec;
    spec.env =
        notice_environment(node_.environment, notice, webhook_ ? config().url : std::nullopt);
    if (webhook_) {
      LOCKSTEP_TRY_ASSIGN(spec.executable, proc::own_executable());
      spec.argv = {"lockstep", "notify-post"};
      spec.stderr_fd = complaint_.get();
    } else {
      const auto path = node_.environment.find("PATH");
      LOCKSTEP_TRY_ASSIGN(
          spec.executable,
          proc::find_executable(config().program.front(),
                                path == node_.environment.end() ? "" : path->second));
      spec.argv = config().program;
      spec.stdout_fd = STDERR_FILENO;  // stdout is for the workers
    }
    spec.stdin_fd = input.get();
    LOCKSTEP_TRY_ASSIGN(proc::Child child, proc::spawn(spec));
    containment_.spare(child.pid());
    child_.emplace(std::move(child));
    watch_ = std::make_unique<io::Watch>(loop_, child_->pidfd());
    watch_->start(io::kReadable, [this](int) { on_end(); });
    limit_.start(kNoticeLimit, [this] {
      late_ = true;
      child_->signal_group(SIGKILL);
    });
    return {};
  }

  void on_end() {
    const auto exit = child_->reap();
    if (!exit) return;
    watch_.reset();
    limit_.cancel();
    containment_.unspare(child_->pid());
    child_.reset();
    if (std::exchange(late_, false))
      warn(fmt::format("no end within {} s", kNoticeLimit.count()));
    else if (!exit->ok())
      warn(complaint_of(*exit));
    reaped_();
    send_next();
  }

  std::string complaint_of(const proc::Exit& exit) const {
    std::string said(kMostComplaint, '\0');
    const ssize_t got = webhook_ ? pread(complaint_.get(), said.data(), said.size(), 0) : 0;
    said.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    // "lockstep notify-post: error: ..." names a program that the user has never heard of.
    constexpr std::string_view kHead = "error: ";
    if (const std::size_t head = said.find(kHead); head != std::string::npos)
      said.erase(0, head + kHead.size());
    if (!strip(said).empty()) return printable(std::string(strip(said)), 500);
    return exit.signal != 0 ? fmt::format("ended by {}", proc::signal_name(exit.signal))
                            : fmt::format("exit code {}", exit.code);
  }

  void warn(const std::string& why) {
    if (std::exchange(warned_, true)) return;
    // The URL may hold a secret.
    log::warning("{}: {}; the job goes on, and later failures are not told",
                 webhook_ ? "--notify" : "--notify-exec " + printable(config().program.front()),
                 why);
  }

  io::Loop& loop_;
  const Node& node_;
  proc::Containment& containment_;
  std::function<void()> reaped_;
  bool webhook_;
  std::deque<Notice> waiting_;
  std::optional<proc::Child> child_;
  io::Fd complaint_;  // what the child has printed on stderr
  std::unique_ptr<io::Watch> watch_;
  io::Timer next_;
  io::Timer limit_;
  bool late_ = false;
  bool warned_ = false;
};

Notifier::Notifier(io::Loop& loop, const Node& node, proc::Containment& containment,
                   std::function<void()> reaped) {
  const auto add = [&](bool webhook) {
    couriers_.push_back(std::make_unique<Courier>(loop, node, containment, reaped, webhook));
  };
  if (node.config.events.url) add(true);
  if (!node.config.events.program.empty()) add(false);
}

Notifier::~Notifier() = default;

void Notifier::tell(const Notice& notice) {
  for (const auto& courier : couriers_)
    courier->tell(notice);
}

bool Notifier::busy() const {
  for (const auto& courier : couriers_)
    if (courier->busy()) return true;
  return false;
}

void Notifier::close() {
  for (const auto& courier : couriers_)
    courier->stop();
}

}  // namespace lockstep::agent
