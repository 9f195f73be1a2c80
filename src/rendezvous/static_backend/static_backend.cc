#include "rendezvous/static_backend/static_backend.h"

#include "base/id.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::rendezvous::static_backend {
namespace {

// A host's last message may still be on its way on another connection when the store is lost.
constexpr std::chrono::milliseconds kLastWords{20};
// How long to wait for an answer of a store that may be gone.
constexpr std::chrono::seconds kGoodbye{1};
// Every client that knows its world adds itself to this key. The count must survive a new round.
constexpr std::string_view kInit = "init/";

StaticRules rules_of(const StaticSettings& settings) {
  return {.node_rank = settings.node_rank,
          .host = settings.offer.host,
          .store = fmt::format("{}:{}", settings.master.addr, settings.master.port),
          .heartbeat_interval = settings.heartbeat_interval,
          .heartbeat_attempts = settings.heartbeat_attempts,
          .timeout = settings.timeout,
          .close_timeout = settings.close_timeout};
}

}  // namespace

StaticBackend::StaticBackend(io::Loop& loop, StaticSettings settings)
    : settings_(std::move(settings)),
      names_(settings_.run_id),
      // A claim must name one process: a restarted agent on the same host is another claimant.
      identity_(random_uuid4()),
      member_(rules_of(settings_)),
      store_(loop, settings_, names_),
      shared_(loop,
              {.run_id = settings_.run_id,
               .offer = settings_.offer,
               .nodes_asked = {},
               .read_timeout = settings_.timeout,
               .exit_barrier_timeout = settings_.exit_barrier_timeout},
              {.interrupted =
                   [this](const Interruption& what) {
                     if (const auto tell = on_interruption_) tell(what);
                   },
               .join_again = [this](KeyValueRound::Join done) { join(std::move(done)); },
               .told = [this](const FailureRecord& record) { member_.told(record); },
               .heard =
                   [this](int from, const std::string& text) {
                     if (const auto tell = on_news_) tell(from, text);
                   }}),
      turn_(loop),
      heart_(loop),
      loss_(loop),
      seek_(loop) {
  // A full barrier is not yet a good end: a failure may have been recorded first.
  shared_.on_barrier([this](const Result<void>& all) { run(member_.barrier(all)); });
}

StaticBackend::~StaticBackend() = default;

StaticMember::Around StaticBackend::around() const {
  const RoundBoard* board = shared_.board();
  return {.round = shared_.phase(),
          .awaits_replacement = shared_.awaits_replacement(),
          .alarmed = board != nullptr && board->alarmed()};
}

StaticMember::Counts StaticBackend::counts() {
  return [this](int node_rank, std::int64_t since) {
    // The host looks into its own store, which needs no request.
    return store_.server().engine().get("/" + names_.alive(node_rank, since));
  };
}

// --- into a round ---

void StaticBackend::open(Done<void> done) {
  open_done_ = std::move(done);
  // A connection that closes is not silent: the host's kernel has answered.
  store_.open([this](auto running) { opened(std::move(running)); },
              [this](const Error& error) { run(member_.lose(error, false, io::Clock::now())); });
}

void StaticBackend::opened(Result<std::optional<std::int64_t>> running) {
  if (!running) {
    // A host with guests must first tell the guests that no round comes.
    const auto tell = [this, error = running.error()] {
      std::exchange(open_done_, nullptr)(tl::make_unexpected(error));
    };
    if (!store_.serves()) return tell();
    parted_ = tell;
    return run(member_.give_up_opening(running.error().message, io::Clock::now()));
  }
  member_.opened(*running);
  if (!*running) return std::exchange(open_done_, nullptr)({});
  // Compare what this node launches with the running round, which may be another job's.
  compare_with_round(store_.keys(), names_.round_prefix(**running, true), shared_.own_info(),
                     settings_.run_id,
                     [this](const Status& same) { std::exchange(open_done_, nullptr)(same); });
}

void StaticBackend::join(Done<std::optional<Round>> done) {
  shared_.reset();
  over_.reset();
  over_round_ = -1;
  found_.reset();
  turned_away_.reset();
  // The last round's barrier may still block the connection for waits.
  store_.keys().forget_waits();
  join_ = std::move(done);
  const auto steps = member_.join(io::Clock::now());
  if (!member_.lost()) return run(steps);
  // The caller expects no callback inside join().
  turn_.start({}, [this, steps] { run(steps); });
}

void StaticBackend::run(const StaticSteps& steps) {
  const auto witness = calls_.witness();
  for (const StaticStep& step : steps) {
    if (witness.gone()) return;
    carry_out(step);
  }
}

