// One host over SSH: logs in where no master is there yet, brings the binary where it is missing,
// and becomes a link to it.
#pragma once

#include "base/callback_scope.h"
#include "base/error.h"
#include "io/fd.h"
#include "io/loop.h"
#include "link/endpoint.h"
#include "link/stream_ends.h"
#include "ssh/binary.h"
#include "ssh/boot_command.h"
#include "ssh/master.h"
#include "ssh/mux_session.h"
#include "ssh/push.h"
#include "ssh/target.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::ssh {

struct ConnectionSettings {
  Target target;
  std::string name;  // for messages: "gpus-0"; empty: the target's text
  std::string pins;
  bool may_ask = false;
  Commands commands = Commands::end_with_us;
};

class Connection {
 public:
  struct Events {
    // The host was asked for a session, or ssh to log in: from now on this end waits. Perhaps
    // again.
    std::function<void()> asked;
    std::function<void(const link::Hello& host)> ready;
    std::function<void(link::Frame)> frame;
    std::function<void(Error)> failed;  // once, at any time; nothing comes after it
  };
  enum class Stage {
    booting,  // a session was asked for
    login,    // there is no master: ssh logs in
    pushing,  // the binary is on its way
    ready,
    failed,
  };

  // No event comes from inside the constructor.
  Connection(io::Loop& loop, ConnectionSettings settings, Events events);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Stage stage() const { return stage_; }
  const std::string& name() const { return settings_.name; }
  // Frames that are sent before it is ready go out as soon as it is.
  void send(const link::Frame& frame);

 private:
  void begin();
  Status boot();
  void log_in();
  void push(const Absent& absent);
  void on_pushed(Status done);
  void boot_again();
  bool may_push();
  void on_frame(link::Frame frame);
  void on_session_over();
  void boot_failed();
  void fail_with(Error error);
  void reset_session();

  io::Loop& loop_;
  ConnectionSettings settings_;
  Events events_;
  Stage stage_ = Stage::booting;
  std::string socket_;
  std::vector<link::Frame> waiting_frames_;
  std::optional<Binary> binary_;
  std::unique_ptr<Master> master_;
  bool logged_in_ = false;  // by us: an old master that fails is replaced once
  std::unique_ptr<Push> push_;
  io::Fd push_lock_;  // of several clients here one pushes
  bool pushed_ = false;
  bool pushes_all_ = false;  // again, from the beginning: what an earlier push left was no good
  std::unique_ptr<MuxSession> session_;
  std::unique_ptr<link::Endpoint> link_;
  io::Fd err_;
  std::string said_;  // the session's standard error, its beginning
  std::unique_ptr<link::Source> from_err_;
  bool link_over_ = false;
  bool session_over_ = false;
  std::optional<int> code_;
  io::Timer turn_;
  io::Timer silence_;  // of a host that logs in and then says nothing
  CallbackScope calls_;
};

}  // namespace lockstep::ssh
