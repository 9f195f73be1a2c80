#include "rent/boot_watch.h"

#include "io/signals_blocked.h"

#include <errno.h>
#include <sys/eventfd.h>

#include <chrono>
#include <utility>

namespace lockstep::rent {
namespace {

constexpr std::chrono::seconds kAskEvery{1};

void raise_flag(const io::Fd& flag) {
  (void)eventfd_write(flag.get(), 1);
}

}  // namespace

Result<std::unique_ptr<BootWatch>> BootWatch::start(IsLost is_lost) {
  std::unique_ptr<BootWatch> made(new BootWatch(std::move(is_lost)));
  made->stop_ = io::Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  // A descriptor, not a flag: the loop of first contact waits for sockets and for this descriptor.
  made->lost_ = io::Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made->stop_ || !made->lost_) return fail_sys("eventfd", errno);
  LOCKSTEP_TRY_ASSIGN(made->web_, cloud::open_web({.stop_fd = made->stop_.get()}));
  const io::SignalsBlocked blocked;
  made->thread_ = std::thread([watch = made.get()] { watch->watch(); });
  return made;
}

BootWatch::~BootWatch() {
  // A request in progress ends at once, so the join is short.
  raise_flag(stop_);
  if (thread_.joinable()) thread_.join();
}

void BootWatch::watch() {
  while (web_->pause(kAskEvery))
    if (is_lost_(*web_)) return raise_flag(lost_);
}

}  // namespace lockstep::rent
