// Connects to one place that runs commands: a host over SSH, this machine, or a place that a
// command leads to. All kinds look alike to the users of the link.
#pragma once

#include "base/callback_scope.h"
#include "base/error.h"
#include "io/loop.h"
#include "link/endpoint.h"
#include "proc/spawn.h"
#include "ssh/connection.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::hosts {

struct HostPlace {
  std::string name;  // for people: "gpus-0", or "ubuntu@10.0.0.5"
  ssh::Target target;
  std::string pins = {};          // the file with the host keys of the cluster; empty: none
  bool here = false;              // this machine: no SSH
  std::optional<int> slots = {};  // workers on this host, from the user's hostfile
  bool login = false;             // the login host of a Slurm cluster: jobs run elsewhere
  std::string like = {};          // a known cluster with a similar name, for a hint
};

// A command whose standard streams lead to `lockstep link` at a place without ssh.
struct LinkCommand {
  std::vector<std::string> argv;  // argv[0] is searched in PATH
  std::vector<std::string> env;   // "NAME=value"
  // SIGKILL when this process ends. For a command that leaves nothing behind then.
  bool dies_with_us = false;
};

// Returns the error of a failed log-in, with the similar cluster name (HostPlace::like) as a hint.
Error with_guess(Error error, const HostPlace& place);

// The interface of a link. HostLink implements it, and FakeLinks for tests. Destruction ends the
// session.
class Link {
 public:
  struct Settings {
    HostPlace place;
    bool may_ask = false;  // ssh may ask for a password on the terminal
    ssh::Commands commands = ssh::Commands::end_with_us;
    std::optional<LinkCommand> command = {};  // in place of ssh
  };
  struct Events {
    std::function<void(link::Frame)> frame;
    std::function<void(std::string why)> failed;  // called once, at any time; no event follows
    // The place was asked for, and this end has nothing to do but wait. May be called several
    // times.
    std::function<void()> asked = {};
  };

  Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  virtual ~Link() = default;

  // Sends a frame. Frames wait until the link is ready.
  virtual void send(const link::Frame& frame) = 0;
  virtual bool ready() const = 0;
  // Returns the current step of a link that is not ready: "logging in".
  virtual const char* doing() const = 0;
};

// The way to open links: HostLinks in production. No event comes before the call returns.
using OpenLink = std::function<std::unique_ptr<Link>(io::Loop& loop, const Link::Settings& settings,
                                                     Link::Events events)>;
OpenLink host_links();

class HostLink : public Link {
 public:
  // Calls no event from inside the constructor or send(). The loop must outlive the link.
  // Destruction ends the session, and with it all commands of the link unless
  // Commands::may_outlive_us.
  HostLink(io::Loop& loop, const Settings& settings, Events events);
  ~HostLink() override;

  void send(const link::Frame& frame) override;
  bool ready() const override;
  const char* doing() const override;

 private:
  Status open_here(ssh::Commands commands);
  Status open_command(const LinkCommand& command);
  Status start(proc::SpawnSpec spec);
  void hear();
  void on_end(const Error& error);
  void fail_soon(std::string why);

  io::Loop& loop_;
  std::string name_;
  Events events_;
  std::unique_ptr<ssh::Connection> connection_;  // nullptr: a child of this process
  std::optional<proc::Child> child_;
  std::unique_ptr<link::Endpoint> link_;
  io::Fd errors_;  // the stderr of a LinkCommand
  std::unique_ptr<io::Watch> errors_watch_;
  std::string heard_;  // the end of it
  // Delivers events on the next turn of the loop.
  io::Timer turn_;
};

}  // namespace lockstep::hosts
