// Wraps libuv handles.
#include "io/loop.h"

#include "base/error.h"

#include <uv.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace lockstep::io {

// The owner drops a handle at once, but libuv needs it until the close callback.
struct Timer::Handle {
  uv_timer_t uv{};
  std::function<void()> fn;
};

struct Watch::Handle {
  uv_poll_t uv{};
  std::function<void(int)> fn;
  int events = 0;
};

namespace {
template <class H>
void close_handle(H* handle) {
  handle->fn = nullptr;
  uv_close(reinterpret_cast<uv_handle_t*>(&handle->uv),
           [](uv_handle_t* uv) { delete static_cast<H*>(uv->data); });
}

// Keeps the callback alive while it runs, even if it destroys or restarts its own handle.
void fire_timer(uv_timer_t* uv) {
  auto* handle = static_cast<Timer::Handle*>(uv->data);
  const auto fn = std::exchange(handle->fn, nullptr);
  if (fn) fn();
}

void fire_watch(uv_poll_t* uv, int status, int events) {
  auto* handle = static_cast<Watch::Handle*>(uv->data);
  if (!handle->fn) return;
  int ready = 0;
  // libuv reports an error as a negative status and stops the watch: both directions must look.
  if (status < 0) ready = kReadable | kWritable | kHangup;
  if ((events & UV_READABLE) != 0) ready |= kReadable;
  if ((events & UV_WRITABLE) != 0) ready |= kWritable;
  // A copy: the callback may destroy or restart this watch.
  const auto fn = handle->fn;
  fn(ready);
}
}  // namespace

Loop::Loop() : loop_(std::make_unique<uv_loop_s>()), async_(new uv_async_s) {
  LOCKSTEP_CHECK(uv_loop_init(loop_.get()) == 0);
  LOCKSTEP_CHECK(uv_async_init(loop_.get(), async_, [](uv_async_t* uv) {
                   static_cast<Loop*>(uv->data)->run_posted();
                 }) == 0);
  async_->data = this;
  uv_unref(reinterpret_cast<uv_handle_t*>(async_));  // alone it does not keep run() going
}

Loop::~Loop() {
  uv_close(reinterpret_cast<uv_handle_t*>(async_),
           [](uv_handle_t* uv) { delete reinterpret_cast<uv_async_s*>(uv); });
  // libuv frees handles in their close callbacks, which need turns of the loop. uv_loop_close()
  // refuses a loop with open handles.
  while (uv_run(loop_.get(), UV_RUN_NOWAIT) != 0) {
  }
  LOCKSTEP_CHECK(uv_loop_close(loop_.get()) == 0);
}

void Loop::run() {
  uv_run(loop_.get(), UV_RUN_DEFAULT);
}
void Loop::stop() {
  uv_stop(loop_.get());
}
bool Loop::run_once() {
  return uv_run(loop_.get(), UV_RUN_NOWAIT) != 0;
}

TimePoint Loop::turn_began() const {
  // libuv and steady_clock both count from the start of CLOCK_MONOTONIC.
  return TimePoint(std::chrono::milliseconds(uv_now(loop_.get())));
}

// The only function that other threads may call. libuv allows nothing but uv_async_send() from
// outside.
void Loop::post(std::function<void()> fn) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(fn));
  }
  uv_async_send(async_);
}

void Loop::run_posted() {
  // Swap first: a posted function may post again.
  std::vector<std::function<void()>> batch;
  {
    const std::lock_guard lock(mutex_);
    batch.swap(posted_);
  }
  for (const auto& fn : batch)
    fn();
}

Timer::Timer(Loop& loop) : handle_(new Handle) {
  LOCKSTEP_CHECK(uv_timer_init(loop.raw(), &handle_->uv) == 0);
  handle_->uv.data = handle_;
}

Timer::~Timer() {
  close_handle(handle_);
}

void Timer::start(Duration delay, std::function<void()> fn) {
  handle_->fn = std::move(fn);
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(std::max(delay, Duration::zero()));
  uv_update_time(handle_->uv.loop);  // a long callback must not shorten the wait
  uv_timer_start(&handle_->uv, fire_timer, static_cast<std::uint64_t>(ms.count()), 0);
}

void Timer::cancel() {
  uv_timer_stop(&handle_->uv);
  handle_->fn = nullptr;
}

bool Timer::active() const {
  return uv_is_active(reinterpret_cast<const uv_handle_t*>(&handle_->uv)) != 0;
}

Watch::Watch(Loop& loop, int fd) : handle_(new Handle) {
  LOCKSTEP_CHECK(uv_poll_init(loop.raw(), &handle_->uv, fd) == 0);
  handle_->uv.data = handle_;
}

Watch::~Watch() {
  close_handle(handle_);
}

void Watch::start(int events, std::function<void(int)> fn) {
  handle_->fn = std::move(fn);
  handle_->events = 0;
  want(events);
}

void Watch::want(int events) {
  // Each change costs a system call (epoll_ctl), and callers ask after every event.
  if (events == handle_->events) return;
  handle_->events = events;
  if (events == 0) {
    uv_poll_stop(&handle_->uv);
    return;
  }
  int uv_events = 0;
  if ((events & kReadable) != 0) uv_events |= UV_READABLE;
  if ((events & kWritable) != 0) uv_events |= UV_WRITABLE;
  LOCKSTEP_CHECK(uv_poll_start(&handle_->uv, uv_events, fire_watch) == 0);
}

void Watch::stop() {
  want(0);
  handle_->fn = nullptr;
}

}  // namespace lockstep::io
