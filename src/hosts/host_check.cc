#include "hosts/host_check.h"

#include "codec/json.h"
#include "host/facts_json.h"
#include "hosts/probe_course.h"
#include "hosts/wait_notice.h"
#include "io/open_files.h"

#include <fmt/core.h>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace lockstep::hosts {
namespace {

// No host has so many leftovers. A longer list comes from a broken or hostile host.
constexpr std::size_t kMostRepaired = 10'000;
// The same as in command_run.cc: the session's socket and pipes, and ssh's own during a log-in.
constexpr std::size_t kFilesOfAHost = 12;
// The limit for the answers of a host that has logged in. A dead network file system blocks
// statvfs() there without end.
constexpr std::chrono::seconds kPatience{60};
constexpr std::chrono::seconds kLookPause{1};

ProbeCourse::Now now() {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return {io::Clock::now(), std::chrono::duration<double, std::milli>(wall).count()};
}

// Drives the check of one host: the link, the clock and the time limit. Calls `done` once.
class Probe {
 public:
  Probe(io::Loop& loop, const CheckRequest& request, const HostPlace& place, HostCheck& check,
        std::function<void()> done);

  bool is_over() const { return told_; }
  const std::string& name() const { return check_.name; }
  std::string doing() const {
    return std::string(link_->ready() ? "its answer" : link_->doing()) + kCtrlCEnds;
  }

 private:
  void limit_answers();
  void take(const link::Frame& frame);
  void fail(std::string why);
  void tell_if_over();

  HostCheck& check_;
  std::function<void()> done_;
  bool told_ = false;
  io::Timer patience_;
  std::unique_ptr<HostLink> link_;
  std::optional<ProbeCourse> course_;
};

Probe::Probe(io::Loop& loop, const CheckRequest& request, const HostPlace& place, HostCheck& check,
             std::function<void()> done)
    : check_(check), done_(std::move(done)), patience_(loop) {
  check_.name = place.name;
  check_.where = place.here ? "local" : ssh::target_text(place.target);
  link_ = std::make_unique<HostLink>(
      loop,
      HostLink::Settings{.place = place,
                         .may_ask = request.hosts.size() == 1 && isatty(STDERR_FILENO) == 1},
      HostLink::Events{[this](const link::Frame& frame) { take(frame); },
                       [this](std::string why) { fail(std::move(why)); }});
  // The course sends through link_, so the link must exist first. Frames that are sent early wait
  // in the link.
  course_.emplace(
      request, check, [this](const link::Frame& frame) { link_->send(frame); }, now);
  course_->begin();
  limit_answers();
}

// A log-in may take long, so the limit starts once the link is ready. A host that has logged in and
// then stays silent hangs.
void Probe::limit_answers() {
  if (!link_->ready()) return patience_.start(kLookPause, [this] { limit_answers(); });
  patience_.start(kPatience, [this] {
    fail(fmt::format("{}: no answer within {} s; does a file system hang there?", check_.name,
                     kPatience.count()));
  });
}

void Probe::take(const link::Frame& frame) {
  course_->take(frame);
  tell_if_over();
}

void Probe::fail(std::string why) {
  course_->fail(std::move(why));
  tell_if_over();
}

void Probe::tell_if_over() {
  // A frame or a failure may follow the end of the course. Only the first end counts.
  if (!course_->is_over() || std::exchange(told_, true)) return;
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
  // A link that breaks during a write must end as a failed host, not kill the whole check.
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
