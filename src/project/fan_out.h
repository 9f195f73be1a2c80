// Lets a host pass the client's files on to other hosts, so that the files cross the client's
// uplink once. This is the client's part: connecting the hosts and watching the transfer.
// docs/protocols/peer.md describes the protocol.
#pragma once

#include "base/error.h"
#include "base/line_cutter.h"
#include "hosts/host_link.h"
#include "io/loop.h"
#include "link/channel.h"
#include "peer/meeting.h"
#include "proc/signal_watch.h"
#include "project/fan_course.h"
#include "sync/record.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::project {

struct FanSettings {
  hosts::HostPlace seed;
  std::vector<hosts::HostPlace> takers;
  std::string destination;  // as in the offers that the hosts have answered
  sync::Owner owner;
};

class FanOut {
 public:
  // tell: called when a taker has made progress. The loop must outlive the fan. Destruction ends
  // the transfer on all hosts.
  FanOut(io::Loop& loop, FanSettings settings, std::function<void()> tell);
  FanOut(const FanOut&) = delete;
  FanOut& operator=(const FanOut&) = delete;

  // Returns once each taker has reached the seed or failed. From then on takers fetch the seed's
  // files, also while the loop does not run. canceled: a signal came, whose number is in
  // Error::sys. The signals of proc::handled_signals() must be blocked.
  Status open();
  // Tells the seed that no more files will come. The seed then knows which files takers must not
  // wait for.
  void seed_is_done();
  // Returns when all takers are over. canceled: as for open().
  Status finish();

  const std::vector<FanCourse::Taker>& takers() const { return course_.takers(); }
  std::uint64_t bytes() const { return course_.bytes(); }

 private:
  struct Host {
    std::unique_ptr<hosts::HostLink> link;
    std::unique_ptr<link::Channel> channel;
    LineCutter output;
  };
  void start(std::size_t host, const char* what, const peer::Meeting& meeting, bool more);
  const hosts::HostPlace& place_of(std::size_t host) const;
  void on_output(std::size_t host, link::Stream stream, std::string_view bytes);
  void on_answer(std::size_t host, const peer::Answer& answer);
  void start_takers(const peer::Listening& listening);
  void on_failed(std::size_t host, const std::string& why);
  void stop_if_done();
  Status run();

  io::Loop& loop_;
  const FanSettings settings_;
  std::function<void()> tell_;
  peer::Meeting meeting_;
  std::vector<Host> hosts_;  // the seed, then the takers
  FanCourse course_;
  bool running_ = false;  // run() waits on the loop
  io::Timer patience_;
};

}  // namespace lockstep::project
