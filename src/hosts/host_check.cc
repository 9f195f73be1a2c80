#include "hosts/host_check.h"

#include "base/log.h"
#include "base/text.h"
#include "codec/json.h"
#include "host/facts_json.h"
#include "hosts/wait_notice.h"
#include "io/open_files.h"

#include <fmt/core.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

namespace lockstep::hosts {
namespace {

constexpr std::uint32_t kChannel = 1;
constexpr std::size_t kPings = 9;
constexpr std::size_t kClockReadings = 5;
constexpr std::size_t kMostAnswer = 1UL << 20;
constexpr std::size_t kMostRepaired = 10'000;
constexpr std::size_t kFilesOfAHost = 12;
constexpr std::chrono::seconds kPatience{60};  // for a host that was reached

double milliseconds(io::Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

double now_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// One host: pings, readings of its clock, then its facts. Calls done once.
class Probe {
 public:
  Probe(io::Loop& loop, const CheckRequest& request, const HostPlace& place, HostCheck& check,
        std::function<void()> done);

  bool is_over() const { return over_; }
  const std::string& name() const { return check_.name; }
  std::string doing() const {
    return std::string(link_->ready() ? "its answer" : link_->doing()) + kCtrlCEnds;
  }

 private:
  void ping();
  void on_frame(const link::Frame& frame);
  void on_pong();
  void start_facts();
  void ask_clock();
  void on_output(const link::Data& data);
  void on_clock(const std::string& line);
  void on_exit(const link::Exit& exit);
  void end(std::string error);

  const CheckRequest& request_;
  HostCheck& check_;
  std::function<void()> done_;
  bool reached_ = false;
  std::vector<double> round_trips_;
  io::TimePoint asked_;
  double asked_at_ms_ = 0;
  std::size_t readings_ = 0;
  double best_round_trip_ = 0;
  std::string output_;
  bool over_ = false;
  io::Timer patience_;
  std::unique_ptr<HostLink> link_;
};

Probe::Probe(io::Loop& loop, const CheckRequest& request, const HostPlace& place, HostCheck& check,
             std::function<void()> done)
    : request_(request), check_(check), done_(std::move(done)), patience_(loop) {
  check_.name = place.name;
  check_.where = place.here ? "local" : ssh::target_text(place.target);
  link_ = std::make_unique<HostLink>(
      loop,
      HostLink::Settings{.place = place,
                         .may_ask = request.hosts.size() == 1 && isatty(STDERR_FILENO) == 1},
      HostLink::Events{[this](const link::Frame& frame) { on_frame(frame); },
                       [this](std::string why) { end(std::move(why)); }});
  ping();
}

void Probe::ping() {
  asked_ = io::Clock::now();
  link_->send(link::Ping{round_trips_.size()});
}

void Probe::on_frame(const link::Frame& frame) {
  if (over_) return;
  if (std::holds_alternative<link::Pong>(frame)) return on_pong();
  if (std::holds_alternative<link::Started>(frame)) return ask_clock();
  if (const auto* data = std::get_if<link::Data>(&frame)) return on_output(*data);
  if (const auto* exit = std::get_if<link::Exit>(&frame)) return on_exit(*exit);
  if (const auto* refused = std::get_if<link::Refused>(&frame))
    return end(fmt::format("{}: {}", check_.name, refused->why));
}

// The first answer took as long as the log-in did.
void Probe::on_pong() {
  if (!std::exchange(reached_, true)) {
    patience_.start(kPatience, [this] {
      end(fmt::format("{}: no answer within {} s; does a file system hang there?", check_.name,
                      kPatience.count()));
    });
    return ping();
  }
  round_trips_.push_back(milliseconds(io::Clock::now() - asked_));
  if (round_trips_.size() < kPings) return ping();
  std::sort(round_trips_.begin(), round_trips_.end());
  check_.latency_ms = round_trips_[kPings / 2];
  start_facts();
}

void Probe::start_facts() {
  std::vector<std::string> argv = {"host-facts"};
  if (request_.repair) argv.emplace_back("--repair");
  if (!request_.project.empty()) argv.insert(argv.end(), {"--project", request_.project});
  link_->send(
      link::Start{.channel = kChannel, .argv = std::move(argv), .input = true, .own = true});
}

void Probe::ask_clock() {
  asked_ = io::Clock::now();
  asked_at_ms_ = now_ms();
  link_->send(link::Data{kChannel, link::Stream::in, "\n"});
}

void Probe::on_output(const link::Data& data) {
  link_->send(link::Credit{kChannel, data.stream, static_cast<std::uint32_t>(data.bytes.size())});
  if (output_.size() + data.bytes.size() > kMostAnswer)
    return end(fmt::format("{}: its answer is too long", check_.name));
  if (data.stream == link::Stream::err)
    return log::warning("{}: {}", check_.name, printable(strip(data.bytes)));
  output_ += data.bytes;
  const std::size_t line_end = output_.find('\n');
  if (readings_ == kClockReadings || line_end == std::string::npos) return;
  on_clock(output_.substr(0, line_end));
  output_.erase(0, line_end + 1);
}

// Of several readings the one that took least is the best.
void Probe::on_clock(const std::string& line) {
  const double round_trip = milliseconds(io::Clock::now() - asked_);
  const auto there_ns = parse_int(line);
  if (!there_ns) return end(fmt::format("{}: it says no time: {}", check_.name, printable(line)));
  if (readings_ == 0 || round_trip < best_round_trip_) {
    best_round_trip_ = round_trip;
    check_.clock_error_ms = round_trip / 2;
    check_.clock_ahead_ms = clock_ahead_ms(*there_ns, asked_at_ms_, round_trip);
  }
  if (++readings_ < kClockReadings) return ask_clock();
  link_->send(link::Eof{kChannel, link::Stream::in});
}

void Probe::on_exit(const link::Exit& exit) {
  if (exit.code != 0 || exit.signal != 0 || !take_answer(output_, check_))
    return end(fmt::format("{}: its binary could not tell its facts (code {}, signal {})",
                           check_.name, exit.code, exit.signal));
  end({});
}

void Probe::end(std::string error) {
  if (std::exchange(over_, true)) return;
  check_.error = std::move(error);
  patience_.cancel();
  done_();
}

}  // namespace

double clock_ahead_ms(std::int64_t there_ns, double asked_at_ms, double round_trip_ms) {
  return static_cast<double>(there_ns) / 1e6 - (asked_at_ms + round_trip_ms / 2);
}

bool take_answer(std::string_view text, HostCheck& check) {
  const auto json = codec::parse_json(text);
  if (!json.is_object() || !json.contains("facts") || !json.contains("repaired")) return false;
  auto facts = host::parse_facts(json["facts"]);
  const auto& repaired = json["repaired"];
  if (!facts || !repaired.is_array() || repaired.size() > kMostRepaired) return false;
  for (const auto& each : repaired) {
    if (!each.is_string()) return false;
    check.repaired.push_back(each.get<std::string>());
  }
  check.facts = std::move(*facts);
  return true;
}

Result<std::vector<HostCheck>> check_hosts(const CheckRequest& request) {
  LOCKSTEP_TRY(io::check_open_files(kFilesOfAHost * (request.hosts.size() + 1)));
  io::raise_open_files_limit();
  signal(SIGPIPE, SIG_IGN);
  io::Loop loop;
  std::vector<HostCheck> checks(request.hosts.size());
  std::vector<std::unique_ptr<Probe>> probes;
  std::size_t left = checks.size();
  for (std::size_t i = 0; i < checks.size(); ++i)
    probes.push_back(std::make_unique<Probe>(loop, request, request.hosts[i], checks[i], [&] {
      if (--left == 0) loop.stop();
    }));
  WaitNotice notice(loop, [&] {
    WaitNotice::Waiting waiting;
    for (const auto& probe : probes)
      if (!probe->is_over()) waiting.emplace_back(probe->name(), probe->doing());
    return waiting;
  });
  notice.start();
  loop.run();
  return checks;
}

}  // namespace lockstep::hosts
