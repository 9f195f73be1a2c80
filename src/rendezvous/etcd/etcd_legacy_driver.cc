// Opening, joining and closing; etcd_legacy_watch.cc watches the running round.
#include "rendezvous/etcd/etcd_legacy_driver.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <random>
#include <utility>

namespace lockstep::rendezvous::etcd {
namespace {

using Kind = LegacyStep::Kind;
using std::chrono::milliseconds;

// Bounded, because an event may be missed and a member may be cut off.
constexpr milliseconds kLongestPoll{10'000};
constexpr milliseconds kPause{500};
// See check().
constexpr milliseconds kNotice{3000};
// A larger counter was not written by any agent.
constexpr std::int64_t kMostRounds = 1'000'000'000'000'000;

// Spreads the retries of two nodes that write at the same time.
milliseconds short_pause() {
  static std::minstd_rand random{std::random_device{}()};
  return milliseconds(1 + random() % 30);
}

// --rdzv-conf etcd_prefix may have slashes or none.
std::string normal(std::string prefix) {
  if (!prefix.starts_with('/')) prefix.insert(0, "/");
  while (prefix.ends_with('/'))
    prefix.pop_back();
  return prefix;
}

std::string seconds_text(std::chrono::seconds time) {
  return std::to_string(time.count());
}

}  // namespace

EtcdLegacyDriver::EtcdLegacyDriver(EtcdTransport& etcd, LegacySettings settings)
    : etcd_(etcd),
      folder_(fmt::format("{}/run_{}", normal(settings.prefix), settings.run_id)),
      member_(settings.rules, settings.self, folder_),
      settings_(std::move(settings)),
      calls_(etcd),
      turn_(etcd.loop()),
      lease_timer_(etcd.loop()),
      run_timer_(etcd.loop()) {}

void EtcdLegacyDriver::ask(http::Call call, Twice twice, Ms timeout, Answered done) {
  EtcdTransport::Request made;
  // The caller knows whether a repetition is harmless. A lost answer to a compare-and-swap is not:
  // the repetition would fail and look like a defeat.
  made.call = std::move(call);
  made.repeatable = twice == Twice::harmless;
  made.timeout = timeout;
  calls_.ask(std::move(made), std::move(done));
}

void EtcdLegacyDriver::request(http::Call call, Twice twice, Replied done, Ms timeout) {
  ask(std::move(call), twice, timeout, [done = std::move(done)](const Result<http::Answer>& got) {
    done(got ? parse_v2_reply(*got) : tl::make_unexpected(got.error()));
  });
}

void EtcdLegacyDriver::put(const std::string& at, const V2Form& form, Twice twice, Replied done) {
  request(v2_put(at, form), twice, std::move(done));
}

void EtcdLegacyDriver::put_state(const LegacyState& state, std::optional<std::chrono::seconds> ttl,
                                 V2Form form, Replied done) {
  form.emplace_back("value", encode_legacy_state(state));
  if (ttl) form.emplace_back("ttl", seconds_text(*ttl));
  put(key("active_version"), form, Twice::harmful, std::move(done));
}

void EtcdLegacyDriver::open(const Done<void>& done) {
  make_folders(0, done);
}

// Creates the folders that do not exist yet. The run's folder expires unless agents refresh it.
void EtcdLegacyDriver::make_folders(std::size_t next, const Done<void>& done) {
  const std::vector<std::pair<std::string, V2Form>> all = {
      {folder_, {{"dir", "true"}, {"prevExist", "false"}, {"ttl", seconds_text(kLegacyRunTtl)}}},
      {folder_ + "/rdzv", {{"dir", "true"}, {"prevExist", "false"}}},
      {key("version_counter"), {{"value", "0"}, {"prevExist", "false"}}}};
  if (next == all.size()) {
    run_timer_.start(kLegacyRunTtl / 4, [this] { keep_run(); });
    return done({});
  }
  put(all[next].first, all[next].second, Twice::harmless,
      [this, next, done](const Result<V2Reply>& reply) {
        if (!reply) return done(tl::make_unexpected(reply.error()));
        make_folders(next + 1, done);
      });
}

void EtcdLegacyDriver::keep_run() {
  // A quarter of the time: some refreshes may fail before the folder expires.
  run_timer_.start(kLegacyRunTtl / 4, [this] { keep_run(); });
  put(folder_,
      {{"dir", "true"},
       {"prevExist", "true"},
       {"refresh", "true"},
       {"ttl", seconds_text(kLegacyRunTtl)}},
      Twice::harmless, [](const Result<V2Reply>&) {});
}

void EtcdLegacyDriver::join(Done<std::optional<LegacyState>> done) {
  round_calls_.drop();
  join_done_ = std::move(done);
  last_error_.reset();
  round_.reset();
  member_.begin(io::Clock::now());
  // Let the old lease expire. Deleting the lease before the other nodes have seen the reason would
  // look like the death of this node.
  lease_timer_.cancel();
  lease_.clear();
  look_later({});
}

void EtcdLegacyDriver::drop_lease(Done<void> done) {
  lease_timer_.cancel();
  if (lease_.empty()) return turn_.start({}, [done = std::move(done)] { done({}); });
  http::Call call;
  call.method = "DELETE";
  call.target = v2_target(std::exchange(lease_, {}));
  request(std::move(call), Twice::harmless, [done = std::move(done)](const Result<V2Reply>& reply) {
    if (!reply) return done(tl::make_unexpected(reply.error()));
    done({});
  });
}

void EtcdLegacyDriver::look_later(Ms pause) {
  turn_.start(pause, [this] { look(); });
}

void EtcdLegacyDriver::look() {
  // quorum=true: a member that is cut off from the cluster must not answer with an old state.
  request(v2_get(key("active_version"), "quorum=true"), Twice::harmless,
          round_calls_([this](Result<V2Reply> reply) {
            if (!reply) return trouble(std::move(reply).error());
            if (auto taken = take_seen(*reply); !taken)
              return finish(tl::make_unexpected(std::move(taken).error()));
            act(member_.next(seen_, io::Clock::now()));
          }));
}

Status EtcdLegacyDriver::take_seen(const V2Reply& reply) {
  // A later poll starts here and misses no change.
  index_ = reply.index;
  seen_.reset();
  text_.clear();
  if (reply.error != 0) return {};
  auto state = decode_legacy_state(reply.value);
  if (!state)
    return tl::make_unexpected(
        std::move(state).error().within("the rendezvous of run " + settings_.run_id));
  seen_ = std::move(*state);
  text_ = reply.value;
  return {};
}

void EtcdLegacyDriver::act(LegacyStep step) {
  switch (step.kind) {
    case Kind::create:
      return create();
    case Kind::claim:
      return claim(std::move(step));
    case Kind::replace:
      return replace(step);
    case Kind::destroy:
      return destroy();
    case Kind::count:
      return count(step.state);
    case Kind::check:
      return check(step.state);
    case Kind::watch:
      return await_change(key("active_version"), false, step.until, [this] { look(); });
    case Kind::done:
      return finish(std::move(step.state));
    case Kind::released:
      return finish(std::nullopt);
    case Kind::closed:
      return finish(fail(Errc::canceled,
                         fmt::format("the rendezvous '{}' is closed", settings_.run_id),
                         "the job with this --rdzv-id has ended: choose a new --rdzv-id"));
    case Kind::timed_out:
      return finish(tl::make_unexpected(too_late()));
  }
}

Error EtcdLegacyDriver::too_late() const {
  std::string text =
      fmt::format("joining timed out: {} of at least {} nodes had joined '{}'",
                  seen_ ? seen_->participants : 0, settings_.rules.min_nodes, settings_.run_id);
  if (last_error_) text += fmt::format(" ({})", last_error_->message);
  return {Errc::timeout, std::move(text), {}, 0};
}

// Sets up a round in four steps. If this node dies in between, the state of the first step expires.
void EtcdLegacyDriver::create() {
  put_state({}, kLegacySetupTtl, {{"prevExist", "false"}},
            round_calls_([this](const Result<V2Reply>& reply) {
              if (!reply) return trouble(reply.error());
              // Another node is setting up a round.
              if (reply->error != 0) return look();
              count_up();
            }));
}

void EtcdLegacyDriver::count_up() {
  const std::string counter = key("version_counter");
  request(v2_get(counter, "quorum=true"), Twice::harmless,
          round_calls_([this, counter](const Result<V2Reply>& reply) {
            if (!reply) return trouble(reply.error());
            const auto number = parse_int(reply->value);
            if (reply->error != 0 || !number || *number < 0 || *number >= kMostRounds)
              return finish(
                  fail(Errc::corrupt, fmt::format("the key {} in etcd does not hold a number: '{}'",
                                                  counter, printable(reply->value))));
            const std::string version = std::to_string(*number + 1);
            // prevValue: two nodes must not count the same number.
            put(counter, {{"value", version}, {"prevValue", reply->value}}, Twice::harmful,
                round_calls_([this, version](const Result<V2Reply>& counted) {
                  // The setup state expires within seconds, and then some node starts again.
                  if (!counted || counted->error != 0) return look_later(kPause);
                  offer(version);
                }));
          }));
}

void EtcdLegacyDriver::offer(const std::string& version) {
  put(member_.folder_of(version), {{"dir", "true"}, {"prevExist", "false"}}, Twice::harmful,
      round_calls_([this, version](const Result<V2Reply>& made) {
        if (!made || made->error != 0) return look_later(kPause);
        put_state({.status = LegacyState::Status::joinable, .version = version}, std::nullopt,
                  {{"prevValue", encode_legacy_state({})}},
                  round_calls_([this](const Result<V2Reply>&) { look(); }));
      }));
}

void EtcdLegacyDriver::claim(LegacyStep step) {
  // The lease comes first: other nodes count a confirmation without a lease as a dead node.
  lease_ = member_.lease_key();
  put(lease_, {{"value", ""}, {"ttl", seconds_text(kLegacyLeaseTtl)}}, Twice::harmless,
      round_calls_([this, step = std::move(step)](const Result<V2Reply>& reply) {
        if (!reply) return trouble(reply.error());
        keep_lease();
        replace(step);
      }));
}

void EtcdLegacyDriver::replace(const LegacyStep& step) {
  put_state(step.state, step.ttl, {{"prevValue", text_}},
            round_calls_([this, announced = step.state.waiting > 0](const Result<V2Reply>& reply) {
              if (!reply) return trouble(reply.error());
              // Another node has changed the state in between.
              if (reply->error != 0) return look_later(short_pause());
              if (announced) announced_at_ = io::Clock::now();
              member_.took_effect();
              look();
            }));
}

// Waits for a round of other nodes to end, and destroys a round that has lost a member.
void EtcdLegacyDriver::check(const LegacyState& state) {
  list_leases(
      state.version, round_calls_([this, state](const Result<std::vector<std::string>>& leases) {
        if (!leases) return trouble(leases.error());
        // torchrun's agents check for waiting nodes only from time to time, and only while the
        // round exists. So leave the round in place for a while after announcing this node.
        const bool too_soon = !state.all_ours() && io::Clock::now() - announced_at_ < kNotice;
        if (missing_leases(state, *leases).empty())
          return await_change(folder_ + "/rdzv", true, io::Clock::now() + kLongestPoll,
                              [this] { look(); });
        if (too_soon) return look_later(kPause);
        destroy();
      }));
}

void EtcdLegacyDriver::destroy() {
  http::Call call;
  call.method = "DELETE";
  call.target = v2_target(key("active_version"));
  call.target += '?';
  call.target += v2_put("", {{"prevValue", text_}}).body;  // a query is coded like a form
  request(std::move(call), Twice::harmless, round_calls_([this](const Result<V2Reply>& reply) {
            if (!reply) return trouble(reply.error());
            look();
          }));
}

void EtcdLegacyDriver::count(const LegacyState& state) {
  list_leases(state.version,
              round_calls_([this, state](const Result<std::vector<std::string>>& leases) {
                if (!leases) return trouble(leases.error());
                member_.lost(missing_leases(state, *leases).size(), io::Clock::now());
                look();
              }));
}

void EtcdLegacyDriver::await_change(const std::string& at, bool below,
                                    LegacyStep::Clock::time_point until,
                                    const std::function<void()>& then) {
  const auto left = std::chrono::ceil<Ms>(until - io::Clock::now());
  EtcdTransport::Request made;
  made.call = v2_get(
      at, fmt::format("wait=true&waitIndex={}{}", index_ + 1, below ? "&recursive=true" : ""));
  // A poll is one long attempt, not several short ones.
  made.timeout = made.attempt = std::clamp(left, Ms(1), kLongestPoll);
  calls_.ask(
      std::move(made),
      round_calls_([this, then, since = io::Clock::now()](const Result<http::Answer>& answer) {
        // Pause before asking again if the server ends polls at once.
        if (answer || io::Clock::now() - since > kPause) return then();
        turn_.start(kPause, then);
      }));
}

void EtcdLegacyDriver::trouble(Error error) {
  // Refusals do not go away by retrying.
  if (error.code != Errc::unavailable && error.code != Errc::timeout)
    return finish(tl::make_unexpected(std::move(error)));
  last_error_ = std::move(error);
  if (io::Clock::now() >= member_.deadline()) return finish(tl::make_unexpected(too_late()));
  look_later(kPause);
}

void EtcdLegacyDriver::finish(Result<std::optional<LegacyState>> result) {
  round_calls_.drop();
  const bool in_round = result && *result;
  if (in_round) {
    round_ = **result;
    outage_since_.reset();
    told_outage_ = false;
    turn_.start({}, [this] { tick(); });
  }
  if (const auto done = std::exchange(join_done_, nullptr)) done(std::move(result));
}

void EtcdLegacyDriver::close(Done<void> done) {
  round_calls_.drop();
  turn_.cancel();
  request(
      v2_get(key("active_version"), "quorum=true"), Twice::harmless,
      [this, done = std::move(done)](Result<V2Reply> reply) {
        if (!reply) return done(tl::make_unexpected(std::move(reply).error()));
        if (auto taken = take_seen(*reply); !taken) return done(std::move(taken));
        if (seen_ && seen_->status == LegacyState::Status::closed) return done({});
        LegacyState closed = seen_.value_or(LegacyState{});
        closed.status = LegacyState::Status::closed;
        const V2Form form = seen_ ? V2Form{{"prevValue", text_}} : V2Form{{"prevExist", "false"}};
        put_state(closed, std::nullopt, form, [this, done](const Result<V2Reply>& put) {
          if (!put) return done(tl::make_unexpected(put.error()));
          // Another node has changed the state in between: try again.
          if (put->error == 0) return done({});
          turn_.start(short_pause(), [this, done] { close(done); });
        });
      });
}

}  // namespace lockstep::rendezvous::etcd
