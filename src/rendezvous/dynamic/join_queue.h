// Where nodes that keep losing the race for the shared state queue up. Each write of the state
// carries all of it, and only one of those under way at a time succeeds: where hundreds of nodes
// join at once, nearly all of their writes would be in vain. So a node that has lost takes a ticket
// and leaves its wish beside the state, under keys that torchrun's agents ignore; the first in the
// queue writes the state with all wishes that have come by then, and tells each node how it fared
// (known as flat combining).
//
// Nothing depends on anybody's staying alive. The state itself says how many tickets are settled,
// so a wish and its settlement are one write; any node of the queue may settle the rest of it at
// any time, and each does when it has heard nothing for a while.
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
      act,   // read the state and write it: this node is the first, or its wish was not granted
      wait,  // the wish is granted; the state's news have the number `change` now
      look,  // the wish is granted, and the round complete
    };
    Kind kind = Kind::act;
    std::int64_t change = 0;
  };
  // Wishes by ticket, from `first` on.
  struct Batch {
    std::int64_t first = 1;
    std::vector<std::string> wishes;
    std::int64_t end() const { return first + std::ssize(wishes); }
  };

  // keys must live as long. prefix: before all keys of the queue.
  JoinQueue(KeyValue& keys, std::string prefix);

  // A ticket for this wish, in place of the one before. settled: as the state last seen says.
  // `answered` comes at most once, and not after stop_waiting() or leave().
  void file(std::string wish, std::int64_t settled, std::function<void(Answer)> answered);
  // The wish stands, but the answer is not waited for any more.
  void stop_waiting();
  // The ticket is known, and the state does not settle it.
  bool holds(std::int64_t settled) const { return ticket_ > settled; }
  // Its number, which is about the length of the queue; 0: none.
  std::int64_t ticket() const { return ticket_; }
  // Takes the wish back if it is not settled, and lets the next one act.
  void leave(std::int64_t settled);

  // All wishes behind the settled ones, up to the first that is not there yet.
  void collect(std::int64_t settled, std::function<void(Result<Batch>)> done);
  // To the nodes of a batch that has been settled, in its order, and to the next one in the queue.
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
