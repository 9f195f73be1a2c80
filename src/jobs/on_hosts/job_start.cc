#include "jobs/on_hosts/job_start.h"

#include "base/line_cutter.h"
#include "base/log.h"
#include "base/text.h"
#include "codec/json_members.h"
#include "hosts/command_run.h"
#include "hosts/wait_notice.h"
#include "io/fd.h"
#include "link/channel.h"
#include "proc/signal_watch.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace lockstep::jobs::on_hosts {
namespace {

using link::Stream;
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr std::uint32_t kChannel = 1;
constexpr std::size_t kMostAnswer = 1UL << 20;
constexpr std::size_t kMostWords = 2000;
// A request must fit into the host's receive window: the host may read only the whole request.
constexpr std::size_t kMostRequest = link::kWindow / 2;

class JobStart {
 public:
  explicit JobStart(const JobRequest& request)
      : request_(request), notice_(loop_, [this] { return waiting(); }) {}
  Result<StartedJob> run();
  // Returns true if some hosts may have started the job and others not.
  bool is_half_begun() const { return error_ && told_to_go_; }

 private:
  // All hosts go through these phases in step.
  enum class Phase { preparing, trying, closing, going, over };
  struct Host {
    std::unique_ptr<hosts::HostLink> link;
    std::unique_ptr<link::Channel> channel;
    LineCutter output{kMostAnswer};
    bool answered = false;
    std::vector<std::string> reached;
  };

  void open(std::size_t node);
  void on_output(std::size_t node, Stream stream, std::string_view bytes);
  void on_end(std::size_t node, const link::ChannelEnd& end);
  void on_answer(std::size_t node, const Json& answer);
  void take_prepared(std::size_t node, const Json& facts);
  void say(std::size_t node, const OrderedJson& request);
  void next_phase();
  void try_addresses();
  void end_trial();
  void go();
  void fail_with(Error error);
  hosts::WaitNotice::Waiting waiting() const;

