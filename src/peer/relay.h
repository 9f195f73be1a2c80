// Files that the first of several hosts has go on from host to host: each gives to two others what
// it has of them, also while they still come to it. All hosts know the files, their sizes, and a
// key. docs/protocols/relay.md describes it.
#pragma once

#include "base/error.h"
#include "io/listen.h"
#include "peer/secret_channel.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::peer {

// Who gives to whom, by the hosts' order. Pure.
int relay_giver(int host);  // -1: the first one has it all
int relay_takers(int host, int hosts);

// The end that gives. It serves on threads of its own while this host gets the files.
class RelayGiver {
 public:
  // takers: hosts that are expected. ports: the first that is free is used.
  static Result<std::unique_ptr<RelayGiver>> open(const std::vector<int>& ports, std::string key,
                                                  int takers, std::size_t files);
  ~RelayGiver();
  RelayGiver(const RelayGiver&) = delete;
  RelayGiver& operator=(const RelayGiver&) = delete;

  // The file lies at `path`, or is about to come there.
  Status begin(std::size_t file, const std::string& path);
  void has(std::size_t file, std::uint64_t bytes);  // of it, from its front
  // Until each expected host has said that it needs nothing more; for one that has not come in so
  // long nobody waits, while those that are there get what they want.
  void finish(std::chrono::milliseconds patience);

 private:
  struct File {
    io::Fd fd = {};
    std::uint64_t bytes = 0;
  };
  struct Taker {
    std::thread thread;
    std::shared_ptr<std::atomic<bool>> over;
  };
  RelayGiver(io::Listener listener, io::Pipe wake, std::string key, int takers, std::size_t files);
  void stop();
  void listen();
  void let_in();
  void serve(io::Fd socket);
  Status give(SecretChannel& channel);
  Status give_file(SecretChannel& channel, std::size_t file, std::uint64_t size);

  io::Listener listener_;  // of thread_ alone
  const io::Pipe wake_;
  const std::string key_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<File> files_;
  int missing_;              // hosts that are expected and have not ended
  std::vector<int> guests_;  // sockets of those that have shown the key
  bool closing_ = false;
  std::vector<Taker> takers_;  // of thread_ alone
  std::thread thread_;
};

// The end that takes.
class RelayTaker {
 public:
  // The giver may not listen yet: it is tried for `patience`.
  static Result<RelayTaker> open(const std::vector<std::string>& addresses,
                                 const std::vector<int>& ports, const std::string& key,
                                 std::chrono::milliseconds patience);

  // The file's bytes in order, `size` of them. An error may come after some of them.
  Status take(std::size_t file, std::uint64_t size,
              const std::function<Status(std::string_view)>& put);
  // Needs nothing more.
  void finish();

 private:
  explicit RelayTaker(SecretChannel channel) : channel_(std::move(channel)) {}

  SecretChannel channel_;
};

}  // namespace lockstep::peer
