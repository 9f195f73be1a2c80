// The shared state as one key of a store with PyTorch's compare_set: a TCPStore or its file. The
// text itself serves as the version token.
#pragma once

#include "rendezvous/dynamic/state_codec.h"
#include "rendezvous/dynamic/state_store.h"

#include <string>
#include <utility>

namespace lockstep::rendezvous::dynamic {

template <class Store>
class TextState : public StateStore {
 public:
  TextState(Store& keys, std::string key) : keys_(keys), key_(std::move(key)) {}

  // Creates the key. Call open() before any other function: torchrun's agents block on a missing
  // key.
  void open(Done<void> done) {
    keys_.compare_set(key_, "", kNoState, [done = std::move(done)](Result<std::string> stored) {
      if (!stored) return done(tl::make_unexpected(std::move(stored).error()));
      done({});
    });
  }

  void read(Done<Stored> done) override {
    keys_.probe(key_, [done = std::move(done)](Result<std::optional<std::string>> text) {
      if (!text) return done(tl::make_unexpected(std::move(text).error()));
      if (!*text) return done(Stored{std::string(kNoState), std::string(kNoState)});
      done(Stored{**text, **text});
    });
  }

  void write(const Stored& before, const std::string& text, Done<Stored> done) override {
    keys_.compare_set(
        key_, before.token, text,
        [token = before.token, text, done = std::move(done)](Result<std::string> stored) {
          if (!stored) return done(tl::make_unexpected(std::move(stored).error()));
          // PyTorch answers a compare_set of a missing key with the expected value.
          if (*stored == token && *stored != text)
            return done(
                fail(Errc::unavailable, "the rendezvous state has vanished from its store"));
          done(Stored{*stored, *stored, *stored == text});
        });
  }

 private:
  Store& keys_;
  std::string key_;
};

}  // namespace lockstep::rendezvous::dynamic
