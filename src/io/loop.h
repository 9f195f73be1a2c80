// The event loop: libuv behind RAII handles. One thread owns a Loop, and all calls except post()
// must come from that thread. No callback runs inside the call that registers it. Handles may be
// destroyed inside any callback, even their own. A destroyed handle never calls back. Handles must
// not outlive the Loop.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

struct uv_loop_s;
struct uv_async_s;

namespace lockstep::io {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;

class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Runs until stop(), or until no active handle is left.
  void run();
  void stop();
  // Makes one pass without waiting. Returns true while handles are active. For tests.
  bool run_once();

  // Returns the time at which the current turn began, to the millisecond. Costs nothing: the loop
  // has asked the kernel already. During a long turn, this time is old.
  TimePoint turn_began() const;

  // Callable from any thread: runs fn on the loop's thread in a later turn.
  void post(std::function<void()> fn);

  uv_loop_s* raw() { return loop_.get(); }

 private:
  void run_posted();

  std::unique_ptr<uv_loop_s> loop_;
  uv_async_s* async_ = nullptr;
  std::mutex mutex_;  // guards posted_ only
  std::vector<std::function<void()>> posted_;
};

// A one-shot timer with millisecond resolution. To repeat, call start() again.
class Timer {
 public:
  explicit Timer(Loop& loop);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Starts the timer and replaces a pending start. The delay is rounded up to whole milliseconds. 0
  // fires in the next turn.
  void start(Duration delay, std::function<void()> fn);
  void cancel();
  bool active() const;

  struct Handle;

 private:
  Handle* handle_;
};

enum Event : int { kReadable = 1, kWritable = 2, kHangup = 4 };

// Watches the readiness of one descriptor, level-triggered. The descriptor must be pollable:
// socket, pipe, pty, pidfd, signalfd. The Watch makes it non-blocking, but does not own it. Destroy
// the Watch before closing the descriptor.
class Watch {
 public:
  Watch(Loop& loop, int fd);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // events: kReadable | kWritable. fn receives the ready events. An error or hang-up counts as
  // both.
  void start(int events, std::function<void(int)> fn);
  // Changes the events of a started watch and keeps fn. 0 pauses the watch.
  void want(int events);
  void stop();

  struct Handle;

 private:
  Handle* handle_;
};

}  // namespace lockstep::io
