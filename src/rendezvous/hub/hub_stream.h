// One connection of the `lockstep` rendezvous as frames, for either side: a thin driver around
// FrameReader. No callback runs inside send(). The stream may be destroyed inside any callback.
#pragma once

#include "base/callback_scope.h"
#include "base/error.h"
#include "io/fd.h"
#include "io/loop.h"
#include "rendezvous/hub/hub_frames.h"

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep::rendezvous::hub {

using Bytes = std::shared_ptr<const std::string>;

// Makes the kernel send small frames at once, even to peers that are slow to acknowledge.
void tune_socket(int fd);

class HubStream {
 public:
  struct Events {
    std::function<void(Frame)> frame;
    std::function<void()> bytes;              // called before the frames of the bytes
    std::function<void(const Error&)> ended;  // closed, broken or malformed; the last event
  };

  // fd: a connected socket. Sends the preamble at once.
  HubStream(io::Loop& loop, io::Fd fd, Events events);
  HubStream(const HubStream&) = delete;
  HubStream& operator=(const HubStream&) = delete;

  // Replaces the previous events.
  void set_events(Events events) { events_ = std::move(events); }
  void send(Bytes bytes);
  void send(const Frame& frame);
  void set_limit(std::size_t bytes) { reader_.set_limit(bytes); }
  const FrameReader& reader() const { return reader_; }
  bool heard_anything() const { return heard_; }
  int fd() const { return fd_.get(); }

 private:
  void on_event(int events);
  void flush();
  bool receive();
  void end(const Error& error);

  io::Fd fd_;
  io::Watch watch_;  // declared after fd_, so destroyed first
  Events events_;
  FrameReader reader_;
  std::deque<Bytes> queue_;
  std::size_t sent_ = 0;    // bytes of the first entry in queue_
  std::size_t unsent_ = 0;  // bytes of all entries
  bool heard_ = false;
  bool writable_ = true;
  bool ended_ = false;
  CallbackScope calls_;
};

// Names the protocol that the first bytes belong to.
enum class Stranger { tcp_store, web, ssh, other };
Stranger recognise(std::string_view first_bytes);

}  // namespace lockstep::rendezvous::hub
