#include "agent/gpu_reader.h"

#include "base/log.h"
#include "base/text.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace lockstep::agent {
namespace {

using std::chrono::seconds;

constexpr seconds kPeriod{5};  // of nvidia_smi_use_command() and `lockstep host-gpus`
constexpr seconds kKeep{60};   // after the last question
// A child that prints every 5 s and has said nothing for so long hangs.
constexpr seconds kMostSilence{30};
// Most GPUs answer within a second. After this time a command shows the job without GPUs.
constexpr seconds kFirstAnswer{3};
constexpr Backoff::Rules kTries{.first = seconds(5), .longest = seconds(300)};
constexpr std::size_t kMostLine = 4096;
// 64 GPUs print 8 KiB in a period of 5 s.
constexpr std::size_t kMostPrinted = 256UL << 10;

std::string exit_words(const proc::Exit& exit) {
  return (exit.signal != 0 ? "was killed by " + proc::signal_name(exit.signal)
                           : fmt::format("has ended with code {}", exit.code)) +
         "; run it by hand";
}

}  // namespace

GpuReader::GpuReader(io::Loop& loop, const Environment& environment, host::GpuVendor vendor,
                     proc::Containment& containment, std::function<void()> reaped, OnUse on_use)
    : loop_(loop),
      environment_(environment),
      vendor_(vendor),
      containment_(containment),
      reaped_(std::move(reaped)),
      on_use_(std::move(on_use)),
      backoff_(kTries),
      idle_(loop),
      silence_(loop),
      pause_(loop) {}

void GpuReader::ask() {
  idle_.start(kKeep, [this] {
    pause_.cancel();
    kill();
  });
  // A killed child that has not ended yet hangs in the driver. A second one would hang there too.
  if (!child_ && !pause_.active()) start();
}

bool GpuReader::is_pending() const {
  return output_watch_ && !told_ && io::Clock::now() - began_ < kFirstAnswer;
}

void GpuReader::close() {
  idle_.cancel();
  pause_.cancel();
  kill();
  end_watch_.reset();
  // A child that hangs in the driver cannot end. The guardian names the process.
  if (child_) containment_.unspare(child_->pid());
  child_.reset();
}

void GpuReader::start() {
  told_ = false;
  failed_ = false;
  began_ = io::Clock::now();
  const Status started = spawn();
  if (started) return;
  fail("does not start: " + printable(started.error().message));
  log::debug("the GPUs are not read: {}", started.error().message);
  output_watch_.reset();
  output_.reset();
  pause_.start(backoff_.next(), [this] { start(); });
}

// Keeps the first thing that is wrong with this child: the others follow from it.
void GpuReader::fail(const std::string& words) {
  if (std::exchange(failed_, true)) return;
  const bool is_nvidia = vendor_ == host::GpuVendor::nvidia;
  failure_ = fmt::format("{} {}", is_nvidia ? "nvidia-smi" : "lockstep host-gpus", words);
}

Status GpuReader::spawn() {
  proc::SpawnSpec spec;
  if (vendor_ == host::GpuVendor::nvidia) {
    spec.argv = host::nvidia_smi_use_command(recovery_);
    const auto path = environment_.find("PATH");
    LOCKSTEP_TRY_ASSIGN(
        spec.executable,
        proc::find_executable(spec.argv.front(),
                              path == environment_.end() ? "/bin:/usr/bin" : path->second));
  } else {
    spec.argv = {"lockstep", "host-gpus"};
    LOCKSTEP_TRY_ASSIGN(spec.executable, proc::own_executable());
  }
  spec.env = environment_block(environment_);
  LOCKSTEP_TRY_ASSIGN(io::Pipe pipe, io::make_pipe());
  const io::Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return fail_sys("open /dev/null", errno);
  spec.stdin_fd = null.get();
  spec.stdout_fd = pipe.write.get();
  spec.stderr_fd = null.get();
  LOCKSTEP_TRY_ASSIGN(proc::Child child, proc::spawn(spec));
  containment_.spare(child.pid());
  child_.emplace(std::move(child));
  output_ = std::move(pipe.read);
  lines_.emplace(kMostLine);
  printed_ = 0;
  counts_since_ = began_;
  output_watch_ = std::make_unique<io::Watch>(loop_, output_.get());
  output_watch_->start(io::kReadable, [this](int) { on_output(); });
  end_watch_ = std::make_unique<io::Watch>(loop_, child_->pidfd());
  end_watch_->start(io::kReadable, [this](int) { on_end(); });
  expect_output();
  return {};
}

void GpuReader::expect_output() {
  silence_.start(kMostSilence, [this] {
    fail(fmt::format("has printed no figures for {} s; run it by hand", kMostSilence.count()));
    kill();
  });
}

void GpuReader::on_output() {
  std::array<char, 16UL << 10> bytes;
  const ssize_t got = read(output_.get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    // The child has closed its output, and will say nothing any more.
    kill();
    return;
  }
  if (const io::TimePoint now = io::Clock::now(); now - counts_since_ >= kPeriod) {
    counts_since_ = now;
    printed_ = 0;
  }
  printed_ += static_cast<std::size_t>(got);
  lines_->put({bytes.data(), static_cast<std::size_t>(got)});
  take_lines();
  if (!lines_->too_long() && printed_ <= kMostPrinted) return;
  fail("prints too much; run it by hand");
  kill();
}

void GpuReader::take_lines() {
  while (const auto line = lines_->next()) {
    // An older nvidia-smi does not know this field. Start it again at once, without the field.
    if (recovery_ && host::is_unknown_field(*line)) {
      recovery_ = false;
      at_once_ = true;
    }
    auto use = host::parse_gpu_use(*line);
    if (!use) continue;
    failure_.clear();
    expect_output();
    if (!std::exchange(told_, true)) backoff_.reset();
    on_use_(std::move(*use));
  }
}

// The child may need a moment to end, or never end.
void GpuReader::kill() {
  silence_.cancel();
  output_watch_.reset();
  output_.reset();
  if (child_) child_->signal_group(SIGKILL);
}

void GpuReader::on_end() {
  // A wrapper of nvidia-smi may leave children. Before reaping the group still has this number.
  child_->signal_group(SIGKILL);
  if (output_watch_) on_output();
  const auto exit = child_->reap();
  if (!exit) return;
  end_watch_.reset();
  kill();
  containment_.unspare(child_->pid());
  child_.reset();
  reaped_();
  if (!idle_.active()) return;
  if (!told_ && !at_once_) fail(exit_words(*exit));
  const Backoff::Duration pause =
      std::exchange(at_once_, false) ? Backoff::Duration::zero() : backoff_.next();
  pause_.start(pause, [this] { start(); });
}

}  // namespace lockstep::agent
