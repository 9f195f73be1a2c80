// Runs a command on any number of hosts at once: arguments, input, output, signals, and a single
// exit code.
#pragma once

#include "base/error.h"
#include "hosts/host_link.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::hosts {

// The usual limit for the kept bytes of one host.
inline constexpr std::size_t kMostKept = 256UL << 20;

struct CommandRequest {
  enum class Input {
    none,   // /dev/null
    ours,   // stdin of this process, for a single host
    given,  // the bytes of CommandRequest::given
    made,   // the bytes that CommandRequest::make_input returns
  };
  enum class Output {
    print,     // prints both streams as they come
    keep_out,  // keeps stdout in HostEnding::out and prints stderr
    keep,      // keeps both
  };

  std::vector<HostPlace> hosts;
  std::vector<std::string> argv;
  // Calls the lockstep of the host: argv are the arguments, "host-facts" and so on.
  bool own_binary = false;
  std::vector<std::string> env = {};  // "NAME=value"
  std::string folder = {};            // absolute, or relative to the home there; empty: the home
  Input input = Input::ours;
  std::vector<std::string> given = {};  // a single text for all hosts, or a text per host
  // Called once, before the first make_input, usually while the hosts start the command. Work on
  // this machine then costs no extra time.
  std::function<void()> meanwhile = {};
  // Returns the next bytes of input for a host, or nullopt at the end. Called only while the host
  // has credit left, so little input waits in memory.
  std::function<std::optional<std::string>(std::size_t host)> make_input = {};
  Output output = Output::print;
  // Limit for the bytes of HostEnding::out, err and answer of one host together.
  std::size_t most_kept = kMostKept;
  // Opens descriptor 3 of the command. Bytes written there come back apart from stdout and stderr.
  enum class Answer {
    none,
    keep,  // in HostEnding::answer
    pass,  // to answer_fd of this process; only for a single host
  };
  Answer answer = Answer::none;
  // Says when printed lines begin with the name of their host. several: if there are several hosts.
  enum class Labels { several, always, never };
  Labels labels = Labels::several;
  // Stops all hosts once a host is not reached or the command fails there.
  bool fail_fast = false;
  int answer_fd = -1;
  // A host whose command runs longer counts as not reached. With on_output: longer without
  // least_output new bytes, so that a host that sends a byte now and then has an end.
  std::optional<std::chrono::seconds> limit = {};
  std::size_t least_output = 1;
  // What the command starts on the host may outlive the connection, as a guard does.
  bool may_outlive = false;
  // Takes the bytes of stdout, which are then neither printed nor kept. For output that is too
  // large for memory. An error ends the host's command, and HostEnding::error gets the message.
  std::function<Status(std::size_t host, std::string_view bytes)> on_output = {};
  // Takes the bytes of stderr, which are then neither printed nor kept.
  std::function<void(std::size_t host, std::string_view bytes)> on_errors = {};
};

// How the command ended on one host.
struct HostEnding {
  int code = 0;            // as a shell reports: 128 + signal. 255: host not reached
  int signal = 0;          // the signal that killed the command, or 0
  std::string error = {};  // the reason why the command did not run; empty: the command ran
  bool stopped = false;    // stopped after another host's failure (fail_fast)
  bool unasked = false;    // a signal came before the host was asked to start the command
  // Kept output. A host with more than CommandRequest::most_kept bytes counts as failed.
  std::string out = {};
  std::string err = {};
  std::string answer = {};
};

// Returns the exit code for all hosts: the first that is not 0, in the order of the hosts.
int code_of(const std::vector<HostEnding>& endings);

// Runs until the command has ended on all hosts. Prints output, and logs trouble with a host. Fails
// only if this process cannot begin (descriptors, signals). The trouble of a host is in HostEnding.
// The signals of proc::handled_signals() must be blocked.
Result<std::vector<HostEnding>> run_command(const CommandRequest& request);
// The same, on a loop that also serves other work.
Result<std::vector<HostEnding>> run_command(io::Loop& loop, const CommandRequest& request);

// The way to run commands on hosts: over_links() in production, a stand-in for the hosts in a test.
using RunCommand =
    std::function<Result<std::vector<HostEnding>>(io::Loop& loop, const CommandRequest& request)>;
RunCommand over_links();

}  // namespace lockstep::hosts
