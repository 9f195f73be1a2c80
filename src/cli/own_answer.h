// Runs a command of this program for its output, without blocking the loop: a host that is asked
// may take seconds.
#pragma once

#include "base/error.h"
#include "cli/subcommand.h"
#include "io/fd.h"
#include "io/loop.h"
#include "proc/spawn.h"

#include <functional>
#include <memory>
#include <string>

namespace lockstep::cli {

class OwnAnswer {
 public:
  struct Said {
    std::string out;
    std::string err;    // the first 64 KiB
    int code = 0;       // as a shell shows it
    bool whole = true;  // false: it took too long, or said too much, and was killed
  };

  // words: behind the program's name. then: called once. It may destroy this object, which kills a
  // command that still runs.
  static Result<std::unique_ptr<OwnAnswer>> ask(io::Loop& loop, const Args& words,
                                                std::function<void(Said)> then);
  ~OwnAnswer();
  OwnAnswer(const OwnAnswer&) = delete;
  OwnAnswer& operator=(const OwnAnswer&) = delete;

 private:
  OwnAnswer(io::Loop& loop, proc::Child child, io::Fd out, io::Fd err,
            std::function<void(Said)> then);
  void read(io::Fd& fd, std::unique_ptr<io::Watch>& watch, std::string& into, std::size_t most);
  void give_up();
  void on_end();

  proc::Child child_;
  io::Fd out_;
  io::Fd err_;
  std::function<void(Said)> then_;
  Said said_;
  std::unique_ptr<io::Watch> out_watch_;
  std::unique_ptr<io::Watch> err_watch_;
  io::Watch end_watch_;
  io::Timer limit_;
};

}  // namespace lockstep::cli
