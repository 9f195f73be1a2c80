#include "jobs/on_hosts/start_course.h"

#include "base/text.h"
#include "codec/json_members.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <algorithm>
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

}  // namespace

StartCourse::StartCourse(const JobRequest& request, Events events)
    : request_(request), events_(std::move(events)) {
  for (std::size_t i = 0; i < request.hosts.size(); ++i)
    add_host(i);
}

void StartCourse::add_host(std::size_t node) {
  auto channel = std::make_unique<link::Channel>(
      kChannel, [this, node](const link::Frame& frame) { events_.send(node, frame); },
      link::Channel::Events{
          .output = [this, node](Stream stream,
                                 std::string_view bytes) { on_output(node, stream, bytes); },
          .ended = [this, node](const link::ChannelEnd& end) { on_end(node, end); }});
  hosts_.push_back({.channel = std::move(channel), .output = LineCutter(kMostAnswer)});
}

void StartCourse::begin() {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    hosts_[i].channel->start({.argv = {"host-job", "start"}, .input = true, .own = true});
    job::JobSpec spec = request_.spec;
    // A resumed job names only its lost nodes, which keep their numbers.
    spec.node = request_.nodes.empty() ? static_cast<int>(i) : request_.nodes[i];
    if (request_.nodes.empty()) spec.nodes = static_cast<int>(hosts_.size());
    say(i, {{"prepare", to_json(spec)}});
  }
}

void StartCourse::lost(const std::string& why) {
  fail_with({Errc::unavailable, why, {}, 0});
}

void StartCourse::on_signal(int number) {
  if (proc::is_stop_signal(number))
    fail_with(
        {Errc::canceled, proc::signal_name(number) + " came; nothing was started", {}, number});
}

Result<StartedJob> StartCourse::result() const {
  if (error_) return Failure(*error_);
  return started_;
}

void StartCourse::on_end(std::size_t node, const link::ChannelEnd& end) {
  if (phase_ == Phase::over) return;
  const std::string& name = request_.hosts[node].name;
  if (end.kind == link::ChannelEnd::Kind::refused)
    return fail_with({Errc::unavailable, name + ": " + end.why, {}, 0});
  // The supervisor closes its end once the job starts. Before that it has no reason to.
  if (phase_ != Phase::going || !hosts_[node].answered)
    fail_with(
        {Errc::unavailable, name + ": the job's supervisor ended before the job had begun", {}, 0});
}

void StartCourse::on_output(std::size_t node, Stream stream, std::string_view bytes) {
  if (phase_ == Phase::over) return;
  const std::string& name = request_.hosts[node].name;
  // Text on stderr is a remark of the supervisor for the user.
  if (stream == Stream::err)
    return events_.warn(fmt::format("{}: {}", name, printable(strip(bytes), kMostWords)));
  LineCutter& output = hosts_[node].output;
  output.put(bytes);
  while (phase_ != Phase::over) {
    const auto line = output.next();
    if (!line) break;
    on_answer(node, codec::parse_json(*line));
  }
  if (output.too_long()) fail_with({Errc::corrupt, name + ": its answer is too long", {}, 0});
}

void StartCourse::on_answer(std::size_t node, const Json& answer) {
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
    // The ids are printed and used in commands, so accept only real ids from a host.
    std::erase_if(started_.ahead, [](const std::string& id) { return !job::is_job_id(id); });
  } else if (phase_ != Phase::going || !has("started")) {
    return fail_with({Errc::corrupt, name + ": invalid answer", {}, 0});
  }
  hosts_[node].answered = true;
  if (std::all_of(hosts_.begin(), hosts_.end(), [](const Host& host) { return host.answered; }))
    next_phase();
}

void StartCourse::take_prepared(std::size_t node, const Json& facts) {
  for (std::string& id : codec::texts_member(facts, "let_go"))
    let_go_.push_back(std::move(id));
  // Only node 0 serves the rendezvous, so only its addresses count.
  if (node != 0 || !facts.is_object()) return;
  addresses_ = codec::texts_member(facts, "addresses");
  if (facts.contains("port") && facts["port"].is_number_unsigned())
    port_ = facts["port"].get<std::uint16_t>();
  if (facts.contains("secret") && facts["secret"].is_string())
    secret_ = facts["secret"].get<std::string>();
}

void StartCourse::say(std::size_t node, const OrderedJson& request) {
  std::string line = codec::print_json(request) + "\n";
  if (line.size() > kMostRequest)
    return fail_with({Errc::invalid_input, "the command and the environment are too large", {}, 0});
  hosts_[node].channel->write(std::move(line));
}

void StartCourse::next_phase() {
  for (Host& host : hosts_)
    host.answered = false;
  const bool tries = request_.needs_endpoint && hosts_.size() > 1;
  // Node 0 may have several addresses, and a firewall or a private network may hide some from the
  // others.
  if (phase_ == Phase::preparing && tries) return try_addresses();
  if (phase_ == Phase::trying) return end_trial();
  if (phase_ == Phase::going) {
    phase_ = Phase::over;
    return;
  }
  go();
}

void StartCourse::try_addresses() {
  phase_ = Phase::trying;
  // Node 0 only listens in this phase.
  hosts_[0].answered = true;
  for (std::size_t i = 1; i < hosts_.size(); ++i)
    say(i, {{"try", {{"addresses", addresses_}, {"port", port_}, {"secret", secret_}}}});
}

// Node 0 must free the port before any node connects there for the job.
void StartCourse::end_trial() {
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
  for (std::size_t i = 1; i < hosts_.size(); ++i)
    hosts_[i].answered = true;
  say(0, {{"tried", true}});
}

void StartCourse::go() {
  std::vector<std::string> words;
  if (!started_.endpoint.empty()) words.push_back("--rdzv-endpoint=" + started_.endpoint);
  phase_ = Phase::going;
  // From here on a failure leaves begun parts, which start_job() must cancel.
  told_to_go_ = true;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    std::vector<std::string> all = words;
    if (i < request_.words.size())
      all.insert(all.end(), request_.words[i].begin(), request_.words[i].end());
    say(i, {{"go", {{"words", all}, {"after", let_go_}}}});
  }
}

// Closing the links tells hosts without a started part to drop the job.
void StartCourse::fail_with(Error error) {
  if (phase_ == Phase::over) return;
  phase_ = Phase::over;
  error_ = std::move(error);
}

std::string common_address(const std::vector<std::string>& addresses,
                           const std::vector<std::vector<std::string>>& reached) {
  // Node 0 lists IPv4 before IPv6, and the loopback last.
  for (const std::string& address : addresses) {
    const auto has = [&](const std::vector<std::string>& of_node) {
      return std::find(of_node.begin(), of_node.end(), address) != of_node.end();
    };
    if (std::all_of(reached.begin(), reached.end(), has)) return address;
  }
  return {};
}

}  // namespace lockstep::jobs::on_hosts
