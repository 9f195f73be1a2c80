// Links whose hosts are played by the test.
#pragma once

#include "hosts/host_link.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::hosts {

class FakeLinks {
 public:
  // The host's end of one link.
  struct End {
    std::string host;
    std::size_t number = 0;  // how many links to this host were opened before
    Link::Events events = {};
    bool open = true;
    std::vector<link::Frame> sent = {};  // by the client

    void say(const link::Frame& frame) const { events.frame(frame); }
    void lose(const std::string& why) const { events.failed(host + ": " + why); }
  };

  // Called with each frame of a client, on a later turn of its loop, while the link is open.
  std::function<void(End& end, const link::Frame& frame)> on_frame;
  std::vector<std::shared_ptr<End>> ends;  // in the order of opening

  OpenLink open_link() {
    return [this](io::Loop& loop, const Link::Settings& settings, Link::Events events) {
      std::size_t number = 0;
      for (const auto& each : ends)
        if (each->host == settings.place.name) ++number;
      ends.push_back(std::make_shared<End>(End{settings.place.name, number, std::move(events)}));
      return std::make_unique<Client>(*this, loop, ends.back());
    };
  }

 private:
  class Client : public Link {
   public:
    Client(FakeLinks& links, io::Loop& loop, std::shared_ptr<End> end)
        : links_(links), loop_(loop), end_(std::move(end)) {}
    ~Client() override { end_->open = false; }
    void send(const link::Frame& frame) override {
      end_->sent.push_back(frame);
      loop_.post([&links = links_, end = end_, frame] {
        if (end->open && links.on_frame) links.on_frame(*end, frame);
      });
    }
    bool ready() const override { return true; }
    const char* doing() const override { return "logging in"; }

   private:
    FakeLinks& links_;
    io::Loop& loop_;
    std::shared_ptr<End> end_;
  };
};

}  // namespace lockstep::hosts
