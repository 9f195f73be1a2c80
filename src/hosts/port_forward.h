// Forwards ports of this machine to ports of a host. The ssh master takes each connection and
// copies its bytes, so no byte passes through this process. All connections end with this process,
// however it ends.
#pragma once

#include "base/callback_scope.h"
#include "base/error.h"
#include "hosts/forward_spec.h"
#include "hosts/host_link.h"
#include "io/fd.h"
#include "io/loop.h"
#include "link/channel.h"
#include "ssh/master.h"
#include "ssh/mux_session.h"

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::hosts {

class PortForward {
 public:
  struct Events {
    std::function<void()> ready;  // called once: the host was reached
    // A connection could not be made. not_found: nothing listens on the port there. denied: sshd
    // refuses to forward.
    std::function<void(const Error& why)> trouble;
    std::function<void(Error)> failed;  // called once, in place of ready
  };

  // Listens on 127.0.0.1 and logs in. already_exists: a port is taken. No event comes before open()
  // returns. Destruction closes the ports and all connections.
  static Result<std::unique_ptr<PortForward>> open(io::Loop& loop, HostPlace place,
                                                   std::vector<ForwardSpec> specs, Events events);
  // Returns the specs, with the local ports that the kernel picked.
  const std::vector<ForwardSpec>& specs() const { return specs_; }

 private:
  struct Listening {
    io::Fd fd;
    std::unique_ptr<io::Watch> watch;
  };
  struct Connection {
    std::size_t spec = 0;
    io::Fd socket = {};  // open until the master has the connection
    bool opened = false;
    bool again = false;  // the second try, through a new master
    std::unique_ptr<ssh::MuxSession> session = {};
  };
  using Place = std::list<Connection>::iterator;

  PortForward(io::Loop& loop, HostPlace place, std::vector<ForwardSpec> specs, Events events);
  void accept_some(std::size_t spec);
  void on_unaccepted(int error);
  void connect(Place place);
  void on_gone(Place place);
  void drop(Place place);
  void tell_refusal(std::size_t spec);
  void need_master();
  void on_master(const Status& there);

  io::Loop& loop_;
  HostPlace place_;
  std::vector<ForwardSpec> specs_;
  Events events_;
  std::string control_;
  std::vector<Listening> listening_;
  io::Timer resume_;           // accepts again after a lack of descriptors
  bool out_of_files_ = false;  // that lack was reported
  std::list<Connection> connections_;
  std::list<Connection> waiting_;  // connections that wait for a master
  std::unique_ptr<ssh::Master> master_;
  // Ask the host for the reason of a refused connection.
  std::unique_ptr<HostLink> dial_;
  std::unique_ptr<link::Channel> dialing_;
  bool reached_ = false;
  CallbackScope calls_;
};

}  // namespace lockstep::hosts
