// The parts of the etcd3 backend: election, hub and member.
#include "rendezvous/etcd3/etcd3_backend.h"

#include "base/log.h"
#include "base/text.h"
#include "io/place_text.h"
#include "rendezvous/closed_hint.h"
#include "rendezvous/etcd3/etcd3_handover.h"
#include "rendezvous/host_finder.h"
#include "rendezvous/hub/hub_auth.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::etcd3 {
namespace {

// Retries end with the lease at the latest.
constexpr std::chrono::milliseconds kPermitRetry(200);
// How long etcd may take to write a good end.
constexpr std::chrono::milliseconds kEndPatience(2000);
// For a guest's record of a final failure, when the agent already wants to leave.
constexpr std::chrono::seconds kClosingPatience(2);

// Returns the settings with a longer lost_patience. A refused port does not end the job when hosts
// are elected: another node may take over. So members wait as long as for a join.
hub::HubMemberSettings patient(hub::HubMemberSettings settings) {
  settings.rules.lost_patience = settings.rules.join_timeout;
  return settings;
}

}  // namespace

Etcd3Backend::Etcd3Backend(io::Loop& loop, Etcd3Settings settings)
    : loop_(loop),
      settings_(std::move(settings)),
      agent_(hub::random_nonce()),
      member_(loop, patient(hub::member_settings(settings_.hub, agent_))),
      meeting_(loop),
      turn_(loop),
      again_(loop),
      end_due_(loop) {
  member_.on_interruption([this](const Interruption& interruption) { interrupt(interruption); });
  member_.on_news([this](int from, const std::string& text) {
    if (const auto tell = on_news_) tell(from, text);
  });
}

Etcd3Backend::~Etcd3Backend() {
  // The election's callbacks use the other members.
  election_.reset();
}

// --- opening: etcd, then the leader ---

void Etcd3Backend::open(Done<void> done) {
  open_done_ = std::move(done);
  core_.open();
  member_.begin();
  // The join timeout includes the search for a leader.
  meeting_until_ = io::Clock::now() + settings_.hub.join_timeout;
  meeting_.start(settings_.hub.join_timeout, [this] { nobody_leads(); });
  turn_.start({}, [this] {
    auto client = Etcd3Client::make(loop_, settings_.access);
    if (!client) return fail_open(std::move(client).error());
    client_ = std::move(*client);
    member_.set_address(
        address_beside(settings_.access.endpoints.front(), settings_.hub.local_addr));
    campaign({});
  });
}

void Etcd3Backend::campaign(std::chrono::milliseconds patience) {
  Etcd3Election::Handlers handlers;
  handlers.on_leader = [this](const std::optional<StorePlace>& place) { on_leader(place); };
  handlers.on_elected = [this](const std::optional<Etcd3Facts>& facts) { on_elected(facts); };
  handlers.on_closed = [this](const Etcd3Facts& facts) { on_closed(facts); };
  handlers.on_deposed = [this] { on_deposed(); };
  handlers.on_unsure = [this](const Error& error) {
    log::warning("etcd does not answer; the job goes on until the lease runs out: {}",
                 error.message);
    permit_end();
  };
  handlers.on_sure = [] { log::warning("etcd answers again"); };
  handlers.on_lost = [this](const Error& error) { on_lost(error); };
  election_ =
      std::make_unique<Etcd3Election>(*client_,
                                      Etcd3ElectionSettings{.run_id = settings_.hub.run_id,
                                                            .lease_ttl = settings_.lease_ttl,
                                                            .start_patience = patience},
                                      std::move(handlers));
  election_->start([this](Result<std::optional<Etcd3Facts>> facts) { started(std::move(facts)); });
}

void Etcd3Backend::started(Result<std::optional<Etcd3Facts>> facts) {
  // A second lease was refused, too. The error of the first loss says more.
  if (!facts && lost_) return give_up(*lost_);
  if (!facts) return fail_open(std::move(facts).error());
  // The new lease is held, so the old loss no longer matters.
  lost_.reset();
  if (*facts) merge_facts(facts_, **facts);
  if (!facts_.closed) return;
  on_closed(facts_);
}

Error Etcd3Backend::closed_error() const {
  const std::string why = facts_.why.empty() ? std::string() : ": " + facts_.why;
  return {Errc::canceled, fmt::format("the rendezvous '{}' is closed{}", settings_.hub.run_id, why),
          closed_hint(settings_.hub.run_id), 0};
}

