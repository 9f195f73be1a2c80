// Stops for commands that rent: the user's signals, and a switch for requests beside the main ones.
#pragma once

#include "base/error.h"
#include "cloud/web.h"
#include "io/fd.h"

#include <memory>
#include <utility>

namespace lockstep::rent {

// The signals by which the user stops a command. They must be blocked.
class StopSignals {
 public:
  static Result<StopSignals> open();

  int fd() const { return fd_.get(); }  // readable when a signal is pending
  // Takes all pending signals. Returns the last one, or 0.
  int take();
  // Returns canceled, with the signal's number as sys, if the user asked to stop. Takes the signal.
  Status check();

 private:
  explicit StopSignals(io::Fd fd) : fd_(std::move(fd)) {}

  io::Fd fd_;
};

// A Web for requests beside the main ones. Such requests end at the user's signal, and after
// stop(true) until stop(false).
class SideWeb {
 public:
  static Result<SideWeb> open(const StopSignals& signals);
  // For tests: requests through that Web, which stop() does not reach.
  explicit SideWeb(std::unique_ptr<cloud::Web> web) : web_(std::move(web)) {}

  cloud::Web& web() { return *web_; }
  void stop(bool stop);

 private:
  io::Fd quit_;   // eventfd
  io::Fd stops_;  // epoll of the signals and `quit_`
  std::unique_ptr<cloud::Web> web_;
};

}  // namespace lockstep::rent
