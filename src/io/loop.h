// The event loop (libuv behind RAII handles). One thread owns a Loop; every call but post() is made
// on that thread. No callback runs inside the call that registers it. Handles may be destroyed
// inside any callback, their own included; a destroyed handle never calls back. Handles must not
// outlive the Loop.
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

  // Runs until stop() or until nothing is left to wait for.
  void run();
  void stop();
  // One pass without waiting; true while handles are active. For tests.
  bool run_once();

  // Any thread: fn runs on the loop's thread in a later turn.
  void post(std::function<void()> fn);

  uv_loop_s* raw() { return loop_.get(); }

 private:
  void run_posted();

  std::unique_ptr<uv_loop_s> loop_;
  uv_async_s* async_ = nullptr;
  std::mutex mutex_;  // guards posted_ alone
  std::vector<std::function<void()>> posted_;
};

// One-shot; start() again to repeat. Millisecond resolution.
class Timer {
 public:
  explicit Timer(Loop& loop);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Replaces a pending start. Rounded up to whole milliseconds; 0 fires in the next turn.
  void start(Duration delay, std::function<void()> fn);
  void cancel();
  bool active() const;

  struct Handle;

 private:
  Handle* handle_;
};

enum Event : int { kReadable = 1, kWritable = 2, kHangup = 4 };

// Readiness of one descriptor (level-triggered), which must be pollable: socket, pipe, pty, pidfd,
// signalfd. Makes it non-blocking. Does not own it; destroy the Watch before closing the
// descriptor.
class Watch {
 public:
  Watch(Loop& loop, int fd);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // events: kReadable | kWritable. fn gets what is ready; an error or hang-up counts as both.
  void start(int events, std::function<void(int)> fn);
  // Changes the events of a started watch, keeping fn; 0 pauses it.
  void want(int events);
  void stop();

  struct Handle;

 private:
  Handle* handle_;
};

}  // namespace lockstep::io
