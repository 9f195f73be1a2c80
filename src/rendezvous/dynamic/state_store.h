// The interface to the shared state, wherever the state is kept: a TCPStore key, a file, an etcd
// key.
#pragma once

#include "base/error.h"

#include <functional>
#include <string>

namespace lockstep::rendezvous::dynamic {

// The token names one version of the state. Only the store interprets tokens.
class StateStore {
 public:
  template <class T>
  using Done = std::function<void(Result<T>)>;
  struct Stored {
    std::string text;  // base64, as encode_state() makes it, or kNoState
    std::string token;
    bool written = false;  // set by write(): the store now holds the caller's text
  };

  virtual ~StateStore() = default;

  virtual void read(Done<Stored> done) = 0;
  // Replaces the version `before` by `text`. If the store holds another version by now, nothing is
  // written and the answer is that version.
  virtual void write(const Stored& before, const std::string& text, Done<Stored> done) = 0;
};

}  // namespace lockstep::rendezvous::dynamic
