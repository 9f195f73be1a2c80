// Threads that take no signals.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace lockstep::io {

// Blocks all signals in the calling thread while the object lives, then restores the mask. A new
// thread inherits the mask of its creator: start a helper thread under this object, so that signals
// reach only the thread that handles them.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace lockstep::io
