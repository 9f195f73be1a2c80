// Runs one command on one or more hosts at once: arguments, input, output, signals, and one exit
// code.
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

struct CommandRequest {
  enum class Input {
    none,
    ours,   // stdin is passed on, to a single host
    given,  // CommandRequest::given
    made,   // by CommandRequest::make_input
  };
  enum class Output {
    print,     // both streams are printed as they come
    keep_out,  // the output is kept in HostEnding::out, what goes to stderr is printed
    keep,      // both are kept
  };

  std::vector<HostPlace> hosts;
  std::vector<std::string> argv;
  // A request to the host's own lockstep: argv are its arguments, "host-facts" and so on.
  bool own_binary = false;
  std::vector<std::string> env = {};  // "NAME=value"
  std::string folder = {};            // relative to the home there; empty: the home
  Input input = Input::ours;
  std::vector<std::string> given = {};  // one text for all hosts, or one text per host
  // Called once, before the first make_input, usually while the hosts start the command: time for
  // work on this machine.
  std::function<void()> meanwhile = {};
  // Returns the next bytes of input for a host, called when the host has credit left. nullopt: the
  // end.
  std::function<std::optional<std::string>(std::size_t host)> make_input = {};
  Output output = Output::print;
  // Opens descriptor 3 of the command. Bytes written there come back apart from stdout and stderr.
  enum class Answer {
    none,
    keep,  // in HostEnding::answer
    pass,  // to answer_fd of this process, from a single host
  };
  Answer answer = Answer::none;
  // Prefixes printed lines with the name of the host.
  enum class Labels { several, always, never };  // several: if there are several hosts
  Labels labels = Labels::several;
  // Stops all hosts when the command fails on one host, or one host is not reached.
  bool fail_fast = false;
  int answer_fd = -1;
  // A host whose command runs longer counts as not reached.
  std::optional<std::chrono::seconds> limit = {};
  // Takes the bytes of stderr, which are then neither printed nor kept.
  std::function<void(std::size_t host, std::string_view bytes)> on_errors = {};
};

// How the command ended on one host.
struct HostEnding {
  int code = 0;            // as a shell reports: 128 + signal. 255: host not reached
  int signal = 0;          // the signal that killed the command, or 0
  std::string error = {};  // why the command did not run; empty: it ran
  bool stopped = false;    // stopped after another host's failure (fail_fast)
  // Kept output. A host with more than kMostKept bytes of output has failed.
  std::string out = {};
  std::string err = {};
  std::string answer = {};
};

inline constexpr std::size_t kMostKept = 256UL
                                         << 20;  // bytes of `out`, `err` and `answer` together

// Returns the exit code for all hosts: the first that is not 0, in the order of the hosts.
int code_of(const std::vector<HostEnding>& endings);

// Runs until the command has ended on all hosts. Prints output; logs trouble with a host.
Result<std::vector<HostEnding>> run_command(const CommandRequest& request);
// Same, on a loop that also serves other work.
Result<std::vector<HostEnding>> run_command(io::Loop& loop, const CommandRequest& request);

// Runs commands on hosts: over_links() in production, a stand-in for the hosts in a test.
using RunCommand =
    std::function<Result<std::vector<HostEnding>>(io::Loop& loop, const CommandRequest& request)>;
RunCommand over_links();

}  // namespace lockstep::hosts
