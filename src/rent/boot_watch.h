// While machines are waited for, a thread asks whether they are still worth it: one that was ended
// by hand, or taken, would never answer, and somebody else may want them no more.
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

  // is_lost: asked each second on the thread, with a Web of its own that ends with this.
  static Result<std::unique_ptr<BootWatch>> start(IsLost is_lost);
  BootWatch(const BootWatch&) = delete;
  BootWatch& operator=(const BootWatch&) = delete;
  ~BootWatch();

  int fd() const { return lost_.get(); }  // readable once they are lost

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
