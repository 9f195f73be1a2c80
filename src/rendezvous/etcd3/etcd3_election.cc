#include "rendezvous/etcd3/etcd3_election.h"

#include "base/text.h"
#include "codec/rdzv_endpoint.h"
#include "io/place_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::etcd3 {
namespace {

using std::chrono::milliseconds;
constexpr std::chrono::seconds kFactsTtl(86'400);
constexpr std::chrono::hours kFactsRefresh(1);
constexpr milliseconds kRetry(200);

milliseconds third(std::chrono::seconds ttl) {
  return milliseconds(ttl) / 3;
}

Result<std::optional<Etcd3Facts>> facts_of(const std::vector<Etcd3Kv>& kvs) {
  if (kvs.empty()) return std::optional<Etcd3Facts>();
  LOCKSTEP_TRY_ASSIGN(auto facts, parse_etcd3_facts(kvs.front().value));
  return std::optional<Etcd3Facts>(std::move(facts));
}

}  // namespace

Etcd3Election::Etcd3Election(Etcd3Client& client, Etcd3ElectionSettings settings, Handlers handlers)
    : client_(client),
      settings_(std::move(settings)),
      handlers_(std::move(handlers)),
      leader_key_(settings_.prefix + settings_.run_id + "/leader"),
      facts_key_(settings_.prefix + settings_.run_id + "/facts"),
      tick_(client.transport().loop()),
      lease_end_(client.transport().loop()),
      retry_(client.transport().loop()) {}

Etcd3Election::~Etcd3Election() = default;

void Etcd3Election::start(Done<std::optional<Etcd3Facts>> done) {
  start_done_ = std::move(done);
  const std::weak_ptr<const bool> life = life_;
  const auto asked = io::Clock::now();
  client_.grant(settings_.lease_ttl,
                [this, life, asked](Result<Etcd3Reply> reply) {
                  if (life.expired() || over_) return;
                  if (reply && (reply->lease == 0 || reply->ttl <= 0))
                    reply = fail(Errc::corrupt, "etcd grants a lease that is none");
                  if (!reply) return lose(within(std::move(reply).error()));
                  granted(*reply, asked);
                },
                {settings_.start_patience, {}});
}

void Etcd3Election::granted(const Etcd3Reply& lease, io::TimePoint asked) {
  lease_ = lease.lease;
  ttl_ = std::chrono::seconds(std::min<std::int64_t>(lease.ttl, 86'400));
  kept_alive(lease, asked);
  campaign();
}

void Etcd3Election::keep_alive() {
  const std::weak_ptr<const bool> life = life_;
  const auto asked = io::Clock::now();
  const auto left = std::chrono::ceil<milliseconds>(lease_until_ - asked);
  client_.keep_alive(lease_,
                     [this, life, asked](Result<Etcd3Reply> reply) {
                       if (!life.expired() && !over_) kept_alive(std::move(reply), asked);
                     },
                     {std::max(left, milliseconds(1)), third(ttl_)});
  tick_due_ = asked + third(ttl_);
  tick_.start(third(ttl_), [this] {
    note_sleep();
    if (asleep()) return;  // it had no time to answer in
    unsure_ = true;
    if (const auto call = handlers_.on_unsure) {
      call(Error{Errc::unavailable,
                 fmt::format("etcd at {} has not answered for {} ms",
                             client_.transport().endpoints(), third(ttl_).count()),
                 {},
                 0});
    }
  });
}

// The lease counts from when it was asked for: etcd's clock began later.
void Etcd3Election::kept_alive(Result<Etcd3Reply> reply, io::TimePoint asked) {
  if (!reply) return lose(lease_lost(reply.error().message));
  const std::string etcd = fmt::format("etcd at {}", client_.transport().endpoints());
  if (reply->ttl <= 0)
    return lose({Errc::unavailable,
                 asleep() ? overslept() : etcd + ": the lease of this node has run out",
                 {},
                 0});
  lease_until_ = asked + ttl_;
  slept_ = {};
  const auto now = io::Clock::now();
  lease_end_.start(lease_until_ - now, [this, etcd] {
    lose(lease_lost(fmt::format("{} has not answered for {} s", etcd, ttl_.count())));
  });
  tick_due_ = asked + third(ttl_);
  tick_.start(tick_due_ - now, [this] {
    note_sleep();
    keep_alive();
  });
  refresh_facts();
  if (!std::exchange(unsure_, false)) return;
  if (const auto call = handlers_.on_sure) call();
}

// A timer that rings late: this process was stopped, or the machine was.
void Etcd3Election::note_sleep() {
  slept_ += std::chrono::duration_cast<milliseconds>(io::Clock::now() - tick_due_);
}

bool Etcd3Election::asleep() const {
  return slept_ >= third(ttl_);
}

Error Etcd3Election::lease_lost(const std::string& why) const {
  return {Errc::timeout,
          asleep() ? overslept() : "etcd was out of reach for longer than the lease: " + why,
          {},
          0};
}

std::string Etcd3Election::overslept() const {
  return fmt::format(
      "this process did not run for {:.1f} s (it was stopped, or the machine was): the lease of "
      "this node in etcd, {} s, has run out",
      std::chrono::duration<double>(slept_).count(), ttl_.count());
}

// Makes the key if nobody has it. Done twice, it finds the key that the first time made.
void Etcd3Election::campaign() {
  Etcd3Txn txn;
  txn.compare = {{Etcd3Compare::What::create_revision, leader_key_, 0, {}}};
  txn.success = {{Etcd3Op::Kind::put, leader_key_, "", lease_},
                 {Etcd3Op::Kind::range, facts_key_, "", 0}};
  txn.failure = {{Etcd3Op::Kind::range, leader_key_, "", 0},
                 {Etcd3Op::Kind::range, facts_key_, "", 0}};
  const std::weak_ptr<const bool> life = life_;
  client_.txn(txn, true, [this, life](Result<Etcd3Reply> reply) {
    if (!life.expired() && !over_) campaigned(std::move(reply));
  });
}

void Etcd3Election::campaigned(Result<Etcd3Reply> reply) {
  if (reply && reply->ranges.size() != 2)
    reply = fail(Errc::corrupt, "etcd answers a transaction of two parts with others");
  if (reply && !reply->succeeded && reply->ranges[0].empty())
    return campaign();  // gone at this very moment
  if (!reply) {
    if (start_done_) return lose(within(std::move(reply).error()));
    // A key that is left alone until the lease ends is no harm; without one it is lost anyway.
    retry_.start(kRetry, [this] { campaign(); });
    return;
  }
  auto facts = facts_of(reply->ranges[1]);
  if (!facts) return lose(std::move(facts).error());
  watch(reply->revision + 1);
  const std::weak_ptr<const bool> life = life_;
  const bool first = start_done_ != nullptr;
  if (const auto done = std::exchange(start_done_, nullptr)) {
    done(*facts);
    if (life.expired() || over_) return;
  }
  if (!first && *facts && (*facts)->closed) {
    if (const auto call = handlers_.on_closed) call(**facts);
    if (life.expired() || over_) return;
  }
  Etcd3Kv leader;
  if (reply->succeeded) {
    leader.create_revision = reply->revision;
    leader.lease = lease_;
  } else {
    leader = reply->ranges[0].front();
  }
  if (leader.lease != lease_ && !depose()) return;
  const bool elected = leader.lease == lease_ && led_revision_ != leader.create_revision;
  if (elected) {
    led_revision_ = leader.create_revision;
    if (const auto call = handlers_.on_elected) call(*facts);
    if (life.expired() || over_) return;
    if (*facts) put_facts(print_etcd3_facts(**facts), nullptr);  // under our lease from now on
  }
  show(leader.value);
}

void Etcd3Election::watch(std::int64_t from) {
  Etcd3Watch::Handlers handlers;
  handlers.events = [this](const std::vector<Etcd3Event>& events) { on_events(events); };
  handlers.gap = [this](std::int64_t) { look_again(); };
  watch_ = std::make_unique<Etcd3Watch>(client_, leader_key_, "", from, std::move(handlers));
}

// Not from inside the watch that it replaces.
void Etcd3Election::look_again() {
  retry_.start({}, [this] { campaign(); });
}

void Etcd3Election::on_events(const std::vector<Etcd3Event>& events) {
  const Etcd3Event& last = events.back();
  const bool gone = std::any_of(events.begin(), events.end(),
                                [](const Etcd3Event& event) { return event.deleted; });
  const bool other = leads() && (last.deleted || last.kv.create_revision != led_revision_);
  if (other && !depose()) return;
  if (gone) look_again();
  if (!leads() || !last.deleted) show(last.deleted ? std::string() : last.kv.value);
}

// The leader's key has this value; "": no leader, or one that is not ready.
void Etcd3Election::show(const std::string& value) {
  if (shown_ == value) return;
  shown_ = value;
  std::optional<StorePlace> place;
  if (!value.empty()) {
    const auto endpoint = codec::parse_rdzv_endpoint(value, 0);
    if (endpoint && endpoint->port > 0) place = StorePlace{endpoint->host, endpoint->port};
  }
  if (const auto call = handlers_.on_leader) call(place);
}

bool Etcd3Election::depose() {
  if (!leads()) return true;
  led_revision_ = 0;
  const std::weak_ptr<const bool> life = life_;
  if (const auto call = handlers_.on_deposed) call();
  return !life.expired() && !over_;
}

void Etcd3Election::lose(const Error& error) {
  over_ = true;
  tick_.cancel();
  lease_end_.cancel();
  retry_.cancel();
  const std::weak_ptr<const bool> life = life_;
  if (const auto done = std::exchange(start_done_, nullptr))
    return done(tl::make_unexpected(error));
  led_revision_ = 0;
  if (const auto call = handlers_.on_lost) call(error);
  if (!life.expired()) watch_.reset();
}

Error Etcd3Election::within(Error error) const {
  return std::move(error).within(fmt::format("rendezvous in etcd ({})", settings_.run_id));
}

void Etcd3Election::fenced_put(const std::string& key, const std::string& value, std::int64_t lease,
                               const Done<void>& done) {
  const std::weak_ptr<const bool> life = life_;
  const auto not_leader = [life, done] {
    if (life.expired() || !done) return;
    done(fail(Errc::canceled, "this node does not lead the rendezvous in etcd any more"));
  };
  if (!leads()) return client_.transport().loop().post(not_leader);
  Etcd3Txn txn;
  txn.compare = {{Etcd3Compare::What::create_revision, leader_key_, led_revision_, {}}};
  txn.success = {{Etcd3Op::Kind::put, key, value, lease}};
  client_.txn(txn, true, [this, life, done, not_leader](Result<Etcd3Reply> reply) {
    if (life.expired() || !done) return;
    if (!reply) return done(tl::make_unexpected(within(std::move(reply).error())));
    if (!reply->succeeded) return not_leader();
    done({});
  });
}

void Etcd3Election::publish(const StorePlace& place, const Done<void>& done) {
  fenced_put(leader_key_, io::place_text(place.addr, place.port), lease_, done);
}

void Etcd3Election::store_facts(const Etcd3Facts& facts, Done<void> done) {
  put_facts(print_etcd3_facts(facts), std::move(done));
}

// One after the other: a later word must not be overtaken by an earlier one.
void Etcd3Election::put_facts(std::string text, Done<void> done) {
  facts_queue_.emplace_back(std::move(text), std::move(done));
  if (facts_queue_.size() == 1) put_next_facts();
}

void Etcd3Election::put_next_facts() {
  const auto then = [this](Status outcome) { facts_put(std::move(outcome)); };
  if (facts_lease_ != 0 || !leads())
    return fenced_put(facts_key_, facts_queue_.front().first, facts_lease_, then);
  const std::weak_ptr<const bool> life = life_;
  client_.grant(kFactsTtl.count(), [this, life](Result<Etcd3Reply> reply) {
    if (life.expired()) return;
    if (!reply) return facts_put(tl::make_unexpected(within(std::move(reply).error())));
    facts_lease_ = reply->lease;
    facts_refreshed_ = io::Clock::now();
    put_next_facts();
  });
}

void Etcd3Election::facts_put(Status outcome) {
  const auto done = std::move(facts_queue_.front().second);
  facts_queue_.pop_front();
  if (!facts_queue_.empty()) put_next_facts();
  if (done) done(std::move(outcome));
}

void Etcd3Election::refresh_facts() {
  if (!leads() || facts_lease_ == 0) return;
  if (io::Clock::now() - facts_refreshed_ < kFactsRefresh) return;
  facts_refreshed_ = io::Clock::now();
  client_.keep_alive(facts_lease_, nullptr);
}

void Etcd3Election::close_round(std::int64_t round, const std::string& why, Done<void> done) {
  const std::weak_ptr<const bool> life = life_;
  client_.range(facts_key_, "",
                [this, life, round, why, done = std::move(done)](Result<Etcd3Reply> reply) mutable {
                  if (life.expired()) return;
                  if (!reply) return done(tl::make_unexpected(within(std::move(reply).error())));
                  auto facts = facts_of(reply->kvs);
                  if (!facts || !*facts || (*facts)->closed || (*facts)->round != round)
                    return done({});
                  (*facts)->closed = true;
                  (*facts)->why = why;
                  close_facts(**facts, reply->kvs.front(), std::move(done));
                });
}

// If nobody has written in between; under the lease that they have.
void Etcd3Election::close_facts(const Etcd3Facts& facts, const Etcd3Kv& before, Done<void> done) {
  Etcd3Txn txn;
  txn.compare = {{Etcd3Compare::What::mod_revision, facts_key_, before.mod_revision, {}}};
  txn.success = {{Etcd3Op::Kind::put, facts_key_, print_etcd3_facts(facts), before.lease}};
  const std::weak_ptr<const bool> life = life_;
  client_.txn(txn, true,
              [this, life, round = facts.round, why = facts.why,
               done = std::move(done)](Result<Etcd3Reply> reply) mutable {
                if (life.expired()) return;
                if (!reply) return done(tl::make_unexpected(within(std::move(reply).error())));
                if (!reply->succeeded) return close_round(round, why, std::move(done));
                done({});
              });
}

void Etcd3Election::load_facts(Done<std::optional<Etcd3Facts>> done) {
  const std::weak_ptr<const bool> life = life_;
  client_.range(facts_key_, "", [this, life, done = std::move(done)](Result<Etcd3Reply> reply) {
    if (life.expired()) return;
    if (!reply) return done(tl::make_unexpected(within(std::move(reply).error())));
    done(facts_of(reply->kvs));
  });
}

void Etcd3Election::resign(Done<void> done) {
  over_ = true;
  led_revision_ = 0;
  tick_.cancel();
  lease_end_.cancel();
  retry_.cancel();
  watch_.reset();
  const std::weak_ptr<const bool> life = life_;
  client_.revoke(lease_,
                 [life, done = std::move(done)](Result<Etcd3Reply> reply) {
                   if (life.expired() || !done) return;
                   if (!reply && reply.error().code != Errc::not_found)
                     return done(tl::make_unexpected(std::move(reply).error()));
                   done({});
                 },
                 {milliseconds(2000), milliseconds(1000)});
}

}  // namespace lockstep::rendezvous::etcd3
