// A queue for nodes that keep losing the race for the shared state. Each write of the state
// replaces all of it, and only one of the concurrent writes succeeds. If hundreds of nodes join at
// once, nearly all of their writes fail. So a node that has lost takes a ticket and files its wish
// beside the state, under keys that torchrun's agents ignore. The first node in the queue writes
// the state with all wishes filed so far, and answers each node. This technique is known as flat
// combining.
//
// The queue survives the death of any node. The state itself counts the settled tickets, so a wish
// and its settlement are one write. Any node in the queue may settle the rest at any time, and does
// so after a while without an answer.
#pragma once

#include "base/callback_scope.h"
#include "base/error.h"
#include "rendezvous/key_value.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::rendezvous::dynamic {

class JoinQueue {
 public:
  struct Answer {
    enum class Kind {
      act,   // read the state and write it: this node is first, or its wish was refused
      wait,  // the wish is granted; wait for the state's next news after `change`
      look,  // the wish is granted, and the round is complete
    };
    Kind kind = Kind::act;
    std::int64_t change = 0;
  };
  // Consecutive wishes; the ticket of the first is `first`.
  struct Batch {
    std::int64_t first = 1;
    std::vector<std::string> wishes;
    std::int64_t end() const { return first + std::ssize(wishes); }
  };

  // keys must outlive the queue. All keys of the queue start with `prefix`.
  JoinQueue(KeyValue& keys, std::string prefix);

  // Takes a ticket for this wish, replacing the previous one. settled: the count in the state last
  // seen. Calls `answered` at most once, and not after stop_waiting() or leave().
  void file(std::string wish, std::int64_t settled, std::function<void(Answer)> answered);
  // Drops the callback; the wish stays in the queue.
  void stop_waiting();
  // Returns whether this node has a ticket that `settled` does not cover.
  bool holds(std::int64_t settled) const { return ticket_ > settled; }
  // The own ticket number, which is roughly the length of the queue; 0: none.
  std::int64_t ticket() const { return ticket_; }
  // Takes the wish back unless it is settled, and lets the next node act.
  void leave(std::int64_t settled);

  // Reads all unsettled wishes, up to the first gap.
  void collect(std::int64_t settled, std::function<void(Result<Batch>)> done);
  // Answers the nodes of a settled batch, in the batch's order, and lets the next node act.
  void answer(const Batch& batch, const std::vector<Answer>& answers);

 private:
  std::string wish_key(std::int64_t ticket) const;
  std::string answer_key(std::int64_t ticket) const;
  void put(std::int64_t settled);
  void tell(Answer answer);
  void read_wishes(std::int64_t first, std::int64_t count,
                   const std::function<void(Result<Batch>)>& done);
  void close_gap(std::int64_t ticket, const std::function<void(Result<Batch>)>& done);

  KeyValue& keys_;
  std::string prefix_;
  std::int64_t ticket_ = 0;
  std::string wish_;
  std::function<void(Answer)> answered_;
  std::unique_ptr<KeyValue::Watch> watch_;
  CallbackScope filing_;  // of the last file()
  CallbackScope calls_;
};

}  // namespace lockstep::rendezvous::dynamic
