// A child process that prints how the GPUs of this machine are used: nvidia-smi, or `lockstep
// host-gpus` for AMD. The child may hang, die, babble or be missing, so the agent never waits for
// its output or its end. The child runs while ask() is called, and a minute longer.
#pragma once

#include "agent/worker_spec.h"
#include "base/backoff.h"
#include "base/line_cutter.h"
#include "host/gpu_use.h"
#include "io/fd.h"
#include "io/loop.h"
#include "proc/containment.h"
#include "proc/spawn.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace lockstep::agent {

class GpuReader {
 public:
  using OnUse = std::function<void(host::GpuUse)>;

  // environment: of the child. reaped: called after the child was reaped, since the kernel reports
  // one ended child at a time.
  GpuReader(io::Loop& loop, const Environment& environment, host::GpuVendor vendor,
            proc::Containment& containment, std::function<void()> reaped, OnUse on_use);
  ~GpuReader() { close(); }
  GpuReader(const GpuReader&) = delete;
  GpuReader& operator=(const GpuReader&) = delete;

  // Starts the child, or keeps the running child for another minute.
  void ask();
  // Returns whether a child was started a moment ago and has printed nothing yet.
  bool is_pending() const;
  // Returns why there are no figures: "nvidia-smi has ended with code 9; run it by hand".
  // Printable. Stays until a child tells something. "": no child has failed since.
  const std::string& failure() const { return failure_; }
  // Kills the child.
  void close();

 private:
  void start();
  void fail(const std::string& words);
  Status spawn();
  void expect_output();
  void on_output();
  void take_lines();
  void kill();
  void on_end();

  io::Loop& loop_;
  const Environment& environment_;
  host::GpuVendor vendor_;
  proc::Containment& containment_;
  std::function<void()> reaped_;
  OnUse on_use_;
  std::optional<proc::Child> child_;  // perhaps killed, but not ended yet
  io::Fd output_;
  std::unique_ptr<io::Watch> output_watch_;
  std::unique_ptr<io::Watch> end_watch_;
  std::optional<LineCutter> lines_;
  std::size_t printed_ = 0;  // bytes since `counts_since_`
  io::TimePoint counts_since_ = {};
  bool told_ = false;    // this child has told something
  bool failed_ = false;  // failure_ tells of this child
  std::string failure_;
  bool recovery_ = true;  // the driver may know a recovery action
  bool at_once_ = false;  // the next try needs no pause
  io::TimePoint began_ = {};
  Backoff backoff_;
  io::Timer idle_;     // ask() is no longer called
  io::Timer silence_;  // the child prints nothing
  io::Timer pause_;    // before the next try
};

}  // namespace lockstep::agent