  const JobRequest& request_;
  io::Loop loop_;
  Phase phase_ = Phase::preparing;
  std::vector<Host> hosts_;
  std::vector<std::string> addresses_;  // addresses of node 0
  std::vector<std::string> let_go_;
  int port_ = 0;
  std::string secret_;
  StartedJob started_;
  std::optional<Error> error_;
  bool told_to_go_ = false;
  std::unique_ptr<proc::SignalWatch> signals_;
  hosts::WaitNotice notice_;
};

Result<StartedJob> JobStart::run() {
  LOCKSTEP_TRY_ASSIGN(signals_, proc::SignalWatch::open(loop_, [this](int number) {
                        if (proc::is_stop_signal(number))
                          fail_with({Errc::canceled,
                                     proc::signal_name(number) + " came; nothing was started",
                                     {},
                                     number});
                      }));
  hosts_.resize(request_.hosts.size());
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    open(i);
  notice_.start();
  loop_.run();
  if (error_) return Failure(*error_);
  return started_;
}

void JobStart::open(std::size_t node) {
  Host& host = hosts_[node];
  // Only one host may ask for a password: several prompts would mix.
  const bool alone = hosts_.size() == 1;
  // The supervisor must outlive this connection.
  host.link = std::make_unique<hosts::HostLink>(
      loop_,
      hosts::HostLink::Settings{.place = request_.hosts[node],
                                .may_ask = alone && isatty(STDERR_FILENO) == 1,
                                .commands = ssh::Commands::may_outlive_us},
      hosts::HostLink::Events{
          [this, node](const link::Frame& frame) { hosts_[node].channel->take(frame); },
          [this](const std::string& why) {
            fail_with({Errc::unavailable, why, {}, 0});
          }});
  host.channel = std::make_unique<link::Channel>(
      kChannel, [link = host.link.get()](const link::Frame& frame) { link->send(frame); },
      link::Channel::Events{
          .output = [this, node](Stream stream,
                                 std::string_view bytes) { on_output(node, stream, bytes); },
          .ended = [this, node](const link::ChannelEnd& end) { on_end(node, end); }});
  host.channel->start({.argv = {"host-job", "start"}, .input = true, .own = true});
  job::JobSpec spec = request_.spec;
  // On resume, `nodes` has the numbers of the lost nodes, and the spec keeps the size of the whole
  // job.
  spec.node = request_.nodes.empty() ? static_cast<int>(node) : request_.nodes[node];
  if (request_.nodes.empty()) spec.nodes = static_cast<int>(hosts_.size());
  say(node, {{"prepare", to_json(spec)}});
}

void JobStart::on_end(std::size_t node, const link::ChannelEnd& end) {
  if (phase_ == Phase::over) return;
  const std::string& name = request_.hosts[node].name;
  if (end.kind == link::ChannelEnd::Kind::refused)
    return fail_with({Errc::unavailable, name + ": " + end.why, {}, 0});
  // The supervisor closes the stream once the job starts, and has no reason to do so earlier.
  if (phase_ != Phase::going || !hosts_[node].answered)
    fail_with(
        {Errc::unavailable, name + ": the job's supervisor ended before the job had begun", {}, 0});
}

void JobStart::on_output(std::size_t node, Stream stream, std::string_view bytes) {
  if (phase_ == Phase::over) return;
  const std::string& name = request_.hosts[node].name;
  // Text on stderr is a remark of the supervisor for the user.
  if (stream == Stream::err)
    return log::warning("{}: {}", name, printable(strip(bytes), kMostWords));
  LineCutter& output = hosts_[node].output;
  output.put(bytes);
  while (phase_ != Phase::over) {
    const auto line = output.next();
    if (!line) break;
    on_answer(node, codec::parse_json(*line));
  }
  if (output.too_long()) fail_with({Errc::corrupt, name + ": its answer is too long", {}, 0});
}

void JobStart::on_answer(std::size_t node, const Json& answer) {
  const std::string& name = request_.hosts[node].name;
  const auto has = [&](const char* what) { return answer.is_object() && answer.contains(what); };
  if (has("refused") && answer["refused"].is_string())
    return fail_with({Errc::unavailable,
                      name + ": " + printable(answer["refused"].get<std::string>(), 1000),
                      {},
                      0});
  if (phase_ == Phase::preparing && has("prepared") && !hosts_[node].answered) {
    take_prepared(node, answer["prepared"]);
  } else if (phase_ == Phase::trying && has("reached")) {
    hosts_[node].reached = codec::texts_member(answer, "reached");
  } else if (phase_ == Phase::closing && has("closed")) {
    // "closed" carries no facts.
  } else if (phase_ == Phase::going && has("queued")) {
    started_.ahead = codec::texts_member(answer, "queued");
    std::erase_if(started_.ahead, [](const std::string& id) { return !job::is_job_id(id); });
  } else if (phase_ != Phase::going || !has("started")) {
    return fail_with({Errc::corrupt, name + ": invalid answer", {}, 0});
  }
  hosts_[node].answered = true;
  if (std::all_of(hosts_.begin(), hosts_.end(), [](const Host& host) { return host.answered; }))
    next_phase();
}

void JobStart::take_prepared(std::size_t node, const Json& facts) {
  for (std::string& id : codec::texts_member(facts, "let_go"))
    let_go_.push_back(std::move(id));
  if (node != 0 || !facts.is_object()) return;
  addresses_ = codec::texts_member(facts, "addresses");
  if (facts.contains("port") && facts["port"].is_number_unsigned())
    port_ = facts["port"].get<std::uint16_t>();
  if (facts.contains("secret") && facts["secret"].is_string())
    secret_ = facts["secret"].get<std::string>();
}

void JobStart::say(std::size_t node, const OrderedJson& request) {
  std::string line = codec::print_json(request) + "\n";
  if (line.size() > kMostRequest)
    return fail_with({Errc::invalid_input, "the command and the environment are too large", {}, 0});
  hosts_[node].channel->write(std::move(line));
}

void JobStart::next_phase() {
  for (Host& host : hosts_)
    host.answered = false;
  // A single node, or a user's own endpoint, needs no trial.
  const bool tries = request_.needs_endpoint && hosts_.size() > 1;
  // Node 0 may have several addresses, and a firewall or a private network may hide some from the
  // others.
  if (phase_ == Phase::preparing && tries) return try_addresses();
  if (phase_ == Phase::trying) return end_trial();
  if (phase_ == Phase::going) {
    phase_ = Phase::over;
    return loop_.stop();
  }
  go();
}

void JobStart::try_addresses() {
  phase_ = Phase::trying;
  // Node 0 only listens in this phase. The next phase asks for the answer.
  hosts_[0].answered = true;
  for (std::size_t i = 1; i < hosts_.size(); ++i)
    say(i, {{"try", {{"addresses", addresses_}, {"port", port_}, {"secret", secret_}}}});
}

// Node 0 must free the port before any node connects there for the job.
void JobStart::end_trial() {
  std::vector<std::vector<std::string>> reached;
  for (std::size_t i = 1; i < hosts_.size(); ++i) {
    reached.push_back(hosts_[i].reached);
    if (reached.back().empty())
      return fail_with(
          {Errc::unavailable,
           fmt::format("{} cannot reach {} at any address ({}), port {}", request_.hosts[i].name,
                       request_.hosts[0].name, printable(join(addresses_, ", ")), port_),
           "open the hosts' firewall to each other, or give --rdzv-endpoint", 0});
  }
  const std::string address = common_address(addresses_, reached);
  if (address.empty())
    return fail_with({Errc::unavailable,
                      fmt::format("no single address of {} is reachable from all other hosts",
                                  request_.hosts[0].name),
                      "give --rdzv-endpoint", 0});
  const bool v6 = address.find(':') != std::string::npos;
  started_.endpoint = fmt::format("{}{}{}:{}", v6 ? "[" : "", address, v6 ? "]" : "", port_);
  phase_ = Phase::closing;
  // Only node 0 has a port to close.
  for (std::size_t i = 1; i < hosts_.size(); ++i)
    hosts_[i].answered = true;
  say(0, {{"tried", true}});
}

void JobStart::go() {
  std::vector<std::string> words;
  if (!started_.endpoint.empty()) words.push_back("--rdzv-endpoint=" + started_.endpoint);
  phase_ = Phase::going;
  // Set this before the first request: if a later request fails, some hosts may have begun already.
  told_to_go_ = true;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    std::vector<std::string> all = words;
    if (i < request_.words.size())
      all.insert(all.end(), request_.words[i].begin(), request_.words[i].end());
    say(i, {{"go", {{"words", all}, {"after", let_go_}}}});
  }
}

