// Where the state that the agents share stands: a key of a TCPStore, a file, a key of etcd.
#pragma once

#include "base/error.h"

#include <functional>
#include <string>

namespace lockstep::rendezvous::dynamic {

// The token names one version of the state and is the store's own affair.
class StateStore {
 public:
  template <class T>
  using Done = std::function<void(Result<T>)>;
  struct Stored {
    std::string text;  // base64, as encode_state() makes it; kNoState: none yet
    std::string token;
    bool written = false;  // of write(): this is what we wrote
  };

  virtual ~StateStore() = default;

  virtual void read(Done<Stored> done) = 0;
  // Puts `text` in the place of the version `before`; if that is no longer the one there, the
  // answer is what is there instead.
  virtual void write(const Stored& before, const std::string& text, Done<Stored> done) = 0;
};

}  // namespace lockstep::rendezvous::dynamic
