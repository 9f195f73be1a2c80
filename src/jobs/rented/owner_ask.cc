#include "jobs/rented/owner_ask.h"

#include "base/mid_line.h"
#include "jobs/rented/owner_words.h"
#include "proc/signal_watch.h"
#include "rent/guard_hosts.h"

#include <chrono>
#include <cstdio>
#include <string_view>
#include <utility>

namespace lockstep::jobs::rented {
namespace {

// A plan asks all providers, and the binary may have to be copied first.
constexpr std::chrono::seconds kAskPatience{600};
// Commands about other jobs ask for the state, too. A host that hangs must not delay them for long.
constexpr std::chrono::seconds kStatePatience{60};
constexpr std::size_t kMostAnswer = 4UL << 20;
// The answers of all agents of a job (jobs/agent_answers.cc).
constexpr std::size_t kMostLook = 64UL << 20;

std::vector<std::string> words_of(const std::vector<std::string>& argv) {
  std::vector<std::string> words = {kHostRental};
  words.insert(words.end(), argv.begin(), argv.end());
  return words;
}

// Returns the ending of the command on the host, or why it did not run there.
Result<hosts::HostEnding> ending_of(const hosts::CommandRequest& request,
                                    const hosts::RunCommand& run, Asked& asked) {
  io::Loop loop;
  LOCKSTEP_TRY_ASSIGN(auto endings, run(loop, request));
  hosts::HostEnding& ending = endings.front();
  asked = ending.error.empty() ? Asked::ended : ending.unasked ? Asked::never : Asked::unanswered;
  if (asked == Asked::ended) return std::move(ending);
  if (const int signal = proc::SignalWatch::take_stop())
    return Failure(Error{Errc::canceled, "stopped by the user", {}, signal});
  return fail(Errc::unavailable, ending.error);
}

}  // namespace

Result<std::string> ask_owner(const std::string& host, const std::vector<std::string>& argv,
                              const std::string& input, Asked* asked,
                              const hosts::RunCommand& run) {
  Asked ignored{};
  Asked& how_far = asked == nullptr ? ignored : *asked;
  how_far = Asked::never;
  LOCKSTEP_TRY_ASSIGN(const hosts::HostPlace place, rent::GuardHosts::place_of(host));
  const std::string& verb = argv.front();
  LOCKSTEP_TRY_ASSIGN(hosts::HostEnding ending,
                      ending_of({.hosts = {place},
                                 .argv = words_of(argv),
                                 .own_binary = true,
                                 .input = input.empty() ? hosts::CommandRequest::Input::none
                                                        : hosts::CommandRequest::Input::given,
                                 .given = {input},
                                 .output = hosts::CommandRequest::Output::keep,
                                 .most_kept = verb == kOwnerLook ? kMostLook : kMostAnswer,
                                 .limit = verb == "state" ? kStatePatience : kAskPatience,
                                 .may_outlive = true},
                                run, how_far));
  if (ending.code != 0)
    return Failure(error_of_ask(host, ending.code, ending.err, proc::SignalWatch::take_stop()));
  std::fputs(printable_lines(ending.err).c_str(), stderr);
  return std::move(ending.out);
}

Result<OwnedState> state_of_owned(const cloud::RentedJob& job) {
  LOCKSTEP_TRY_ASSIGN(const std::string said, ask_owner(job.host, {"state", job.rental}));
  return read_owned_state(said);
}

Result<int> run_at_owner(const cloud::RentedJob& job, const std::vector<std::string>& command,
                         OwnerOutput output, const hosts::RunCommand& run) {
  std::vector<std::string> argv = {"ask", job.rental, job.cluster};
  argv.insert(argv.end(), command.begin(), command.end());
  LOCKSTEP_TRY_ASSIGN(const hosts::HostPlace place, rent::GuardHosts::place_of(job.host));
  hosts::CommandRequest request{.hosts = {place},
                                .argv = words_of(argv),
                                .own_binary = true,
                                .input = hosts::CommandRequest::Input::none,
                                .labels = hosts::CommandRequest::Labels::never,
                                // The command may start the guard there.
                                .may_outlive = true};
  OwnerWords errors;
  if (output == OwnerOutput::words) {
    request.output = hosts::CommandRequest::Output::keep;
    request.most_kept = kMostAnswer;
    request.limit = kAskPatience;
    request.on_errors = [&](std::size_t, std::string_view bytes) {
      end_line();
      std::fputs(errors.take(bytes).c_str(), stderr);
    };
  }
  Asked asked{};
  const auto ending = ending_of(request, run, asked);
  std::fputs(errors.end().c_str(), stderr);
  if (!ending) return Failure(ending.error());
  std::fputs(printable_lines(ending->out).c_str(), stdout);
  return ending->code;
}

}  // namespace lockstep::jobs::rented
