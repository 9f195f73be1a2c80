// The host's end of a link: starts commands for a client and passes their streams. Once the client
// is gone, or this process is killed, no process of a command remains.
#pragma once

#include "base/error.h"
#include "io/loop.h"
#include "link/endpoint.h"
#include "proc/containment.h"
#include "remote/command.h"

#include <map>
#include <memory>
#include <optional>

namespace lockstep::remote {

class HostEnd {
 public:
  // silence: a client that sends no frame for so long is gone. nullopt: the end of `in` tells.
  HostEnd(io::Loop& loop, io::Fd in, io::Fd out, proc::Containment containment,
          std::optional<io::Duration> silence = {});

  void begin();  // sends the greeting and Hello
  void stop();   // acts as if the client were gone

 private:
  enum class Stage {
    greeting,  // waiting for Hello
    serving,
    stopping,  // the client is gone; commands have time to end
    over,
  };

  void await_frame();
  void on_frame(link::Frame frame);
  void on(const link::Hello& hello);
  void on(const link::Start& start);
  void on(const link::Data& data);
  void on(const link::Eof& eof);
  void on(const link::Credit& credit);
  void on(const link::Signal& signal);
  void on(const link::Ping& ping);
  template <class Other>
  void on(const Other& frame);
  void on_process_ended();
  void on_over(std::uint32_t channel);
  Command* find(std::uint32_t channel) const;
  bool any_running() const;
  void finish();

  io::Loop& loop_;
  proc::Containment containment_;
  link::Endpoint link_;
  Stage stage_ = Stage::greeting;
  std::map<std::uint32_t, std::unique_ptr<Command>> commands_;
  io::Timer grace_;
  std::optional<io::Duration> silence_;
  io::Timer silent_;
};

// Serves `lockstep link` over stdin and stdout until they close. Returns the exit code. rung:
// guardian, or none if commands may outlive the link (a job's supervisor). silence: see HostEnd.
Result<int> serve_link(proc::Rung rung, std::optional<io::Duration> silence = {});

}  // namespace lockstep::remote
