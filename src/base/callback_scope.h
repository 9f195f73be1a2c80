// The one idiom for callbacks that may come when nobody wants them any more: an owner gives its
// callbacks away through a scope that it holds as a member. Once the scope is destroyed, or has
// dropped what it gave out, none of those calls does anything. As with io::Watch and io::Timer:
// destroy the handle, and no callback comes.
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

  // Calls fn while the scope lives and until drop(). fn may destroy the scope's owner.
  template <class Fn>
  auto operator()(Fn fn) const {
    return [alive = std::weak_ptr<const char>(alive_), fn = std::move(fn)](auto&&... args) {
      if (!alive.expired()) std::invoke(fn, std::forward<decltype(args)>(args)...);
    };
  }

  // The calls given out so far never come; later ones do. For an owner that begins anew.
  void drop() { alive_ = std::make_shared<const char>(); }

  // For an owner that calls out and goes on afterwards, if it is still there.
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