void StaticBackend::carry_out(const StaticStep& step) {
  switch (step.kind) {
    case Kind::open_round:
      store_.server().set("/" + names_.open(step.round), encode_open(step.free));
      return;
    case Kind::find_round:
      return find_round(step.round);
    case Kind::claim:
      return claim(step.round);
    case Kind::agree:
      return agree(step.round);
    case Kind::start_over:
      return shared_.come_to_nothing(step.text);
    case Kind::fail_join:
      return fail_join(*step.error);
    case Kind::say_over:
    // One key serves both: the text says whether another round follows.
    case Kind::say_void:
      store_.server().set("/" + names_.over(step.round),
                          encode_over({step.text, step.kind == Kind::say_void}));
      return;
    case Kind::beat:
      return beat();
    case Kind::end_beats:
      return heart_.cancel();
    case Kind::say_left:
      store_.keys().set(names_.alive(settings_.node_rank, member_.since()), kLeft, nullptr);
      return;
    default:
      carry_out_in_round(step);
  }
}

void StaticBackend::carry_out_in_round(const StaticStep& step) {
  const auto record = [&](const std::string& text, bool final, int restarts) {
    return FailureRecord{step.node, text, final, restarts, true};
  };
  switch (step.kind) {
    case Kind::replace: {
      // First the count: the record must carry the new number of restarts.
      const std::string why = shared_.await_replacement(step.text, settings_.timeout);
      shared_.tell(record(why, false, shared_.restarts()));
      return shared_.interrupt(Interruption::Kind::rejoin, why);
    }
    case Kind::end_round:
      shared_.tell(record(step.text, true, shared_.restarts()));
      return shared_.interrupt(Interruption::Kind::end, step.text);
    case Kind::tell_gone:
      return shared_.tell(record(step.text, step.final, shared_.restarts() + (step.final ? 0 : 1)));
    case Kind::interrupt:
      return shared_.interrupt(Interruption::Kind::end, step.text);
    case Kind::hear_out:
      shared_.lose_store();
      return loss_.start(kLastWords, [this] { run(member_.last_words_over(around())); });
    case Kind::say_farewell:
      return say_farewell(record(step.text, true, shared_.restarts()));
    case Kind::conclude:
      return conclude();
    case Kind::end_barrier:
      return shared_.end_barrier(step.error ? Result<void>(tl::make_unexpected(*step.error))
                                            : Result<void>());
    case Kind::ask_and_leave:
      return ask_and_leave();
    case Kind::stay:
      return stay();
    default:
      return part();
  }
}

// Waits until node rank 0 opens the round, after the end of the previous one.
void StaticBackend::find_round(std::int64_t round) {
  await_over(round);
  seek_.start(std::max<io::Duration>(*member_.gives_up_at(shared_.phase()) - io::Clock::now(), {}),
              [this] { run(member_.out_of_time()); });
  found_ = store_.keys().watch(names_.open(round), [this](const std::string& text) {
    run(member_.round_found(decode_open(text)));
  });
}

void StaticBackend::claim(std::int64_t round) {
  store_.keys().put_if_absent(names_.claim(round, settings_.node_rank), identity_,
                              [this, round](const Result<std::string>& first) {
                                // An answer for an earlier round may come late.
                                if (first && member_.round() == round)
                                  run(member_.claimed(*first == identity_));
                              });
}

void StaticBackend::await_over(std::int64_t round) {
  if (hosts() || over_round_ == round) return;
  over_round_ = round;
  over_ = store_.keys().watch(names_.over(round), [this](const std::string& text) {
    run(member_.over_told(decode_over(text)));
  });
}

void StaticBackend::agree(std::int64_t round) {
  seek_.cancel();
  found_.reset();
  await_over(round);
  RankExchange exchange{.round = {.round = round,
                                  .rank = static_cast<std::size_t>(settings_.node_rank),
                                  .world = static_cast<std::size_t>(settings_.nodes),
                                  .nodes = {},
                                  .prefix = names_.round_prefix(round, member_.all_ours())},
                        .own = {},
                        .offered = {},
                        .known_store = store_.place()};
  if (hosts() && round > 0 && member_.all_ours())
    exchange.all_are_there = [this] {
      member_.all_are_there();
      // All workers have ended. Remove their keys, which must not mix with those of the next round.
      const std::array<std::string, 2> kept = {"/" + settings_.run_id + "/", std::string(kInit)};
      store_.server().purge_except(kept);
    };
  shared_.agree(store_.keys(), std::move(exchange), std::exchange(join_, nullptr),
                [this](const Result<Assignment>& made) {
                  if (made) return begin_round(*made);
                  // The message with the host's reason may still be on its way.
                  loss_.start(hosts() ? std::chrono::milliseconds(0) : kLastWords,
                              [this, error = made.error()] { run(member_.ranks_failed(error)); });
                });
}