void Etcd3Backend::on_closed(const Etcd3Facts& facts) {
  using Closed = Etcd3NodeCore::Closed;
  merge_facts(facts_, facts);
  // A node without a round in a job that has rounds was a spare.
  const bool spare = !member_.had_round() && facts_.round >= 0;
  switch (core_.job_closed(facts_.good, spare)) {
    case Closed::ignore:
      return;
    case Closed::refuse_open:
      return fail_open(closed_error());
    case Closed::finish:
      return end_finish({});
    case Closed::end_spare:
      return answer_join(std::optional<Round>());
    case Closed::refuse_join:
      return answer_join(tl::make_unexpected(closed_error()));
    case Closed::interrupt:
      return interrupt({Interruption::Kind::end, facts_.why});
  }
}

// Ends open() if the leader's key stays without a place, which may last for ever. Once a place is
// known, the member applies the timeout.
void Etcd3Backend::nobody_leads() {
  if (core_.stage() != Etcd3NodeCore::Stage::meeting || core_.asked() != Etcd3NodeCore::Asked::open)
    return;
  const std::string& id = settings_.hub.run_id;
  fail_open(
      {Errc::timeout,
       fmt::format("the rendezvous '{}' in etcd at {}: no node has published a hub within {} s", id,
                   client_->endpoints(), settings_.hub.join_timeout.count() / 1000),
       fmt::format("the node holding the key /lockstep/rendezvous/{}/leader in etcd may hang: "
                   "stop that node, or delete the key if there is no such node",
                   id),
       0});
}

std::optional<io::TimePoint> Etcd3Backend::gives_up_at() const {
  return core_.stage() == Etcd3NodeCore::Stage::meeting ? meeting_until_ : member_.gives_up_at();
}

void Etcd3Backend::fail_open(Error error) {
  election_.reset();
  opened(tl::make_unexpected(std::move(error)));
}

void Etcd3Backend::opened(Result<void> outcome) {
  core_.opened();
  if (const auto done = std::exchange(open_done_, nullptr)) done(std::move(outcome));
}

void Etcd3Backend::on_leader(const std::optional<StorePlace>& place) {
  leader_ = place;
  const auto reach = place ? core_.hub_found() : Etcd3NodeCore::Reach::nowhere;
  if (reach == Etcd3NodeCore::Reach::nowhere) return;
  tell_change(*place);
  // A node reaches its own hub over loopback, which no firewall blocks.
  const std::string host = server_ && server_->port() == place->port ? "127.0.0.1" : place->addr;
  if (reach == Etcd3NodeCore::Reach::move) return member_.move_to(host, place->port);
  member_.connect(host, place->port, [this](Result<void> outcome) { opened(std::move(outcome)); });
}

void Etcd3Backend::tell_change(const StorePlace& place) {
  const auto before = std::exchange(last_leader_, place);
  // Tell only a change: the first leader and a renewed lead are expected.
  if (!before || *before == place) return;
  const bool own = server_ && server_->port() == place.port;
  log::warning("{} leads the rendezvous now: the last leader, {}, is gone or has lost its lease",
               own ? "this node" : printable(io::place_text(place.addr, place.port)),
               printable(io::place_text(before->addr, before->port)));
}

void Etcd3Backend::on_elected(const std::optional<Etcd3Facts>& facts) {
  if (facts) merge_facts(facts_, *facts);
  // A node that leaves, or a job that is over, needs no hub.
  if (core_.leaving() || facts_.closed) return;
  auto server = hub::HubServer::open(loop_, server_settings());
  // Without a hub this node must not keep the lead. It gives up, and its lease expires.
  if (!server) return give_up(server.error());
  server_ = std::move(*server);
  election_->publish({member_.address(), server_->port()}, [](const Result<void>& published) {
    if (!published) log::debug("publish the rendezvous: {}", published.error().message);
  });
}

hub::HubServerSettings Etcd3Backend::server_settings() {
  hub::HubServerSettings settings = hub::hub_server_settings(settings_.hub, agent_);
  // Reachable by 127.0.0.1 and by the published address.
  settings.listen = "";
  // The port is published in etcd, so any free one will do.
  settings.port = 0;
  begin_after(facts_, settings.coordinator);
  // This node was the last leader. It comes over with the others, so it is not lost.
  const auto& round = member_.round();
  if (round && round->number == facts_.round && round->group_rank == facts_.lead)
    settings.coordinator.last_lead = -1;
  draft_ = facts_;
  end_ = nullptr;
  // The nodes hear nothing while the end waits, and up to a heartbeat before. They must not take
  // the hub for gone.
  const auto patience = (settings.coordinator.dead - settings.coordinator.heartbeat) / 2;
  if (last_leader_) settings.coordinator.last_lead_called = last_leader_->addr;
  settings.coordinator.fenced = true;
  settings.permit = [this, patience = std::min(patience, kEndPatience)](
                        const hub::PermitRequest& request, std::function<void(Status)> answer) {
    merge_facts(draft_, facts_of(request));
    if (draft_.good) {
      end_ = answer;
      end_due_.start(election_->unsure() ? io::Duration(0) : patience, [this] { permit_end(); });
    }
    permit(std::move(answer));
  };
  return settings;
}

