// Asks rented machines about their leases, all at the same time: status, keep, hold.
#include "base/clock_ms.h"
#include "hosts/small_command.h"
#include "hosts/wait_notice.h"
#include "io/open_files.h"
#include "proc/signal_watch.h"
#include "proc/signals.h"
#include "rent/lease_answer.h"
#include "rent/rented_host.h"

#include <fmt/core.h>

#include <signal.h>

#include <chrono>
#include <memory>
#include <utility>

namespace lockstep::rent {
namespace {

constexpr std::size_t kFilesOfAnAsk = 12;
constexpr std::uint32_t kAskChannel = 1;
constexpr std::chrono::seconds kAskPatience{60};

class LeaseAsk {
 public:
  LeaseAsk(io::Loop& loop, const hosts::HostPlace& place, const std::vector<std::string>& words,
           const std::string& input, LeaseAnswer& answer, std::function<void()> done)
      : loop_(loop), name_(place.name), answer_(answer), done_(std::move(done)), patience_(loop) {
    // `keep` may restart the lease's process there, which must outlive the connection.
    link_ = std::make_unique<hosts::HostLink>(
        loop, hosts::HostLink::Settings{.place = place, .commands = ssh::Commands::may_outlive_us},
        hosts::HostLink::Events{[this](const link::Frame& frame) { command_->on_frame(frame); },
                                [this](std::string why) { end(std::move(why)); }});
    command_ = std::make_unique<hosts::SmallCommand>(
        kAskChannel, [this](const link::Frame& frame) { link_->send(frame); },
        [this](Result<std::string> said) { on_answer(std::move(said)); });
    command_->begin(words, input);
    patience_.start(kAskPatience, [this] {
      end(fmt::format("{}: no answer within {} s", name_, kAskPatience.count()));
    });
  }

  bool is_over() const { return over_; }
  const std::string& name() const { return name_; }
  std::string doing() const {
    return std::string(link_->ready() ? "its answer" : link_->doing()) + hosts::kCtrlCEnds;
  }

 private:
  void on_answer(Result<std::string> said) {
    if (!said) return end(name_ + ": " + said.error().message);
    auto state = read_lease_state(*said);
    if (!state) return end(name_ + ": " + state.error().message);
    answer_.state = std::move(*state);
    end({});
  }

  void end(std::string error) {
    // The timeout, a broken link and the answer may race: the first one counts.
    if (std::exchange(over_, true)) return;
    answer_.error = std::move(error);
    patience_.cancel();
    // Destroy the link from the loop: the link may be the caller.
    loop_.post(calls_([this] {
      link_.reset();
      done_();
    }));
  }

  io::Loop& loop_;
  std::string name_;
  LeaseAnswer& answer_;
  std::function<void()> done_;
  bool over_ = false;
  io::Timer patience_;
  std::unique_ptr<hosts::SmallCommand> command_;
  std::unique_ptr<hosts::HostLink> link_;
  CallbackScope calls_;
};

Result<std::vector<LeaseAnswer>> ask_all(const std::vector<hosts::HostPlace>& places,
                                         const std::vector<std::string>& words,
                                         const std::string& input) {
  // Each ssh connection takes several descriptors: refuse now, not in the middle.
  LOCKSTEP_TRY(io::check_open_files(kFilesOfAnAsk * (places.size() + 1)));
  io::raise_open_files_limit();
  // A lost machine must fail a write, and not end this process.
  signal(SIGPIPE, SIG_IGN);
  // Ctrl-C goes through the loop, so that all links are closed in order.
  proc::block(proc::handled_signals());
  io::Loop loop;
  int stopped_by = 0;
  LOCKSTEP_TRY_ASSIGN(const auto signals, proc::SignalWatch::open(loop, [&](int number) {
                        if (number == SIGCHLD || number == SIGWINCH || number == SIGCONT) return;
                        stopped_by = number;
                        loop.stop();
                      }));
  std::vector<LeaseAnswer> answers(places.size());
  std::vector<std::unique_ptr<LeaseAsk>> asks;
  std::size_t left = places.size();
  for (std::size_t i = 0; i < places.size(); ++i)
    asks.push_back(std::make_unique<LeaseAsk>(loop, places[i], words, input, answers[i], [&] {
      if (--left == 0) loop.stop();
    }));
  hosts::WaitNotice notice(loop, [&] {
    hosts::WaitNotice::Waiting waiting;
    for (const auto& ask : asks)
      if (!ask->is_over()) waiting.emplace_back(ask->name(), ask->doing());
    return waiting;
  });
  notice.start();
  // Without machines nothing would stop the loop.
  if (left > 0) loop.run();
  if (stopped_by != 0)
    return Failure(Error{
        Errc::canceled, proc::signal_name(stopped_by) + " while asking machines", {}, stopped_by});
  return answers;
}

}  // namespace

Result<std::vector<LeaseAnswer>> ask_leases(const std::vector<hosts::HostPlace>& places) {
  return ask_all(places, {"host-lease", "status"}, {});
}

Result<std::vector<LeaseAnswer>> keep_leases(const std::vector<hosts::HostPlace>& places,
                                             std::int64_t ends_ms, std::int64_t idle_s) {
  const machine::LeaseTerms terms{.ends_ms = ends_ms, .now_ms = unix_ms(), .idle_s = idle_s};
  return ask_all(places, {"host-lease", "keep"}, codec::print_json(to_json(terms)));
}

Result<std::vector<LeaseAnswer>> hold_leases(const std::vector<hosts::HostPlace>& places,
                                             std::int64_t seconds) {
  return ask_all(places, {"host-lease", "hold", std::to_string(seconds)}, {});
}

}  // namespace lockstep::rent
