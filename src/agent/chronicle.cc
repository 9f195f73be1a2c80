// Notes the events of a job.
#include "agent/chronicle.h"

#include "base/clock_ms.h"
#include "base/id.h"
#include "base/log.h"
#include "base/text.h"
#include "looks/hang_words.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::agent {
namespace {

using looks::VerdictState;
using status::Phase;

// The share of the living ranks that are inside a data loader's frames.
double input_share(const looks::Fold& fold) {
  const std::size_t all = looks::count_alive(fold);
  std::size_t loading = 0;
  for (const looks::Group& group : fold.groups)
    if (group.activity.doing == looks::Doing::data_loader) loading += looks::count_of(group);
  return all == 0 ? 0 : static_cast<double>(loading) / static_cast<double>(all);
}

Phase phase_of(VerdictState state) {
  switch (state) {
    case VerdictState::starting:
      return Phase::start;
    case VerdictState::training:
    case VerdictState::ended:
      return Phase::training;
    case VerdictState::waiting:
    case VerdictState::quiet:
    case VerdictState::hung:
    case VerdictState::stopped:
      return Phase::waiting;
  }
  return Phase::training;
}

std::optional<status::JobEventKind> kind_of(VerdictState state) {
  switch (state) {
    case VerdictState::training:
      return status::JobEventKind::training;
    case VerdictState::waiting:
    case VerdictState::stopped:
      return status::JobEventKind::waiting;
    case VerdictState::quiet:
      return status::JobEventKind::quiet;
    case VerdictState::hung:
      return status::JobEventKind::hung;
    case VerdictState::starting:
    case VerdictState::ended:
      break;
  }
  return std::nullopt;
}

// "train.py" of "src/train.py".
std::string name_of(const std::string& entrypoint) {
  return entrypoint.substr(entrypoint.rfind('/') + 1);
}

// The number that a request asks after: "after=3". Without one, all events are wanted.
std::int64_t after_of(std::string_view query) {
  if (!query.starts_with("after=")) return 0;
  const auto after = parse_int(query.substr(6));
  return after && *after > 0 ? *after : 0;
}

}  // namespace

Chronicle::Chronicle(io::Loop& loop, const Node& node, proc::Containment& containment,
                     std::function<void()> reaped)
    : node_(node),
      agent_(random_suffix(8)),
      goodput_(io::Clock::now()),
      notifier_(loop, node, containment, std::move(reaped)) {}

Status Chronicle::open() {
  if (node_.config.events.file) {
    LOCKSTEP_TRY_ASSIGN(file_, EventFile::open(*node_.config.events.file));
  }
  note(Kind::started, "lockstep run " + node_.config.entrypoint);
  return {};
}

void Chronicle::note(Kind kind, const std::string& words, std::optional<int> rank,
                     Numbers numbers) {
  status::JobEvent event{.time_ms = unix_ms(),
                         .kind = kind,
                         .agent = agent_,
                         .attempt = attempt_,
                         .node = node_.name,
                         .rank = rank,
                         .words = words,
                         .numbers = std::move(numbers)};
  event.number = ring_.add(event);
  if (file_) file_->write(ring_.newest());
  // One node sends the notices of a job, or a person would get one from each node.
  if (!node_.config.events.notifies() || group_rank_ != 0) return;
  if (const auto what = choice_.what(event))
    notifier_.tell({.what = *what, .job = name_of(node_.config.entrypoint), .event = event});
}

// --- what happens ---

void Chronicle::rendezvous_begun() {
  goodput_.enter(Phase::rendezvous, io::Clock::now());
  note(Kind::rendezvous_begun);
}

void Chronicle::round_formed(const rendezvous::Round& round) {
  group_rank_ = round.group_rank;
  note(Kind::round_formed,
       fmt::format("{} rank{} on {} node{}", round.world_size, round.world_size == 1 ? "" : "s",
                   round.group_world_size, round.group_world_size == 1 ? "" : "s"),
       {},
       {{"round", static_cast<double>(round.number)},
        {"world", round.world_size},
        {"nodes", round.group_world_size},
        {"group_rank", round.group_rank}});
}

void Chronicle::attempt_started(const rendezvous::Round& round, std::int64_t attempt) {
  goodput_.enter(Phase::start, io::Clock::now());
  attempt_ = attempt;
  stopping_ = false;
  printed_.clear();
  state_.reset();
  alarm_ = false;
  const int ranks = node_.config.nproc;
  const int last = round.base_rank + ranks - 1;
  note(Kind::ranks_started,
       ranks == 1 ? fmt::format("rank {} of {}", last, round.world_size)
                  : fmt::format("ranks {}-{} of {}", round.base_rank, last, round.world_size),
       {},
       {{"first_rank", round.base_rank},
        {"ranks", ranks},
        {"world", round.world_size},
        {"restarts", round.restarts}});
}

void Chronicle::rank_ended(int rank, int exit_code) {
  note(Kind::rank_ended, {}, rank, {{"exit_code", exit_code}});
}

void Chronicle::rank_failed(int rank, int exit_code, const std::string& why) {
  note(Kind::failed, why, rank, {{"exit_code", exit_code}});
}

void Chronicle::gpu_fault(const std::string& words) {
  log::warning("{}", words);
  note(Kind::gpu_fault, words);
}

void Chronicle::straggler(const looks::WorldSlow& slow) {
  slow_.begins(slow.rank, slow.name, io::Clock::now());
  note(Kind::straggler, slow.words, slow.rank);
}

void Chronicle::straggler_over(int rank, const std::string& words) {
  slow_.ends(io::Clock::now());
  note(Kind::straggler_over, words, rank);
}

void Chronicle::again(bool counted, const std::string& why) {
  note(counted ? Kind::restarting : Kind::nodes_changed, why);
}

void Chronicle::stopping(const std::string& why) {
  slow_.ends(io::Clock::now());
  if (std::exchange(stopping_, true)) return;
  goodput_.enter(Phase::stopping, io::Clock::now());
  note(Kind::stopping, why);
}

void Chronicle::workers_ended() {
  stopping_ = true;
  slow_.ends(io::Clock::now());
  goodput_.enter(Phase::down, io::Clock::now());
  note(Kind::workers_ended);
}

void Chronicle::ended(const std::string& words) {
  goodput_.enter(Phase::down, io::Clock::now());
  note(Kind::ended, words, {}, {{"goodput", goodput_.share()}});
}

void Chronicle::on_look(const looks::Fold& fold, const looks::Verdict& verdict,
                        const std::vector<int>& printed, const looks::Redo& redo) {
  if (stopping_) return;
  for (const int rank : printed)
    if (printed_.insert(rank).second) note(Kind::first_output, {}, rank);
  Phase phase = phase_of(verdict.state);
  if (phase == Phase::training && redo.redoes) phase = Phase::redone;
  goodput_.know_steps(redo.guessed);
  goodput_.look(phase, input_share(fold), io::Clock::now());
  note_state(verdict);
}

void Chronicle::note_state(const looks::Verdict& verdict) {
  if (alarm_ && !verdict.alarm) note(Kind::hang_over, looks::verdict_words(verdict));
  alarm_ = verdict.alarm;
  if (state_ == verdict.state) return;
  state_ = verdict.state;
  if (const auto kind = kind_of(verdict.state))
    note(*kind, *kind == Kind::training ? "" : looks::verdict_words(verdict));
}

http::Response Chronicle::answer(const http::Request& request) {
  return {200, "application/json", ring_.answer(agent_, node_.name, after_of(request.query))};
}

}  // namespace lockstep::agent
