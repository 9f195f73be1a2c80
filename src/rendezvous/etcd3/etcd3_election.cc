// The driver of Etcd3ElectionCore: requests and callbacks.
#include "rendezvous/etcd3/etcd3_election.h"

#include "io/place_text.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace lockstep::rendezvous::etcd3 {

using std::chrono::milliseconds;

Etcd3Election::Etcd3Election(Etcd3Client& client, Etcd3ElectionSettings settings, Handlers handlers)
    : client_(client),
      settings_(std::move(settings)),
      handlers_(std::move(handlers)),
      core_(settings_.run_id, "etcd at " + client.endpoints()),
      leader_key_(settings_.prefix + settings_.run_id + "/leader"),
      facts_key_(settings_.prefix + settings_.run_id + "/facts"),
      timer_(client.transport().loop()) {}

Etcd3Election::~Etcd3Election() = default;

// --- around the core ---

// Carries out the core's actions. Any callback may ask for more, or destroy the election.
void Etcd3Election::happened() {
  const auto here = calls_.witness();
  while (auto action = core_.next_action()) {
    std::visit([this](auto& todo) { act(todo); }, *action);
    if (here.gone()) return;
  }
  arm();
}

// Makes the requests at once, and leaves callbacks to the next turn of the loop.
void Etcd3Election::asked() {
  while (!core_.tells()) {
    auto action = core_.next_action();
    if (!action) break;
    std::visit([this](auto& todo) { act(todo); }, *action);
  }
  arm();
}

void Etcd3Election::arm() {
  auto next = core_.next_time();
  if (core_.tells()) next = io::Clock::now();
  if (!next) return timer_.cancel();
  timer_.start(std::max(*next - io::Clock::now(), io::Duration(0)), [this] {
    core_.tick(io::Clock::now());
    happened();
  });
}

template <class Take>
Etcd3Client::Done Etcd3Election::answer(Take take) {
  return calls_([this, take](Reply reply) {
    take(std::move(reply));
    happened();
  });
}

// --- requests ---

void Etcd3Election::act(const Core::Grant&) {
  client_.grant(settings_.lease_ttl,
                answer([this](Reply reply) { core_.granted(std::move(reply), io::Clock::now()); }),
                {settings_.start_patience, {}});
}

void Etcd3Election::act(const Core::KeepAlive& todo) {
  client_.keep_alive(todo.lease, answer([this](Reply reply) {
                       core_.kept_alive(std::move(reply), io::Clock::now());
                     }),
                     {todo.patience, todo.attempt});
}

void Etcd3Election::act(const Core::Campaign& todo) {
  Etcd3Txn txn;
  // create_revision 0: the key does not exist.
  txn.compare = {{Etcd3Compare::What::create_revision, leader_key_, 0, {}}};
  // The key stays empty until the hub can be reached: see publish().
  txn.success = {{Etcd3Op::Kind::put, leader_key_, "", todo.lease},
                 {Etcd3Op::Kind::range, facts_key_, "", 0}};
  txn.failure = {{Etcd3Op::Kind::range, leader_key_, "", 0},
                 {Etcd3Op::Kind::range, facts_key_, "", 0}};
  client_.txn(txn, true, answer([this](Reply reply) {
                core_.campaigned(std::move(reply), io::Clock::now());
              }));
}

void Etcd3Election::act(const Core::Watch& todo) {
  Etcd3Watch::Handlers handlers;
  handlers.events = [this](const std::vector<Etcd3Event>& events) {
    core_.watched(events, io::Clock::now());
    happened();
  };
  handlers.gap = [this](std::int64_t) {
    core_.gap(io::Clock::now());
    happened();
  };
  // Replaces the watch of the last campaign.
  watch_ = std::make_unique<Etcd3Watch>(client_, leader_key_, "", todo.from, std::move(handlers));
}

void Etcd3Election::act(const Core::StopWatch&) {
  watch_.reset();
}

void Etcd3Election::act(const Core::GrantFacts& todo) {
  client_.grant(todo.ttl.count(), answer([this](Reply reply) {
                  core_.facts_granted(std::move(reply), io::Clock::now());
                }));
}

void Etcd3Election::act(const Core::KeepFacts& todo) {
  // Lost answers do not matter: the next refresh comes long before the lease ends.
  client_.keep_alive(todo.lease, nullptr);
}

void Etcd3Election::act(const Core::PutFacts& todo) {
  client_.txn(fenced(facts_key_, todo.text, todo.lease, todo.led), true,
              answer([this](Reply reply) { core_.facts_put(std::move(reply)); }));
}

// --- what is told ---

