// One command on one host or on several at once: its arguments, its output and its input, signals,
// and one exit code.
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
  std::vector<std::string> given = {};  // one for all hosts, or one for each
  // Called once, before any make_input: as a rule while the hosts start, with nothing else to do.
  std::function<void()> meanwhile = {};
  // The next bytes for a host, asked for when it has room; nullopt: that was all.
  std::function<std::optional<std::string>(std::size_t host)> make_input = {};
  Output output = Output::print;
  // Commands find descriptor 3 open, and what they write there comes back beside their output.
  enum class Answer {
    none,
    keep,  // in HostEnding::answer
    pass,  // to answer_fd of this process, from a single host
  };
  Answer answer = Answer::none;
  // Whether printed lines stand behind the host's name.
  enum class Labels { several, always, never };  // several: where there are several hosts
  Labels labels = Labels::several;
  // A host whose command fails, or that is not reached, ends it on all others.
  bool fail_fast = false;
  int answer_fd = -1;
  // A host whose command has not ended after so long counts as not reached.
  std::optional<std::chrono::seconds> limit = {};
  // Takes what goes to stderr, in place of its being printed or kept.
  std::function<void(std::size_t host, std::string_view bytes)> on_errors = {};
};

// How it ended on one host.
struct HostEnding {
  int code = 0;            // as a shell has it: 128 + signal; 255: the host was not reached
  int signal = 0;          // that ended the command, or 0
  std::string error = {};  // why it was not reached or not started; empty: it ran
  bool stopped = false;    // it was ended for another host's failure (fail_fast)
  // What was kept. A host that says more than kMostKept has failed.
  std::string out = {};
  std::string err = {};
  std::string answer = {};
};

inline constexpr std::size_t kMostKept = 256UL << 20;  // bytes of all together

// The code of all: the first that is not 0, in the order of the hosts.
int code_of(const std::vector<HostEnding>& endings);

// Runs until all have ended. Prints what they say; what went wrong with a host goes to the log.
Result<std::vector<HostEnding>> run_command(const CommandRequest& request);
// On a loop on which more goes on.
Result<std::vector<HostEnding>> run_command(io::Loop& loop, const CommandRequest& request);

}  // namespace lockstep::hosts