// Writes the round's number or the end to etcd, which succeeds only for the leader. Without the
// lead there is no answer, because the election then calls on_deposed() or on_lost().
void Etcd3Backend::permit(std::function<void(Status)> answer) {
  const auto told = [this, facts = draft_, answer = std::move(answer)](Result<void> stored) {
    if (stored) {
      merge_facts(facts_, facts);
      return answer({});
    }
    const Errc code = stored.error().code;
    // The next leader decides about the end.
    if (code == Errc::canceled) end_ = nullptr;
    if (code == Errc::canceled || !server_ || core_.leaving()) return;
    if (code != Errc::unavailable && code != Errc::timeout)
      return refused(facts, stored.error(), answer);
    // Until the lease is lost. A retry writes all that is in the draft, so it answers all.
    retries_.push_back(answer);
    again_.start(kPermitRetry, [this] {
      permit([all = std::exchange(retries_, {})](const Status& status) {
        for (const auto& one : all)
          one(status);
      });
    });
  };
  election_->store_facts(draft_, told);
}

// Handles a refusal of etcd, which would refuse again. Only a new round must be written.
void Etcd3Backend::refused(const Etcd3Facts& facts, const Error& error,
                           const std::function<void(Status)>& answer) {
  if (facts.good) return permit_end();
  if (facts.round != facts_.round) return answer(tl::make_unexpected(error));
  log::warning("the rendezvous goes on without a record for the next leader: {}", error.message);
  answer({});
}

// Permits a good end that etcd has no room for, or does not write in time. No other node leads
// while this node holds its lease, and work that is done must not fail with etcd.
void Etcd3Backend::permit_end() {
  if (const auto permit = std::exchange(end_, nullptr)) permit({});
}

void Etcd3Backend::on_deposed() {
  server_.reset();
  // The next leader decides about the job.
  if (core_.in_last_word()) return end_lead();
  if (!core_.leaving()) log::warning("another node leads the rendezvous now");
}

// Handles a lost lease. If etcd can be reached (this node was frozen or cut off), this node asks
// for a new lease. If not, started() ends the job, because no node could lead.
void Etcd3Backend::on_lost(const Error& error) {
  using Lost = Etcd3NodeCore::Lost;
  const bool hosted = server_ != nullptr;
  // Without the lease this node's hub must not decide anything.
  server_.reset();
  lost_ = error;
  const Lost lost = core_.lease_lost(hosted);
  if (lost == Lost::go) return end_lead();
  if (lost == Lost::ignore) return;
  again_.start({}, [this] { campaign(std::chrono::seconds(settings_.lease_ttl)); });
  log::warning("{}; this node asks for a new lease", error.message);
  if (lost == Lost::campaign_and_rejoin)
    interrupt({Interruption::Kind::rejoin, "this node led the rendezvous and lost its lease"});
}

void Etcd3Backend::interrupt(const Interruption& interruption) {
  // The hub or etcd has already reported the end of the round.
  if (!core_.interrupted(interruption.kind)) return;
  finish_done_ = nullptr;
  if (const auto tell = on_interruption_) tell(interruption);
}

void Etcd3Backend::give_up(Error error) {
  again_.cancel();
  election_.reset();
  server_.reset();
  lost_ = std::move(error);
  using GiveUp = Etcd3NodeCore::GiveUp;
  switch (core_.given_up()) {
    case GiveUp::ignore:
      return;
    case GiveUp::go:
      return end_lead();
    case GiveUp::refuse_open:
      return opened(tl::make_unexpected(*lost_));
    case GiveUp::refuse_join:
      return answer_join(tl::make_unexpected(*lost_));
    case GiveUp::refuse_finish:
      return end_finish(tl::make_unexpected(*lost_));
    case GiveUp::interrupt:
      return interrupt({Interruption::Kind::end, lost_->message});
  }
}

// --- as a member ---

void Etcd3Backend::join(Done<std::optional<Round>> done) {
  if (!election_ && lost_)
    return turn_.start({}, [this, done] { done(tl::make_unexpected(*lost_)); });
  join_done_ = std::move(done);
  finish_done_ = nullptr;
  core_.join();
  member_.join([this](Result<std::optional<Round>> joined) { answer_join(std::move(joined)); });
}