void Etcd3Election::act(Core::Started& told) {
  if (const auto done = std::exchange(start_done_, nullptr)) done(std::move(told.facts));
}
void Etcd3Election::act(const Core::Leader& told) {
  if (const auto call = handlers_.on_leader) call(told.place);
}
void Etcd3Election::act(const Core::Elected& told) {
  if (const auto call = handlers_.on_elected) call(told.facts);
}
void Etcd3Election::act(const Core::Closed& told) {
  if (const auto call = handlers_.on_closed) call(told.facts);
}
void Etcd3Election::act(const Core::Deposed&) {
  if (const auto call = handlers_.on_deposed) call();
}
void Etcd3Election::act(const Core::Unsure& told) {
  if (const auto call = handlers_.on_unsure) call(told.error);
}
void Etcd3Election::act(const Core::Sure&) {
  if (const auto call = handlers_.on_sure) call();
}
void Etcd3Election::act(const Core::Lost& told) {
  if (const auto call = handlers_.on_lost) call(told.error);
}
void Etcd3Election::act(Core::Stored& told) {
  const auto entry = stored_.extract(told.ticket);
  if (!entry.empty() && entry.mapped()) entry.mapped()(std::move(told.status));
}

// --- what is asked for ---

void Etcd3Election::start(Done<std::optional<Etcd3Facts>> done) {
  start_done_ = std::move(done);
  core_.start(io::Clock::now());
  asked();
}

// Returns a transaction that succeeds only while the leader's key is the one created by this node.
Etcd3Txn Etcd3Election::fenced(const std::string& key, const std::string& value, std::int64_t lease,
                               std::int64_t led) const {
  Etcd3Txn txn;
  txn.compare = {{Etcd3Compare::What::create_revision, leader_key_, led, {}}};
  txn.success = {{Etcd3Op::Kind::put, key, value, lease}};
  return txn;
}

void Etcd3Election::publish(const StorePlace& place, const Done<void>& done) {
  const auto told = calls_([done](Status outcome) {
    if (done) done(std::move(outcome));
  });
  // The callback must not run inside this call.
  if (!leads())
    return client_.transport().loop().post(
        [told] { told(Status(tl::make_unexpected(Core::not_leader()))); });
  const std::string where = io::place_text(place.addr, place.port);
  client_.txn(fenced(leader_key_, where, core_.lease(), core_.led_revision()), true,
              calls_([this, told](Reply reply) {
                if (!reply)
                  return told(Status(tl::make_unexpected(core_.within(std::move(reply).error()))));
                told(reply->succeeded ? Status() : Status(tl::make_unexpected(Core::not_leader())));
              }));
}

void Etcd3Election::store_facts(const Etcd3Facts& facts, Done<void> done) {
  stored_[core_.put_facts(print_etcd3_facts(facts))] = std::move(done);
  asked();
}

void Etcd3Election::close_round(std::int64_t round, const std::string& why, Done<void> done) {
  client_.range(facts_key_, "", calls_([this, round, why, done = std::move(done)](Reply reply) {
                  if (!reply)
                    return done(tl::make_unexpected(core_.within(std::move(reply).error())));
                  auto facts = Core::facts_of(reply->kvs);
                  // The job is over or has moved on, so the failure has been dealt with.
                  if (!facts || !*facts || (*facts)->closed || (*facts)->round != round)
                    return done({});
                  (*facts)->closed = true;
                  (*facts)->why = why;
                  close_facts(**facts, reply->kvs.front(), done);
                }));
}

// Writes only if no node has written in between, under the lease of the existing facts.
void Etcd3Election::close_facts(const Etcd3Facts& facts, const Etcd3Kv& before, Done<void> done) {
  Etcd3Txn txn;
  txn.compare = {{Etcd3Compare::What::mod_revision, facts_key_, before.mod_revision, {}}};
  txn.success = {{Etcd3Op::Kind::put, facts_key_, print_etcd3_facts(facts), before.lease}};
  client_.txn(
      txn, true,
      calls_([this, round = facts.round, why = facts.why, done = std::move(done)](Reply reply) {
        if (!reply) return done(tl::make_unexpected(core_.within(std::move(reply).error())));
        // The leader has written in between: look again whether the round is still the last one.
        if (!reply->succeeded) return close_round(round, why, done);
        done({});
      }));
}

void Etcd3Election::load_facts(Done<std::optional<Etcd3Facts>> done) {
  client_.range(facts_key_, "", calls_([this, done = std::move(done)](Reply reply) {
                  if (!reply)
                    return done(tl::make_unexpected(core_.within(std::move(reply).error())));
                  done(Core::facts_of(reply->kvs));
                }));
}

void Etcd3Election::resign(Done<void> done) {
  core_.resign();
  asked();
  // Short timeouts: the lease expires anyway.
  client_.revoke(core_.lease(), calls_([done = std::move(done)](Reply reply) {
                   if (!done) return;
                   if (!reply && reply.error().code != Errc::not_found)
                     return done(tl::make_unexpected(std::move(reply).error()));
                   done({});
                 }),
                 {milliseconds(2000), milliseconds(1000)});
}

}  // namespace lockstep::rendezvous::etcd3
