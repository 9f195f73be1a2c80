// News of a round's Lockstep agents in the round's store, for backends whose nodes share a store:
// each node writes its news under its own key. Node 0 reads the keys of all other nodes once a
// second, and the others read the key of node 0. torchrun's agents never look at these keys.
#pragma once

#include "base/callback_scope.h"
#include "io/loop.h"
#include "rendezvous/key_value.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::rendezvous {

class NewsBoard {
 public:
  using Heard = std::function<void(int from, const std::string& text)>;

  // The store answers one node after the other. Larger rounds have no news.
  static constexpr std::size_t kMostNodes = 64;
  static constexpr std::chrono::milliseconds kPeriod{1000};

  // prefix: of the round's keys. ours: by rank, whether the node has a Lockstep agent. heard:
  // called for each news that is new; it may destroy the board.
  NewsBoard(io::Loop& loop, KeyValue& keys, std::string prefix, int rank, std::vector<bool> ours,
            Heard heard);

  // Writes this node's news, which replace the earlier ones. Reading begins with the first news.
  void send(const std::string& text);

 private:
  std::string key(int node) const;
  void look();
  void ask(std::size_t node);
  void take(std::size_t node, const std::optional<std::string>& value);

  KeyValue& keys_;
  std::string prefix_;
  int rank_;
  Heard heard_;
  struct Other {
    bool reads = false;     // this node reads its news
    bool pending = false;   // the store has not answered
    std::string last = {};  // number of the last news
  };
  std::vector<Other> others_;  // by rank
  std::int64_t number_ = 0;
  io::Timer timer_;
  CallbackScope calls_;
};

}  // namespace lockstep::rendezvous
