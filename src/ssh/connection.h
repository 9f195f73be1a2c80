// One host over SSH: logs in if no master exists yet, pushes the binary if it is missing, and
// becomes a link to the host.
#pragma once

#include "base/callback_scope.h"
#include "base/error.h"
#include "io/fd.h"
#include "io/file_lock.h"
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
  std::string name;      // for messages: "gpus-0"; empty: the target's text
  std::string pins;      // file of the cluster's host keys (pins.h); empty: none
  bool may_ask = false;  // ssh may ask for a passphrase at the terminal
  Commands commands = Commands::end_with_us;
};

// Runs on one loop, which must outlive the Connection. Its destruction ends the session.
class Connection {
 public:
  struct Events {
    // Called when this end starts to wait: a session was requested, or ssh logs in. May be called
    // several times.
    std::function<void()> asked;
    std::function<void(const link::Hello& host)> ready;
    std::function<void(link::Frame)> frame;
    std::function<void(Error)> failed;  // called once, at any time; no event follows
  };
  enum class Stage {
    booting,  // a session has been requested
    login,    // no master yet: ssh is logging in
    pushing,  // the binary is being sent
    ready,
    failed,
  };

  // Calls no event from inside the constructor.
  Connection(io::Loop& loop, ConnectionSettings settings, Events events);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Stage stage() const { return stage_; }
  const std::string& name() const { return settings_.name; }
  // Sends a frame. Frames sent before `ready` go out right after it.
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
  bool logged_in_ = false;  // true: this object logged in, so a dead master is replaced only once
  std::unique_ptr<Push> push_;
  io::FileLock push_lock_;     // held while pushing: only one client of this user pushes at a time
  bool looked_again_ = false;  // for the binary of another architecture
  bool pushed_ = false;
  // True: the second push starts from the beginning, because the earlier part was damaged.
  bool pushes_all_ = false;
  std::unique_ptr<MuxSession> session_;
  std::unique_ptr<link::Endpoint> link_;
  io::Fd err_;
  std::string said_;  // the beginning of the session's stderr
  std::unique_ptr<link::Source> from_err_;
  bool link_over_ = false;
  bool session_over_ = false;
  std::optional<int> code_;
  io::Timer turn_;
  io::Timer silence_;  // fires if the host logs in and then sends nothing
  CallbackScope calls_;
};

}  // namespace lockstep::ssh
