// The rules of the election: lease, campaign, facts.
#include "rendezvous/etcd3/etcd3_election_core.h"

#include "codec/rdzv_endpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <type_traits>
#include <utility>

namespace lockstep::rendezvous::etcd3 {
namespace {

using std::chrono::milliseconds;
// The facts outlive the last leader by a day, for nodes that come late and for inspection.
constexpr std::chrono::seconds kFactsTtl(86'400);
constexpr std::chrono::hours kFactsRefresh(1);
constexpr milliseconds kRetry(200);
// A wrong answer must not make a lost lease last for years.
constexpr std::int64_t kLongestLease = 86'400;
constexpr std::size_t kLongestPlace = 300;  // "HOST:PORT"

}  // namespace

Etcd3ElectionCore::Etcd3ElectionCore(std::string run_id, std::string etcd)
    : run_id_(std::move(run_id)), etcd_(std::move(etcd)) {}

Error Etcd3ElectionCore::within(Error error) const {
  return std::move(error).within(fmt::format("rendezvous in etcd ({})", run_id_));
}

Error Etcd3ElectionCore::not_leader() {
  return {Errc::canceled, "this node does not lead the rendezvous in etcd any more", {}, 0};
}

Result<std::optional<Etcd3Facts>> Etcd3ElectionCore::facts_of(const std::vector<Etcd3Kv>& kvs) {
  if (kvs.empty()) return std::optional<Etcd3Facts>();
  LOCKSTEP_TRY_ASSIGN(auto facts, parse_etcd3_facts(kvs.front().value));
  return std::optional<Etcd3Facts>(std::move(facts));
}

std::optional<Etcd3ElectionCore::Action> Etcd3ElectionCore::next_action() {
  if (actions_.empty()) return std::nullopt;
  Action first = std::move(actions_.front());
  actions_.pop_front();
  return first;
}

bool Etcd3ElectionCore::tells() const {
  // The variant lists the requests first.
  constexpr std::size_t kFirstToTell = 8;
  static_assert(std::is_same_v<std::variant_alternative_t<kFirstToTell, Action>, Started>);
  return !actions_.empty() && actions_.front().index() >= kFirstToTell;
}

// --- the lease ---

milliseconds Etcd3ElectionCore::third() const {
  return milliseconds(ttl_) / 3;
}

void Etcd3ElectionCore::start(io::TimePoint now) {
  asked_ = now;
  actions_.emplace_back(Grant{});
}

void Etcd3ElectionCore::granted(Result<Etcd3Reply> reply, io::TimePoint now) {
  if (phase_ == Phase::over) return;
  // Without an id or a duration the lease could not be renewed.
  if (reply && (reply->lease == 0 || reply->ttl <= 0))
    reply = fail(Errc::corrupt, "etcd has granted a lease without an id or a duration");
  if (!reply) return lose(within(std::move(reply).error()));
  lease_ = reply->lease;
  ttl_ = std::chrono::seconds(std::min<std::int64_t>(reply->ttl, kLongestLease));
  kept_alive(std::move(reply), now);
  campaign();
}

void Etcd3ElectionCore::keep_alive(io::TimePoint now) {
  asked_ = now;
  // A renewal may take all the rest of the lease, with several attempts at different endpoints.
  const auto left = std::chrono::ceil<milliseconds>(*lease_until_ - now);
  lease_state_ = Lease::renewing;
  renewal_due_ = now + third();
  actions_.emplace_back(KeepAlive{lease_, std::max(left, milliseconds(1)), third()});
}

// Counts the lease from the request, not from the answer. etcd's clock started later. So etcd gives
// the key to another node only after this node knows of its loss.
void Etcd3ElectionCore::kept_alive(Result<Etcd3Reply> reply, io::TimePoint now) {
  if (phase_ == Phase::over) return;
  if (!reply) return lose(lease_lost(reply.error().message));
  if (reply->ttl <= 0)
    return lose({Errc::unavailable,
                 asleep() ? overslept() : etcd_ + ": the lease of this node has run out",
                 {},
                 0});
  lease_until_ = asked_ + ttl_;
  renewal_due_ = asked_ + third();
  // The lease has survived the sleep.
  slept_ = {};
  refresh_facts(now);
  if (std::exchange(lease_state_, Lease::held) == Lease::unsure) actions_.emplace_back(Sure{});
}

// Handles the time for a renewal, or for its answer. A late call means that this process or the
// machine was stopped.
void Etcd3ElectionCore::renewal_due(io::TimePoint now) {
  slept_ += std::chrono::duration_cast<milliseconds>(now - *renewal_due_);
  renewal_due_.reset();
  if (lease_state_ == Lease::held) return keep_alive(now);
  // etcd's answer may lie unread.
  if (asleep()) return;
  lease_state_ = Lease::unsure;
  actions_.emplace_back(
      Unsure{{Errc::unavailable,
              fmt::format("{} has not answered for {} ms", etcd_, third().count()),
              {},
              0}});
}

bool Etcd3ElectionCore::asleep() const {
  return slept_ >= third();
}

Error Etcd3ElectionCore::lease_lost(const std::string& why) const {
  return {Errc::timeout,
          asleep() ? overslept() : "etcd was out of reach for longer than the lease: " + why,
          {},
          0};
}

std::string Etcd3ElectionCore::overslept() const {
  return fmt::format(
      "this process did not run for {:.1f} s (it was stopped, or the machine was): the lease of "
      "this node in etcd, {} s, has run out",
      std::chrono::duration<double>(slept_).count(), ttl_.count());
}

void Etcd3ElectionCore::tick(io::TimePoint now) {
  const auto due = [now](const std::optional<io::TimePoint>& time) { return time && *time <= now; };
  if (due(renewal_due_)) renewal_due(now);
  if (due(lease_until_))
    return lose(lease_lost(fmt::format("{} has not answered for {} s", etcd_, ttl_.count())));
  if (!due(campaign_at_)) return;
  campaign_at_.reset();
  campaign();
}

std::optional<io::TimePoint> Etcd3ElectionCore::next_time() const {
  std::optional<io::TimePoint> next;
  for (const auto& time : {renewal_due_, lease_until_, campaign_at_})
    if (time && (!next || *time < *next)) next = time;
  return next;
}

// --- who leads ---

void Etcd3ElectionCore::campaign() {
  standing_ = Standing::asked;
  actions_.emplace_back(Campaign{lease_});
}

void Etcd3ElectionCore::look_again(io::TimePoint now) {
  if (standing_ != Standing::none) {
    // The answer on its way may be older than this change.
    standing_ = Standing::asked_too_soon;
  } else {
    campaign_at_ = now;
  }
}

// Handles the answer to a campaign, which creates the leader's key if there is none. A repeated
// request finds the key made by its first attempt.
void Etcd3ElectionCore::campaigned(Result<Etcd3Reply> reply, io::TimePoint now) {
  if (phase_ == Phase::over) return;
  // A change during the campaign calls for another one.
  if (std::exchange(standing_, Standing::none) == Standing::asked_too_soon) campaign_at_ = now;
  const bool first = phase_ == Phase::starting;
  if (reply && reply->ranges.size() != 2)
    reply =
        fail(Errc::corrupt, "etcd's answer to a transaction does not have the two parts asked for");
  if (reply && !reply->succeeded && reply->ranges[0].empty()) {
    // A contradiction: the answer says that the key exists, and shows no key.
    campaign_at_ = now + kRetry;
    return;
  }
  if (!reply) {
    if (first) return lose(within(std::move(reply).error()));
    // Waiting does no harm: if the lost request has made the key, the key vanishes with the lease.
    campaign_at_ = now + kRetry;
    return;
  }
  const auto facts = facts_of(reply->ranges[1]);
  if (!facts) return lose(facts.error());
  // The watch starts right behind this answer, so no change is missed.
  actions_.emplace_back(Watch{reply->revision + 1});
  if (first) {
    phase_ = Phase::following;
    actions_.emplace_back(Started{*facts});
  } else if (*facts && (*facts)->closed) {
    actions_.emplace_back(Closed{**facts});
  }
  Etcd3Kv leader;
  if (reply->succeeded) {
    leader.create_revision = reply->revision;
    leader.lease = lease_;
  } else {
    leader = reply->ranges[0].front();
  }
  // The lease tells whose key it is, even if the answer to the winning request was lost.
  if (leader.lease != lease_) {
    depose();
  } else if (led_revision_ != leader.create_revision) {
    // From now on this revision guards every write of the leader.
    led_revision_ = leader.create_revision;
    phase_ = Phase::leading;
    actions_.emplace_back(Elected{*facts});
    // From now on the facts are under this node's lease.
    if (*facts) put_facts(print_etcd3_facts(**facts));
  }
  show(leader.value);
}

void Etcd3ElectionCore::watched(const std::vector<Etcd3Event>& events, io::TimePoint now) {
  if (phase_ == Phase::over || events.empty()) return;
  const Etcd3Event& last = events.back();
  const bool gone = std::any_of(events.begin(), events.end(),
                                [](const Etcd3Event& event) { return event.deleted; });
  if (last.deleted || last.kv.create_revision != led_revision_) depose();
  if (gone) look_again(now);
  show(last.deleted ? std::string() : last.kv.value);
}

// Handles compacted events: only the key itself shows the current leader.
void Etcd3ElectionCore::gap(io::TimePoint now) {
  if (phase_ != Phase::over) look_again(now);
}

// Reports the value of the leader's key. "": no leader, or one without a place yet.
void Etcd3ElectionCore::show(const std::string& value) {
  if (shown_ == value) return;
  shown_ = value;
  std::optional<StorePlace> place;
  if (!value.empty() && value.size() <= kLongestPlace) {
    const auto endpoint = codec::parse_rdzv_endpoint(value, 0);
    if (endpoint && endpoint->port > 0) place = StorePlace{endpoint->host, endpoint->port};
  }
  actions_.emplace_back(Leader{std::move(place)});
}

void Etcd3ElectionCore::depose() {
  if (!leads()) return;
  led_revision_ = 0;
  phase_ = Phase::following;
  actions_.emplace_back(Deposed{});
}

void Etcd3ElectionCore::lose(const Error& error) {
  // A failed start is the answer to start(), not a loss.
  const bool first = phase_ == Phase::starting;
  end();
  if (first) {
    actions_.emplace_back(Started{tl::make_unexpected(error)});
    return;
  }
  actions_.emplace_back(Lost{error});
  actions_.emplace_back(StopWatch{});
}

void Etcd3ElectionCore::end() {
  phase_ = Phase::over;
  lease_state_ = Lease::none;
  led_revision_ = 0;
  renewal_due_.reset();
  lease_until_.reset();
  campaign_at_.reset();
}

// Ends the election. Only writers of facts still get answers.
void Etcd3ElectionCore::resign() {
  end();
  std::erase_if(actions_,
                [](const Action& action) { return !std::holds_alternative<Stored>(action); });
  actions_.emplace_back(StopWatch{});
}

// --- the job's facts ---

// Queues facts and returns a ticket. Writes run one after another, so older facts never overwrite
// newer facts.
std::uint64_t Etcd3ElectionCore::put_facts(std::string text) {
  const std::uint64_t ticket = ++last_ticket_;
  facts_queue_.push_back({ticket, std::move(text), led_revision_});
  if (facts_queue_.size() == 1) put_next_facts();
  return ticket;
}

void Etcd3ElectionCore::told(Status outcome) {
  actions_.emplace_back(Stored{facts_queue_.front().ticket, std::move(outcome)});
  facts_queue_.pop_front();
}

void Etcd3ElectionCore::put_next_facts() {
  // Nothing may be written without the lead, or under a later one.
  while (!facts_queue_.empty() && (!leads() || facts_queue_.front().led != led_revision_))
    told(tl::make_unexpected(not_leader()));
  if (facts_queue_.empty()) return;
  // Facts have their own lease, which outlives the leader's.
  if (facts_lease_ == 0) {
    actions_.emplace_back(GrantFacts{kFactsTtl});
  } else {
    actions_.emplace_back(PutFacts{facts_queue_.front().text, facts_lease_, led_revision_});
  }
}

void Etcd3ElectionCore::facts_granted(Result<Etcd3Reply> reply, io::TimePoint now) {
  if (!reply) return facts_put(std::move(reply));
  facts_lease_ = reply->lease;
  facts_refreshed_ = now;
  put_next_facts();
}

void Etcd3ElectionCore::facts_put(Result<Etcd3Reply> reply) {
  Status outcome;
  if (!reply) {
    outcome = tl::make_unexpected(within(std::move(reply).error()));
  } else if (!reply->succeeded) {
    outcome = tl::make_unexpected(not_leader());
  }
  told(std::move(outcome));
  put_next_facts();
}

void Etcd3ElectionCore::refresh_facts(io::TimePoint now) {
  // An hourly renewal is enough for a lease of a day.
  if (!leads() || facts_lease_ == 0 || now - facts_refreshed_ < kFactsRefresh) return;
  facts_refreshed_ = now;
  actions_.emplace_back(KeepFacts{facts_lease_});
}

}  // namespace lockstep::rendezvous::etcd3
