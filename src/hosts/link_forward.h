// Forwards a port of this machine to a port that a link leads to. For places without ssh, where no
// master copies the bytes (hosts/port_forward.h): each connection is a channel of the link, on
// which `lockstep host-dial` copies them. All connections end with this process.
#pragma once

#include "base/callback_scope.h"
#include "base/error.h"
#include "hosts/forward_spec.h"
#include "hosts/host_link.h"
#include "hosts/port_forward.h"
#include "hosts/wait_notice.h"
#include "io/fd.h"
#include "io/loop.h"
#include "link/channel.h"
#include "link/stream_ends.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::hosts {

class LinkForward {
 public:
  // Further connections wait in the backlog. A status page takes as many viewers.
  static constexpr std::size_t kMostConnections = 64;

  // `ready`: the other end of the link answers. Until then notices are logged. `failed` is called
  // once, last, also after `ready`: the link has ended.
  using Events = PortForward::Events;

  // Listens on 127.0.0.1 and opens the link. already_exists: the port is taken. No event comes
  // before open() returns. Destruction closes the port, all connections and the link.
  static Result<std::unique_ptr<LinkForward>> open(io::Loop& loop, const Link::Settings& settings,
                                                   ForwardSpec spec, Events events,
                                                   const OpenLink& links = host_links());
  // Returns the local port, which the kernel has picked for 0.
  int port() const { return spec_.local; }

 private:
  // Every stream has a window (link::kWindow) of bytes in memory at most.
  struct Connection {
    // Two descriptors of the connection: the loop takes one watch for each.
    io::Fd reads;
    io::Fd writes;
    std::unique_ptr<link::Channel> channel = {};
    std::unique_ptr<link::Source> source = {};
    std::unique_ptr<link::Sink> sink = {};
    std::string said = {};  // the first words of its stderr
  };

  LinkForward(io::Loop& loop, ForwardSpec spec, std::string place, Events events);
  void accept_one();
  void begin(std::uint32_t number);
  void on_output(std::uint32_t number, link::Stream stream, std::string_view bytes);
  void on_ended(std::uint32_t number, const link::ChannelEnd& end);
  void drop(std::uint32_t number);
  void on_frame(const link::Frame& frame);
  void ping();
  void fail_all(std::string why);

  io::Loop& loop_;
  ForwardSpec spec_;
  std::string place_;
  Events events_;
  io::Fd listener_;
  std::unique_ptr<io::Watch> watch_;
  std::uint32_t last_ = 0;  // number of the last channel
  std::map<std::uint32_t, Connection> connections_;
  std::unique_ptr<Link> link_;
  int unanswered_ = 0;  // pings
  bool ready_ = false;
  bool over_ = false;
  io::Timer next_ping_;
  WaitNotice notice_;
  CallbackScope calls_;
};

}  // namespace lockstep::hosts
