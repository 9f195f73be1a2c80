// For tests of contact with machines: a host behind an ssh master, on threads of this process. It
// speaks the master's protocol and the link, and the test answers the commands.
#pragma once

#include "io/fd.h"
#include "link/frames.h"
#include "ssh/control_place.h"
#include "ssh/mux_codec.h"
#include "ssh/target.h"

#include <gtest/gtest.h>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace lockstep::rent::testing {

class FakeHost {
 public:
  struct Command {
    std::vector<std::string> argv;
    std::string input;   // what has come so far
    bool ended = false;  // the input is complete
  };
  // What a command prints now. `exits`: and then it ends. Called at its start, and whenever input
  // has come.
  struct Answer {
    std::string out = {};
    bool exits = false;
    int code = 0;
  };
  using Script = std::function<Answer(const Command&)>;

  // target, pins: as the client names this host. Its runtime folder must be the test's own.
  FakeHost(const ssh::Target& target, const std::string& pins, Script script)
      : script_(std::move(script)) {
    const auto path = ssh::control_socket(target, pins);
    EXPECT_TRUE(path);
    sockaddr_un place{};
    place.sun_family = AF_UNIX;
    std::strncpy(place.sun_path, path->c_str(), sizeof place.sun_path - 1);
    unlink(place.sun_path);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&place), sizeof place), 0);
    EXPECT_EQ(listen(listener_.get(), 16), 0);
    thread_ = std::thread([this] { accept_all(); });
  }
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;
  ~FakeHost() {
    (void)eventfd_write(stop_.get(), 1);
    thread_.join();
    for (std::thread& each : sessions_)
      each.join();
  }

  // Returns the commands that have ended, "host-lease status".
  std::vector<std::string> commands() {
    const std::lock_guard lock(mutex_);
    return commands_;
  }

 private:
  void accept_all() {
    std::array<pollfd, 2> both{{{listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
    while (poll(both.data(), both.size(), -1) > 0 && both[1].revents == 0) {
      const int client = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
      sessions_.emplace_back([this, client] { serve(io::Fd(client)); });
    }
  }

  static std::string number(std::uint32_t value) {
    std::string text;
    for (int shift = 24; shift >= 0; shift -= 8)
      text.push_back(static_cast<char>(value >> shift & 0xFF));
    return text;
  }
  static bool take_packet(const io::Fd& client) {
    std::array<unsigned char, 4> size{};
    if (recv(client.get(), size.data(), size.size(), MSG_WAITALL) != 4) return false;
    std::string body((size[0] << 24 | size[1] << 16 | size[2] << 8 | size[3]), '\0');
    return recv(client.get(), body.data(), body.size(), MSG_WAITALL) ==
           static_cast<ssize_t>(body.size());
  }
  static io::Fd take_fd(const io::Fd& client) {
    char byte = 0;
    iovec content{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &content;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (recvmsg(client.get(), &message, MSG_CMSG_CLOEXEC) != 1) return {};
    int fd = -1;
    if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr)
      std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return io::Fd(fd);
  }

  void serve(const io::Fd& client) {
    (void)io::write_all(client.get(), ssh::mux::hello(), "client");
    if (!take_packet(client) || !take_packet(client)) return;  // only asked whether it listens
    const io::Fd in = take_fd(client);
    const io::Fd out = take_fd(client);
    const io::Fd err = take_fd(client);
    constexpr std::uint32_t kOpened = 0x80000006;
    const std::string opened = number(kOpened) + number(0) + number(1);
    (void)io::write_all(client.get(), number(static_cast<std::uint32_t>(opened.size())) + opened,
                        "client");
    (void)io::write_all(out.get(), link::kGreeting, "client");
    send(out, link::Hello{.software = "test", .host = "fake", .home = "/"});
    follow(in, out);
  }

  void follow(const io::Fd& in, const io::Fd& out) {
    std::map<std::uint32_t, Command> commands;
    link::FrameReader reader(link::FrameReader::Wants::frames);
    std::array<char, 65536> bytes;
    while (true) {
      const ssize_t got = read(in.get(), bytes.data(), bytes.size());
      if (got <= 0) return;
      std::string_view rest(bytes.data(), static_cast<std::size_t>(got));
      link::Frame frame;
      while (reader.next(rest, frame) == link::FrameReader::Step::frame)
        on_frame(frame, commands, out);
    }
  }

  void on_frame(const link::Frame& frame, std::map<std::uint32_t, Command>& commands,
                const io::Fd& out) {
    if (const auto* start = std::get_if<link::Start>(&frame)) {
      send(out, link::Started{.channel = start->channel, .pid = 1});
      answer(start->channel, commands[start->channel] = {start->argv, {}, !start->input}, out);
    } else if (const auto* data = std::get_if<link::Data>(&frame)) {
      send(out, link::Credit{data->channel, data->stream,
                             static_cast<std::uint32_t>(data->bytes.size())});
      Command& command = commands[data->channel];
      command.input += data->bytes;
      answer(data->channel, command, out);
    } else if (const auto* eof = std::get_if<link::Eof>(&frame)) {
      commands[eof->channel].ended = true;
      answer(eof->channel, commands[eof->channel], out);
    }
  }

  void answer(std::uint32_t channel, const Command& command, const io::Fd& out) {
    const Answer said = script_(command);
    for (std::size_t at = 0; at < said.out.size(); at += link::kMaxData)
      send(out, link::Data{channel, link::Stream::out, said.out.substr(at, link::kMaxData)});
    if (!said.exits) return;
    const std::lock_guard lock(mutex_);
    std::string words;
    for (const std::string& word : command.argv)
      words += (words.empty() ? "" : " ") + word;
    commands_.push_back(words);
    send(out, link::Eof{channel, link::Stream::out});
    send(out, link::Eof{channel, link::Stream::err});
    send(out, link::Exit{.channel = channel, .code = said.code});
  }

  static void send(const io::Fd& out, const link::Frame& frame) {
    std::string bytes;
    link::put_frame(bytes, frame);
    (void)io::write_all(out.get(), bytes, "client");
  }

  Script script_;
  io::Fd listener_{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  io::Fd stop_{eventfd(0, EFD_CLOEXEC)};
  std::thread thread_;
  std::vector<std::thread> sessions_;
  std::mutex mutex_;
  std::vector<std::string> commands_;
};

// Returns a script that answers each command with this text, once its input is complete.
inline FakeHost::Script says(std::string text, int code = 0) {
  return [text = std::move(text), code](const FakeHost::Command& command) -> FakeHost::Answer {
    if (!command.ended) return {};
    return {.out = text, .exits = true, .code = code};
  };
}

}  // namespace lockstep::rent::testing
