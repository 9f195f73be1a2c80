// Passes files from the first of several hosts on to the others. Each host gives to two more hosts,
// already while its own files arrive. All hosts know the files' sizes and a key. See
// docs/protocols/relay.md.
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

// The tree of hosts, by their order. Pure.
int relay_giver(int host);  // -1: the first host, which has everything
int relay_takers(int host, int hosts);

// The giving end. Serves on its own threads while this host still receives the files.
class RelayGiver {
 public:
  // takers: number of expected hosts. ports: the first free one is used.
  static Result<std::unique_ptr<RelayGiver>> open(const std::vector<int>& ports, std::string key,
                                                  int takers, std::size_t files);
  ~RelayGiver();
  RelayGiver(const RelayGiver&) = delete;
  RelayGiver& operator=(const RelayGiver&) = delete;

  // The file is at `path`, or bytes are about to be written there.
  Status begin(std::size_t file, const std::string& path);
  void has(std::size_t file, std::uint64_t bytes);  // the first `bytes` bytes of the file are there
  // Waits until all expected hosts are finished. Hosts not connected within `patience` are given
  // up. Connected hosts are served to their end.
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

  io::Listener listener_;  // used by thread_ only
  const io::Pipe wake_;
  const std::string key_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::vector<File> files_;
  int missing_;              // expected hosts that have not ended
  std::vector<int> guests_;  // sockets of hosts that have shown the key
  bool closing_ = false;
  std::vector<Taker> takers_;  // used by thread_ only
  std::thread thread_;
};

// The taking end.
class RelayTaker {
 public:
  // Retries for `patience`, because the giver may not listen yet.
  static Result<RelayTaker> open(const std::vector<std::string>& addresses,
                                 const std::vector<int>& ports, const std::string& key,
                                 std::chrono::milliseconds patience);

  // Passes the file's `size` bytes to `put` in order. An error may come after some of them.
  Status take(std::size_t file, std::uint64_t size,
              const std::function<Status(std::string_view)>& put);
  // Tells the giver that this host needs nothing more.
  void finish();

 private:
  explicit RelayTaker(SecretChannel channel) : channel_(std::move(channel)) {}

  SecretChannel channel_;
};

}  // namespace lockstep::peer
