#include "jobs/on_hosts/start_course.h"

#include "base/text.h"
#include "codec/json_members.h"
#include "hosts/words.h"
#include "proc/signals.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace lockstep::jobs::on_hosts {
namespace {

using link::Stream;
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr std::uint32_t kChannel = 1;
constexpr std::size_t kMostAnswer = 1UL << 20;
constexpr std::size_t kMostWords = 2000;
constexpr std::size_t kMostAddresses = 16;
constexpr std::size_t kMostRead = 1000;  // of the addresses of a host
constexpr std::size_t kLongestAddress = 64;
constexpr std::size_t kLongestMachine = 64;
// A request must fit into the host's receive window: the host may read only the whole request.
constexpr std::size_t kMostRequest = link::kWindow / 2;

std::vector<std::string> texts_of(const Json& list) {
  return codec::texts_member({{"texts", list}}, "texts");
}

// All other hosts try all addresses, so a host must not name thousands. Keeps both families, the
// first of each, and the loopback only where there is room.
void keep_most_addresses(std::vector<std::string>& addresses) {
  if (addresses.size() <= kMostAddresses) return;
  if (addresses.size() > kMostRead) addresses.resize(kMostRead);
  const auto is_six = [](const std::string& text) { return text.find(':') != std::string::npos; };
  std::erase_if(addresses,
                [](const std::string& text) { return text.starts_with("127.") || text == "::1"; });
  while (addresses.size() > kMostAddresses) {
    const auto six = std::count_if(addresses.begin(), addresses.end(), is_six);
    const bool more_six = static_cast<std::size_t>(six) * 2 > addresses.size();
    const auto last = std::find_if(addresses.rbegin(), addresses.rend(),
                                   [&](const auto& text) { return is_six(text) == more_six; });
    addresses.erase(std::next(last).base());
  }
}

// Returns whether other hosts can try the place that a host names.
bool is_place(const Json& facts) {
  const auto has = [&](const char* name) { return facts.is_object() && facts.contains(name); };
  if (!has("port") || !facts["port"].is_number_unsigned()) return false;
  const auto port = facts["port"].get<std::uint64_t>();
  // Without a secret a refused connection would count as an answer.
  if (!has("secret") || !facts["secret"].is_string() || facts["secret"] == "") return false;
  const auto addresses = codec::texts_member(facts, "addresses");
  return port >= 1 && port <= 65535 &&
         std::all_of(addresses.begin(), addresses.end(),
                     [](const std::string& text) { return text.size() <= kLongestAddress; });
}

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
    if (!take_prepared(node, answer["prepared"]))
      return fail_with({Errc::corrupt, name + ": invalid answer", {}, 0});
  } else if (phase_ == Phase::trying && has("reached")) {
    take_reached(node, answer["reached"]);
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

// Returns whether the answer has all that a trial needs, if there is one.
bool StartCourse::take_prepared(std::size_t node, const Json& facts) {
  for (std::string& id : codec::texts_member(facts, "let_go"))
    let_go_.push_back(std::move(id));
  hosts_[node].machine = codec::text_member(facts, "machine").substr(0, kLongestMachine);
  hosts_[node].unable = printable(codec::text_member(facts, "unable"), kMostWords);
  if (!has_trial()) return true;
  if (!is_place(facts)) return false;
  TriedHost& tried = hosts_[node].tried;
  tried.addresses = codec::texts_member(facts, "addresses");
  const std::size_t named = tried.addresses.size();
  keep_most_addresses(tried.addresses);
  if (tried.addresses.size() < named)
    events_.warn(fmt::format("{}: the other hosts try {} of its {} addresses",
                             request_.hosts[node].name, tried.addresses.size(), named));
  tried.port = facts["port"].get<int>();
  hosts_[node].secret = facts["secret"].get<std::string>();
  return true;
}

// Adds an empty place for the host itself, which the host was not told to try.
void StartCourse::take_reached(std::size_t node, const Json& reached) {
  std::size_t next = 0;
  hosts_[node].tried.reached.clear();
  for (std::size_t to = 0; to < listed_; ++to) {
    std::vector<std::string> addresses;
    if (to != node && reached.is_array() && next < reached.size())
      addresses = texts_of(reached[next++]);
    hosts_[node].tried.reached.push_back(std::move(addresses));
  }
}

void StartCourse::say(std::size_t node, const OrderedJson& request) {
  std::string line = codec::print_json(request) + "\n";
  if (line.size() > kMostRequest)
    return fail_with({Errc::invalid_input, "the command and the environment are too large", {}, 0});
  hosts_[node].channel->write(std::move(line));
}

// Programs and packages are rarely the same for both kinds of hosts, so the user must ask for this.
Status StartCourse::check_machines() const {
  if (request_.mixed_hosts) return {};
  std::map<std::string, std::vector<std::string>> names;
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    if (!hosts_[i].machine.empty())  // an older binary does not tell
      names[hosts_[i].machine].push_back(request_.hosts[i].name);
  if (names.size() < 2) return {};
  std::vector<std::string> kinds;
  kinds.reserve(names.size());
  for (const auto& [machine, here] : names)
    kinds.push_back(fmt::format("{} ({})", printable(machine), hosts::names_text(here)));
  return fail(Errc::invalid_input, "the hosts have different processors: " + join(kinds, ", "),
              "choose hosts of one kind with --nodes, or give --mixed-hosts");
}

// Names all hosts with equal troubles in one line.
Status StartCourse::check_containers() const {
  std::map<std::string, std::vector<std::string>> names;
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    if (!hosts_[i].unable.empty()) names[hosts_[i].unable].push_back(request_.hosts[i].name);
  if (names.empty()) return {};
  std::vector<std::string> lines;
  lines.reserve(names.size());
  for (const auto& [why, here] : names)
    lines.push_back(fmt::format("{}: {}", hosts::names_text(here), why));
  return fail(Errc::invalid_input, join(lines, "; "),
              "nothing was started; install it there, or choose other hosts with --nodes");
}

void StartCourse::next_phase() {
  for (Host& host : hosts_)
    host.answered = false;
  if (phase_ == Phase::preparing)
    for (Status good : {check_machines(), check_containers()})
      if (!good) return fail_with(std::move(good).error());
  // A host may have several addresses, and a firewall or a private network may hide some from the
  // others.
  if (phase_ == Phase::preparing && has_trial()) return try_addresses();
  if (phase_ == Phase::trying) return end_trial();
  if (phase_ == Phase::going) {
    phase_ = Phase::over;
    return;
  }
  go();
}

// Every host tries all meeting places at once, and every host listens.
void StartCourse::try_addresses() {
  phase_ = Phase::trying;
  // Two nodes need the client's vote for a takeover: the second node cannot tell a dead host from a
  // cut network.
  listed_ = hosts_.size() > 2 || request_.client_votes
                ? std::min(request_.most_endpoints, hosts_.size())
                : 1;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    OrderedJson targets = OrderedJson::array();
    for (std::size_t to = 0; to < listed_; ++to)
      if (to != i)
        targets.push_back({{"addresses", hosts_[to].tried.addresses},
                           {"port", hosts_[to].tried.port},
                           {"secret", hosts_[to].secret}});
    say(i, {{"try", std::move(targets)}});
  }
}

// The hosts must free their ports before any node connects there for the job.
void StartCourse::end_trial() {
  std::vector<TriedHost> tried;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    tried.push_back(std::move(hosts_[i].tried));
    tried.back().name = request_.hosts[i].name;
  }
  auto places = meeting_places(tried, listed_);
  if (!places) return fail_with(std::move(places).error());
  if (!places->warning.empty()) events_.warn(places->warning);
  started_.endpoint = join(places->endpoints, ",");
  phase_ = Phase::closing;
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    say(i, {{"tried", true}});
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

}  // namespace lockstep::jobs::on_hosts