// Closing the links tells hosts without a started part to drop the job.
void JobStart::fail_with(Error error) {
  if (phase_ == Phase::over) return;
  phase_ = Phase::over;
  error_ = std::move(error);
  loop_.stop();
}

hosts::WaitNotice::Waiting JobStart::waiting() const {
  hosts::WaitNotice::Waiting away;
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    if (!hosts_[i].answered)
      away.emplace_back(request_.hosts[i].name,
                        std::string(hosts_[i].link->ready() ? "the job is being prepared"
                                                            : hosts_[i].link->doing()) +
                            hosts::kCtrlCEnds);
  return away;
}

}  // namespace

std::string common_address(const std::vector<std::string>& addresses,
                           const std::vector<std::vector<std::string>>& reached) {
  for (const std::string& address : addresses) {
    const auto has = [&](const std::vector<std::string>& of_node) {
      return std::find(of_node.begin(), of_node.end(), address) != of_node.end();
    };
    if (std::all_of(reached.begin(), reached.end(), has)) return address;
  }
  return {};
}

Result<StartedJob> start_job(const JobRequest& request) {
  bool half_begun = false;
  Result<StartedJob> started;
  // The block closes the links before the cancellation. Hosts without a started part then drop the
  // job.
  {
    JobStart start(request);
    started = start.run();
    half_begun = start.is_half_begun();
  }
  if (!half_begun) return started;
  // Cancel the job everywhere: a job runs on all hosts or none. The user must cancel it on a silent
  // host.
  const auto endings = hosts::run_command({.hosts = request.hosts,
                                           .argv = {"host-job", "cancel", request.spec.id},
                                           .own_binary = true,
                                           .input = hosts::CommandRequest::Input::none,
                                           .output = hosts::CommandRequest::Output::keep});
  for (std::size_t i = 0; endings && i < endings->size(); ++i)
    if (!(*endings)[i].error.empty())
      log::warning("{}; the job {} may still run there", (*endings)[i].error, request.spec.id);
  return started;
}

}  // namespace lockstep::jobs::on_hosts