void StaticBackend::begin_round(const Assignment& made) {
  over_.reset();
  const std::int64_t round = member_.round();
  const auto steps = member_.began(made, io::Clock::now());
  if (hosts() && member_.all_ours()) {
    store_.server().set("/" + names_.round(), std::to_string(round));
    turned_away_ = watch_turned_away(store_.keys(), names_.round_prefix(round, true));
  }
  const auto witness = calls_.witness();
  run(steps);
  // The steps may have ended this backend.
  if (witness.gone()) return;
  shared_.begin(made, {.ours = made.ours,
                       .board_prefix = names_.board_prefix(round),
                       .together = member_.all_ours()});
}

void StaticBackend::fail_join(const Error& error) {
  over_.reset();
  found_.reset();
  seek_.cancel();
  loss_.cancel();
  if (const auto join = join_ ? std::exchange(join_, nullptr) : shared_.take_join())
    join(tl::make_unexpected(error));
}

// --- in a round ---

void StaticBackend::beat() {
  // Start the timer first: a lost store never answers the addition below.
  heart_.start(settings_.heartbeat_interval,
               [this] { run(member_.beat(around(), counts(), io::Clock::now())); });
  store_.keys().add(names_.alive(settings_.node_rank, member_.since()), 1,
                    [this](const Result<std::int64_t>& count) {
                      if (count) member_.beat_answered();
                    });
}

void StaticBackend::tell_failure(const std::string& line, bool final) {
  shared_.tell_failure(line, final);
}

void StaticBackend::tell_stop() {
  // torchrun's agents do not read records, and a lost store takes none.
  if (!member_.all_ours() || member_.lost()) return;
  const auto before = around();
  run(member_.tell_stop(before, shared_.stop()));
}

void StaticBackend::finish(Done<void> done) {
  if (!member_.lost()) shared_.finish(std::move(done));
  // Else last_words_over() interrupts the round.
}

void StaticBackend::conclude() {
  shared_.board()->conclude([this](const std::optional<FailureRecord>& failure) {
    if (failure) return shared_.hear(*failure);
    run(member_.concluded());
  });
}

void StaticBackend::exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                                     std::function<void(std::vector<NodeReport>)> done) {
  shared_.exchange_reports(own, timeout, std::move(done));
}

// Tells the store that this node gives up, and reads the decision. A host that wakes up in time
// answers, and an earlier decision for a good end holds for both nodes.
void StaticBackend::say_farewell(const FailureRecord& record) {
  shared_.tell(record, [this](const Result<std::string>& first) {
    run(member_.farewell_said(first && !decode_failure(*first)));
  });
  turn_.start(kGoodbye, [this] { run(member_.farewell_said(false)); });
}

// --- out of it ---

void StaticBackend::leave(Departure how, Done<void> done) {
  const auto before = around();
  // No interruption may arrive once the agent leaves.
  const bool was_active = shared_.stop();
  parted_ = [done = std::move(done)] { done({}); };
  const auto steps = member_.leave(how, before, was_active, io::Clock::now());
  shared_.take_join();
  join_ = nullptr;
  over_.reset();
  found_.reset();
  turned_away_.reset();
  seek_.cancel();
  run(steps);
}

void StaticBackend::ask_and_leave() {
  const auto answered = [this] { run(member_.answered()); };
  // The store may be gone. Leave after a second without an answer.
  turn_.start(kGoodbye, answered);
  store_.keys().probe(names_.round(), [answered](const auto&) { answered(); });
}

void StaticBackend::stay() {
  shared_.reset();
  turned_away_.reset();
  turn_.start({}, [this] {
    store_.await_guests(
        {.until = member_.stay_until(),
         .look = [this] { member_.look(counts()); },
         .all_gone = [this] { return member_.all_ours() && member_.pulses().all_gone(); },
         .done = [this] { part(); }});
  });
}

void StaticBackend::part() {
  shared_.reset();
  turn_.start({}, [this] {
    if (const auto done = std::exchange(parted_, nullptr)) done();
  });
}

// --- for people ---

std::optional<io::TimePoint> StaticBackend::gives_up_at() const {
  return store_.opened() ? member_.gives_up_at(shared_.phase()) : store_.deadline();
}

std::string StaticBackend::waiting_for() const {
  if (shared_.phase() == KeyValueRound::Phase::barrier)
    return "the workers of this node have ended well; other nodes still run";
  const std::string free = free_places_text(member_.free());
  if (hosts())
    return (store_.opened() ? "the other nodes to join again" : store_.waiting_for()) + free +
           store_.remarks();
  if (!store_.opened()) return store_.waiting_for();
  if (!member_.has_place())
    return fmt::format(
        "the job at {} has a node with node rank {}; this node replaces that node if it is lost",
        store_.at(), settings_.node_rank);
  return fmt::format("the other nodes at {}", store_.at()) + free;
}

}  // namespace lockstep::rendezvous::static_backend
