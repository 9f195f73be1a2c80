#include "rent/key_swap.h"

#include <utility>

namespace lockstep::rent {

void KeySwap::begin() {
  ask(settings_.channel, {"host-lease", "make-key"}, &KeySwap::on_made);
}

void KeySwap::ask(std::uint32_t channel, std::vector<std::string> words, Then then) {
  command_ = std::make_unique<hosts::SmallCommand>(channel, send_,
                                                   [this, then](Result<std::string> answer) {
                                                     if (!answer)
                                                       return finish(Failure(answer.error()));
                                                     KeyAnswer key = read_key_answer(*answer);
                                                     if (!key.error.empty())
                                                       return finish(std::move(key));
                                                     (this->*then)(key);
                                                   });
  command_->begin(std::move(words), {});
}

// Pin the new key before sshd shows the new key. If the client dies in between, either key
// identifies the machine.
void KeySwap::on_made(const KeyAnswer& key) {
  auto known = ssh::read_pins(settings_.pins, settings_.address, settings_.port);
  if (!known) return finish(KeyAnswer{known.error().message});
  pins_ = std::move(*known);
  // The old key was in user data, which programs on the machine may read.
  pins_.keys.push_back(ssh::bare_key(key.host_key));
  if (const Status pinned = ssh::pin_host(settings_.pins, settings_.address, settings_.port, pins_);
      !pinned)
    return finish(KeyAnswer{pinned.error().message});
  ask(settings_.channel + 1, {"host-lease", "show-key", key.seen ? "sees" : "blind"},
      &KeySwap::on_shown);
}

void KeySwap::on_shown(const KeyAnswer& key) {
  // Only the new key counts from now on: the old one was in user data.
  pins_.keys = {ssh::bare_key(key.host_key)};
  if (const Status pinned = ssh::pin_host(settings_.pins, settings_.address, settings_.port, pins_);
      !pinned)
    return finish(KeyAnswer{pinned.error().message});
  finish(key);
}

void KeySwap::finish(Result<KeyAnswer> key) {
  const Done done = std::exchange(done_, {});  // may destroy this object
  done(std::move(key));
}

}  // namespace lockstep::rent
