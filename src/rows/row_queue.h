// The queue of a sweep's rows: which row is next, for the slots of one host or of several. Several
// hosts share a counter in a store that node 0 serves.
#pragma once

#include "base/error.h"
#include "io/loop.h"
#include "store/async_client.h"
#include "store/server.h"

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::rows {

struct QueueTimes {
  // A host that has not come to the queue within this time after its opening never will.
  std::chrono::milliseconds coming{60'000};
  std::chrono::milliseconds look{2'000};  // between a staying host's questions to node 0
  std::chrono::milliseconds gone{5'000};  // node 0 has ended if it is not reached for so long
};

struct QueuePlace {
  std::string host;  // the address at which the hosts reach node 0
  int port = 0;
  std::string secret;  // of the job: a program without it cannot take rows
  int node = 0;
  int nodes = 1;  // 1: nobody else takes rows, and the rest of the place counts for nothing
  // This host leaves last: a rented machine without a job would terminate itself, and its rows'
  // records and files with it.
  bool stays = false;
  QueueTimes times = {};
};

class RowQueue {
 public:
  struct Events {
    // Answers ask(). nullopt: no row is left for this host.
    std::function<void(std::size_t slot, std::optional<std::size_t> row)> on_row;
    // Node 0 is not reached, or is lost: every later answer is "no row".
    std::function<void(const Error& why)> on_lost;
  };
  // rows: the same on all hosts. Fails if node 0 cannot open the port.
  static Result<std::unique_ptr<RowQueue>> open(io::Loop& loop, std::vector<std::size_t> rows,
                                                QueuePlace place, Events events);
  RowQueue(const RowQueue&) = delete;
  RowQueue& operator=(const RowQueue&) = delete;

  void ask(std::size_t slot);
  // A row has ended on this host. done: with exit code 0.
  void note_end(bool done);
  // Calls back with whether a row is done on any host; false if nobody knows.
  void ask_any_done(std::function<void(bool)> answer);
  // No slot of this host asks any more. done: `ended` is how many rows have ended on all hosts, on
  // node 0 and if it is known. Node 0 waits until the other hosts have left. A host that stays
  // waits until node 0 has ended its queue, even if the queue is lost.
  void leave(std::function<void(std::optional<std::size_t> ended)> done);

 private:
  RowQueue(io::Loop& loop, std::vector<std::size_t> rows, QueuePlace place, Events events);

  bool alone() const { return place_.nodes == 1; }
  std::string key(const char* name) const;
  void connect(std::chrono::milliseconds limit);
  void answer_next();
  void give(std::size_t slot, std::size_t number);
  void lose(const Error& why);
  void say_left(int hosts);
  void await_guests();
  void count();

  io::Loop& loop_;
  const std::vector<std::size_t> rows_;
  const QueuePlace place_;
  Events events_;
  std::size_t next_ = 0;           // of a queue without other hosts
  std::size_t ended_ = 0;          // on this host
  std::deque<std::size_t> asked_;  // slots, of a queue without other hosts or without node 0
  bool lost_ = false;
  io::TimePoint opened_;
  std::function<void(std::optional<std::size_t>)> done_;
  std::unique_ptr<store::Server> server_;       // on node 0
  std::unique_ptr<store::AsyncClient> client_;  // of several hosts, node 0 included
  io::Timer turn_;
  io::Timer guests_;  // of node 0, or of a host that stays
};

}  // namespace lockstep::rows
