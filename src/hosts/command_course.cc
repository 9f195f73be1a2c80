#include "hosts/command_course.h"

#include "proc/signals.h"

#include <fmt/core.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockstep::hosts {
namespace {

using link::Stream;
using Output = CommandRequest::Output;

// Ctrl-C goes to the commands twice. The third gives up on commands or hosts that do not react.
constexpr int kStopsToLeave = 3;

}  // namespace

CommandCourse::CommandCourse(const CommandRequest& request, std::function<Reach(std::size_t)> reach,
                             io::TimePoint now)
    : request_(request),
      reach_(std::move(reach)),
      hosts_(request.hosts.size()),
      endings_(request.hosts.size()) {
  for (Host& host : hosts_)
    host.heard = now;
  if (request.limit) limit_at_ = now + *request.limit;
}

bool CommandCourse::has_input() const {
  switch (request_.input) {
    case CommandRequest::Input::none:
      return false;
    case CommandRequest::Input::ours:
      // A single stdin cannot feed several hosts: each byte could go to only one command.
      return hosts_.size() == 1;
    case CommandRequest::Input::given:
    case CommandRequest::Input::made:
      return true;
  }
  return false;
}

bool CommandCourse::is_kept(Stream stream) const {
  if (stream == Stream::result) return request_.answer == CommandRequest::Answer::keep;
  if (request_.output == Output::keep) return true;
  return request_.output == Output::keep_out && stream == Stream::out;
}

std::string CommandCourse::prefix(std::size_t host) const {
  using Labels = CommandRequest::Labels;
  const bool labeled =
      request_.labels == Labels::several ? hosts_.size() > 1 : request_.labels == Labels::always;
  return labeled ? request_.hosts[host].name + ": " : "";
}

bool CommandCourse::on_asked(std::size_t host) {
  hosts_[host].asked = true;
  return std::all_of(hosts_.begin(), hosts_.end(),
                     [](const Host& each) { return each.asked || each.over; });
}

void CommandCourse::on_frame(std::size_t host, const link::Frame& frame, io::TimePoint now) {
  Host& each = hosts_[host];
  each.heard = now;
  each.pinged = each.silent = false;
  // Neither frame shows that the program works: the link answers pings, and Started only says that
  // the program has begun.
  if (!std::holds_alternative<link::Pong>(frame) && !std::holds_alternative<link::Started>(frame))
    each.quiet = false;
}

// Bound the kept output: a command that prints without end must not fill the memory of this
// process.
bool CommandCourse::keep(std::size_t host, Stream stream, std::string_view bytes) {
  HostEnding& ending = endings_[host];
  if (ending.out.size() + ending.err.size() + ending.answer.size() + bytes.size() >
      request_.most_kept)
    return false;
  std::string& kept = stream == Stream::result ? ending.answer
                      : stream == Stream::out  ? ending.out
                                               : ending.err;
  kept += bytes;
  return true;
}

bool CommandCourse::end(std::size_t host, int code, std::string error) {
  hosts_[host].over = true;
  endings_[host].code = code;
  endings_[host].error = std::move(error);
  // The hosts that are stopped end with an error too. Only the first failure may stop hosts.
  return code != 0 && request_.fail_fast && !std::exchange(failed_, true);
}

bool CommandCourse::end(std::size_t host, const link::ChannelEnd& how) {
  using Kind = link::ChannelEnd::Kind;
  if (how.kind == Kind::signaled) endings_[host].signal = how.code;
  // A refusal comes from the host and does not name the host. The error of a lost link names the
  // host already.
  return end(host, how.shell_code(),
             how.kind == Kind::refused ? request_.hosts[host].name + ": " + how.why : how.why);
}

bool CommandCourse::all_over() const {
  return std::all_of(hosts_.begin(), hosts_.end(), [](const Host& each) { return each.over; });
}

std::vector<std::size_t> CommandCourse::stop_others() {
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].over) continue;
    endings_[i].stopped = true;
    others.push_back(i);
  }
  return others;
}

io::Duration CommandCourse::limit_after(std::size_t bytes, io::TimePoint began,
                                        io::TimePoint ended) {
  new_output_ += bytes;
  limit_at_ += ended - began;
  if (new_output_ >= request_.least_output) {
    new_output_ = 0;
    limit_at_ = ended + *request_.limit;
  }
  return limit_at_ - ended;
}

std::string CommandCourse::limit_error(std::size_t host) const {
  if (new_output_ > 0)
    return fmt::format("{}: only {} bytes came within {} s", request_.hosts[host].name, new_output_,
                       request_.limit->count());
  return fmt::format("{}: no answer within {} s", request_.hosts[host].name,
                     request_.limit->count());
}

CommandCourse::OnSignal CommandCourse::on_signal(int number) {
  // SIGCHLD (ssh, rsync) and SIGWINCH concern this process alone.
  if (number == SIGCHLD || number == SIGWINCH) return OnSignal::ignore;
  if (!proc::is_stop_signal(number)) return OnSignal::pass_on;
  // The signal cannot reach a command on a host that is still logging in, or that does not answer.
  // Waiting for such a host would make Ctrl-C look dead, so leave.
  bool all_run = true;
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    all_run = all_run && (hosts_[i].over || (reach_(i).ready && !hosts_[i].silent));
  if (++stops_ < kStopsToLeave && all_run) return OnSignal::pass_on;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].over) continue;
    // Report the hosts that were left behind as a shell reports a killed command.
    endings_[i].code = 128 + number;
    endings_[i].error = proc::signal_name(number);
    endings_[i].unasked = !reach_(i).ready;
  }
  return OnSignal::leave;
}

// Returns true for a request to the lockstep of the host whose answer is collected and not printed.
// The user sees no output while the host works on such a request, so a notice must explain the
// pause.
bool CommandCourse::asks_lockstep() const {
  return request_.own_binary && request_.argv.front().starts_with("host-") &&
         request_.output != Output::print && !request_.on_errors;
}

// A command of the user may print nothing for hours, which must not look like a fault. The link on
// the host must answer pings at any time, so an unanswered ping shows a host that hangs or is cut
// off.
CommandCourse::SilentHosts CommandCourse::silence(io::TimePoint now) {
  SilentHosts silence;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    Host& host = hosts_[i];
    if (host.over) continue;
    const std::string& name = request_.hosts[i].name;
    if (const Reach reach = reach_(i); !reach.ready) {
      silence.waiting.emplace_back(name, std::string(reach.doing) + kCtrlCEnds);
      continue;
    }
    const auto silent = std::chrono::round<std::chrono::seconds>(now - host.heard);
    // The ping of the last notice has had at least five seconds for the answer.
    host.silent = host.pinged;
    if (host.silent)
      silence.waiting.emplace_back(name,
                                   fmt::format("no answer for {} s{}", silent.count(), kCtrlCEnds));
    else if (host.quiet && asks_lockstep())
      silence.waiting.emplace_back(name, std::string("its answer") + kCtrlCEnds);
    if (!host.pinged) silence.pings.push_back(i);
    host.pinged = host.quiet = true;
  }
  return silence;
}

int code_of(const std::vector<HostEnding>& endings) {
  // The order of the hosts, not of the ends in time, keeps the exit code of equal runs equal.
  for (const HostEnding& ending : endings)
    if (ending.code != 0) return ending.code;
  return 0;
}

}  // namespace lockstep::hosts