void Etcd3Backend::answer_join(Result<std::optional<Round>> outcome) {
  core_.joined(outcome && *outcome);
  if (const auto done = std::exchange(join_done_, nullptr)) done(std::move(outcome));
}

void Etcd3Backend::tell_failure(const std::string& line, bool final) {
  member_.tell_failure(line, final);
  // A leader's own hub writes the end.
  if (final && member_.failure() && election_ && !server_) close_round(*member_.failure());
}

// Writes the end of the job to etcd from the failed node itself: the leader may vanish before
// acting on a final failure.
void Etcd3Backend::close_round(const hub::Failed& failed) {
  core_.failure_begun();
  election_->close_round(failed.round, end_text(false, failed.line), [this](const Result<void>&) {
    if (core_.failure_written(server_ != nullptr)) turn_.start({}, [this] { end_lead(); });
  });
}

void Etcd3Backend::finish(Done<void> done) {
  finish_done_ = std::move(done);
  core_.finish();
  if (!election_ && lost_)
    return turn_.start({}, [this] { end_finish(tl::make_unexpected(*lost_)); });
  member_.finish([this](Result<void> outcome) { end_finish(std::move(outcome)); });
}

void Etcd3Backend::end_finish(Result<void> outcome) {
  core_.finished();
  if (const auto done = std::exchange(finish_done_, nullptr)) done(std::move(outcome));
}

void Etcd3Backend::exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                                    std::function<void(std::vector<NodeReport>)> done) {
  member_.exchange_reports(own, timeout, std::move(done));
}

// --- the end ---

// Resigns now; leave() follows when the workers have ended. A node about to leave must not be
// elected meanwhile.
void Etcd3Backend::tell_stop() {
  if (!election_ || core_.leaving()) return;
  core_.stop();
  again_.cancel();
  server_.reset();
  member_.tell_stop();
  election_->resign([](const Result<void>&) {});
}

void Etcd3Backend::leave(Departure how, Done<void> done) {
  const bool job_over = server_ && server_->coordinator().over();
  const auto decided = core_.leave(how, server_ != nullptr, member_.in_round(), job_over);
  join_done_ = nullptr;
  finish_done_ = nullptr;
  again_.cancel();
  permit_end();
  leave_done_ = std::move(done);
  if (!election_) return turn_.start({}, [this] { end_lead(); });
  if (decided == Etcd3NodeCore::Leave::go) {
    server_.reset();
    return turn_.start({}, [this] { end_lead(); });
  }
  member_.leave(how, [this, how](const Result<void>&) {
    turn_.start({}, [this, how] { leave_as_leader(how); });
  });
}

// Writes to etcd that the run id is used up, for the next leader. If this node loses the lead
// meanwhile, it leaves at once.
void Etcd3Backend::leave_as_leader(Departure how) {
  using LastWord = Etcd3NodeCore::LastWord;
  const LastWord word = core_.hub_told(server_ != nullptr);
  if (word == LastWord::none) return end_lead();
  if (word == LastWord::await_writing) return turn_.start(kClosingPatience, [this] { end_lead(); });
  // A guest that never leaves must not hold the leader.
  turn_.start(settings_.hub.close_timeout, [this] { end_lead(); });
  if (!draft_.closed) {
    draft_.closed = true;
    draft_.good = how != Departure::failed;
    draft_.why = end_text(draft_.good, {});
  }
  election_->store_facts(draft_, calls_([this](const Result<void>&) {
                           if (!server_) return;
                           // One turn later: end_lead() destroys the server that calls here.
                           server_->when_empty([this] { turn_.start({}, [this] { end_lead(); }); });
                         }));
}

// Releases the lead and the lease. Later calls do nothing: leave() is answered once.
void Etcd3Backend::end_lead() {
  turn_.cancel();
  again_.cancel();
  core_.go();
  server_.reset();
  const auto done = std::exchange(leave_done_, nullptr);
  if (!done) return;
  // The agent expects no callback inside leave().
  if (!election_ || lost_) return loop_.post(calls_([done] { done({}); }));
  election_->resign(calls_([done](const Result<void>&) { done({}); }));
}

std::string Etcd3Backend::staying_for() const {
  return server_ ? server_->staying_for() : std::string();
}

std::string Etcd3Backend::waiting_for() const {
  if (!client_) return "etcd";
  const std::string place = "etcd at " + client_->endpoints();
  if (election_ && (leader_ || server_)) return member_.waiting_for();
  const std::string& trouble = client_->transport().trouble();
  if (!trouble.empty()) return fmt::format("{} ({})", place, trouble);
  return fmt::format("{}: no node leads the rendezvous '{}' yet", place, settings_.hub.run_id);
}

}  // namespace lockstep::rendezvous::etcd3
