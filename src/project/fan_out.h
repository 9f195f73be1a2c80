// One host gives the files that it gets from the client to other hosts, which then need not come to
// the client for them. This is the client's part: it brings the hosts together and watches.
#pragma once

#include "base/error.h"
#include "hosts/host_link.h"
#include "io/loop.h"
#include "peer/meeting.h"
#include "proc/signal_watch.h"
#include "sync/record.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::project {

struct FanSettings {
  hosts::HostPlace seed;
  std::vector<hosts::HostPlace> takers;
  std::string destination;  // as in the offer that all have answered
  sync::Owner owner;
};

class FanOut {
 public:
  // tell: bytes have gone to a taker.
  FanOut(io::Loop& loop, FanSettings settings, std::function<void()> tell);
  FanOut(const FanOut&) = delete;
  FanOut& operator=(const FanOut&) = delete;

  struct Taker {
    bool connected = false;
    bool over = false;  // with or without trouble
    std::uint64_t bytes = 0;
    std::string trouble = {};  // why the files do not all come from the seed
  };
  // Returns when it is known which takers reach the seed. From then on they take whatever the seed
  // has, also while nobody runs the loop. canceled: by a signal, whose number is in Error::sys.
  Status open();
  // Nothing more will come to the seed.
  void seed_is_done();
  // Returns when all takers are over. canceled as above.
  Status finish();

  const std::vector<Taker>& takers() const { return takers_; }
  std::uint64_t bytes() const;

 private:
  struct Host {
    std::unique_ptr<hosts::HostLink> link;
    std::string said;  // of its output, as far as no whole line
  };
  void start(std::size_t host, const char* what, const peer::Meeting& meeting, bool more);
  void on_frame(std::size_t host, const link::Frame& frame);
  void on_data(std::size_t host, const link::Data& data);
  void on_answer(std::size_t host, const peer::Answer& answer);
  void on_listening(const peer::Listening& listening);
  void on_failed(std::size_t host, const std::string& why);
  bool waits() const;
  Status run();

  io::Loop& loop_;
  const FanSettings settings_;
  std::function<void()> tell_;
  peer::Meeting meeting_;
  std::vector<Host> hosts_;  // the seed, then the takers
  std::vector<Taker> takers_;
  bool opening_ = true;
  bool running_ = false;
  bool listening_ = false;
  io::Timer patience_;
};

}  // namespace lockstep::project
