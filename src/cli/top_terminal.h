// The terminal of `lockstep top`: a screen of its own, drawn in place, and keys. The terminal is as
// before once this object is gone.
#pragma once

#include "base/error.h"
#include "io/fd.h"
#include "io/loop.h"
#include "top/keys.h"
#include "top/screen.h"

#include <termios.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

class TopTerminal {
 public:
  class Listener {
   public:
    virtual void on_key(const top::Key& key) = 0;
    // The terminal was stopped (Ctrl-Z) and is back: draw.
    virtual void on_return() = 0;
    virtual void on_terminal_gone() = 0;

   protected:
    ~Listener() = default;
  };

  // Needs a terminal as standard output. Without one as standard input, there are no keys.
  static Result<std::unique_ptr<TopTerminal>> open(io::Loop& loop, Listener& listener);
  ~TopTerminal();
  TopTerminal(const TopTerminal&) = delete;
  TopTerminal& operator=(const TopTerminal&) = delete;

  static top::ScreenSize size();
  // Sends what has changed since the last call. A terminal that does not read gets the newest
  // screen when it reads again.
  void show(std::vector<top::ScreenLine> lines);
  // Its size has changed, or other output has come between: draw all lines anew.
  void forget() { shown_.clear(); }

 private:
  TopTerminal(io::Loop& loop, Listener& listener, io::Fd out, io::Fd in);
  void enter();
  void leave();
  void suspend();
  void read_keys();
  void flush();
  std::string painted(const top::ScreenLine& line, std::size_t columns) const;

  Listener& listener_;
  io::Fd out_;  // opened anew: non-blocking for this process alone
  io::Fd in_;
  std::optional<termios> before_;  // the settings of the keyboard
  bool colours_;
  top::KeyReader keys_;
  std::vector<std::string> shown_;  // as painted
  std::vector<top::ScreenLine> next_;
  bool has_next_ = false;
  std::string pending_;  // not yet taken by the terminal
  std::unique_ptr<io::Watch> out_watch_;
  std::unique_ptr<io::Watch> in_watch_;
};

// Returns whether lines may have colours: a terminal that can show them, and a user who has not set
// NO_COLOR.
bool wants_colours(int fd);
// Returns the line with its colours.
std::string coloured(const top::ScreenLine& line, bool colours);

}  // namespace lockstep::cli
