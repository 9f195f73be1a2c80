// The lifetime of callbacks. An owner holds a CallbackScope as a member and wraps each callback
// that it gives away. Once the scope is destroyed or dropped, calling a wrapped callback does
// nothing. io::Watch and io::Timer follow the same rule: after the handle is destroyed, no callback
// comes.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace lockstep {

class CallbackScope {
 public:
  CallbackScope() = default;
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;

  // Wraps fn. The result calls fn until the scope is destroyed or dropped. fn may destroy the
  // owner.
  template <class Fn>
  auto operator()(Fn fn) const {
    return [alive = std::weak_ptr<const char>(alive_), fn = std::move(fn)](auto&&... args) {
      if (!alive.expired()) std::invoke(fn, std::forward<decltype(args)>(args)...);
    };
  }

  // Disarms all callbacks wrapped so far, for an owner that starts over. Callbacks wrapped later
  // work.
  void drop() { alive_ = std::make_shared<const char>(); }

  // Tells an owner, after a call of foreign code, whether the owner still exists.
  class Witness {
   public:
    bool gone() const { return alive_.expired(); }

   private:
    friend class CallbackScope;
    explicit Witness(const std::shared_ptr<const char>& alive) : alive_(alive) {}
    std::weak_ptr<const char> alive_;
  };
  Witness witness() const { return Witness(alive_); }

 private:
  std::shared_ptr<const char> alive_ = std::make_shared<const char>();
};

}  // namespace lockstep
