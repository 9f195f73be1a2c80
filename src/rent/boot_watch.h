// Watches booting machines on a separate thread. A machine terminated by hand or preempted would
// never answer, and the user may have run `lockstep down` meanwhile.
#pragma once

#include "base/error.h"
#include "cloud/web.h"
#include "io/fd.h"

#include <functional>
#include <memory>
#include <thread>

namespace lockstep::rent {

class BootWatch {
 public:
  using IsLost = std::function<bool(cloud::Web& web)>;

  // is_lost: called each second on the thread, with the thread's own Web. The destructor stops any
  // request in progress.
  static Result<std::unique_ptr<BootWatch>> start(IsLost is_lost);
  BootWatch(const BootWatch&) = delete;
  BootWatch& operator=(const BootWatch&) = delete;
  ~BootWatch();

  int fd() const { return lost_.get(); }  // readable once the machines are lost

 private:
  explicit BootWatch(IsLost is_lost) : is_lost_(std::move(is_lost)) {}
  void watch();

  IsLost is_lost_;
  io::Fd stop_;
  io::Fd lost_;
  std::unique_ptr<cloud::Web> web_;
  std::thread thread_;
};

}  // namespace lockstep::rent
