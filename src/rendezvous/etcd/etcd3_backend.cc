#include "rendezvous/etcd/etcd3_backend.h"

#include "base/log.h"
#include "rendezvous/host_finder.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "rendezvous/hub/hub_auth.h"

namespace lockstep::rendezvous {
namespace {

constexpr std::chrono::milliseconds kPermitRetry(200);

// Whoever leads next is worth waiting for as long as for the nodes themselves.
hub::HubMemberSettings patient(hub::HubMemberSettings settings) {
  settings.lost_patience = settings.join_timeout;
  return settings;
}

}  // namespace

Etcd3Backend::Etcd3Backend(io::Loop& loop, Etcd3Settings settings)
    : loop_(loop),
      settings_(std::move(settings)),
      agent_(hub::random_nonce()),
      member_(loop, patient(member_settings(settings_.hub, agent_))),
      turn_(loop),
      again_(loop) {
  member_.on_interruption([this](const Interruption& interruption) { interrupt(interruption); });
}

Etcd3Backend::~Etcd3Backend() {
  election_.reset();
}

// --- opening: etcd, then whoever leads ---

void Etcd3Backend::open(Done<void> done) {
  open_done_ = std::move(done);
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
  handlers.on_deposed = [this] { on_deposed(); };
  handlers.on_unsure = [](const Error& error) {
    log::warning("etcd does not answer; the job goes on as long as its lease: {}", error.message);
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
  if (!facts && lost_) return give_up(*lost_);  // no better the second time
  if (!facts) return fail_open(std::move(facts).error());
  lost_.reset();
  if (*facts) remember(**facts);
  if (!facts_.closed) return;
  const std::string why = facts_.why.empty() ? std::string() : ": " + facts_.why;
  Error closed{Errc::canceled,
               fmt::format("the rendezvous '{}' is closed{}", settings_.hub.run_id, why),
               "the job with this --rdzv-id has ended: choose another one", 0};
  if (open_done_) return fail_open(std::move(closed));
  give_up(std::move(closed));
}

void Etcd3Backend::fail_open(Error error) {
  election_.reset();
  opened(tl::make_unexpected(std::move(error)));
}

void Etcd3Backend::opened(Result<void> outcome) {
  if (const auto done = std::exchange(open_done_, nullptr)) done(std::move(outcome));
}

void Etcd3Backend::on_leader(const std::optional<StorePlace>& place) {
  leader_ = place;
  if (!place || leaving_) return;
  // Our own hub is reached without leaving the machine.
  const std::string host = server_ && server_->port() == place->port ? "127.0.0.1" : place->addr;
  if (reached_) return member_.move_to(host, place->port);
  reached_ = true;
  member_.connect(host, place->port, [this](Result<void> outcome) { opened(std::move(outcome)); });
}

void Etcd3Backend::on_elected(const std::optional<Etcd3Facts>& facts) {
  if (facts) remember(*facts);
  if (leaving_ || facts_.closed) return;
  auto server = hub::HubServer::open(loop_, server_settings());
  if (!server) return give_up(server.error());
  server_ = std::move(*server);
  election_->publish({member_.address(), server_->port()}, [](const Result<void>& published) {
    if (!published) log::debug("publish the rendezvous: {}", published.error().message);
  });
}

hub::HubServerSettings Etcd3Backend::server_settings() {
  hub::HubServerSettings settings = hub_server_settings(settings_.hub, agent_);
  settings.listen = "";  // 127.0.0.1 must reach it as well as the address that is published
  settings.port = 0;
  settings.coordinator.first_round = facts_.round + 1;
  settings.coordinator.restarts = facts_.restarts;
  settings.coordinator.takeover = facts_.round >= 0;
  settings.coordinator.fenced = true;
  settings.permit = [this](const hub::PermitRequest& request, std::function<void(Status)> answer) {
    remember({.round = request.round, .restarts = request.restarts, .closed = false, .why = {}});
    permit(std::move(answer));
  };
  return settings;
}

// The round's number is taken in etcd, if this node still leads; if not, the election tells.
void Etcd3Backend::permit(std::function<void(Status)> answer) {
  election_->store_facts(facts_, [this, answer = std::move(answer)](Result<void> stored) {
    if (stored) return answer({});
    const Errc code = stored.error().code;
    if (code == Errc::canceled || !server_ || leaving_) return;
    if (code != Errc::unavailable && code != Errc::timeout) return answer(std::move(stored));
    again_.start(kPermitRetry, [this, answer] { permit(answer); });  // until the lease is lost
  });
}

// Rounds and restarts only grow.
void Etcd3Backend::remember(const Etcd3Facts& facts) {
  facts_.round = std::max(facts_.round, facts.round);
  facts_.restarts = std::max(facts_.restarts, facts.restarts);
  if (!facts.closed) return;
  facts_.closed = true;
  facts_.why = facts.why;
}

void Etcd3Backend::on_deposed() {
  server_.reset();
  if (told_left_) return end_lead();
  if (!leaving_) log::warning("another node leads the rendezvous now");
}

// The lease is gone, and with it every claim to lead. Where etcd is there (this node was frozen or
// cut off) it stands again; where it is not the job ends: nobody could lead.
void Etcd3Backend::on_lost(const Error& error) {
  const bool led = server_ != nullptr;
  server_.reset();
  lost_ = error;
  lost_->message =
      fmt::format("etcd was out of reach for longer than the lease: {}", error.message);
  if (told_left_) return end_lead();
  if (leaving_) return;
  again_.start({}, [this] { campaign(std::chrono::seconds(settings_.lease_ttl)); });
  log::warning("{}; this node stands again", error.message);
  if (led && !join_done_)
    interrupt({Interruption::Kind::rejoin, "this node led the rendezvous and lost its lease"});
}

void Etcd3Backend::interrupt(const Interruption& interruption) {
  const bool end = interruption.kind == Interruption::Kind::end;
  if (std::exchange(interrupted_, true) && !end) return;  // told already, by the hub or by etcd
  if (const auto tell = on_interruption_) tell(interruption);
}

void Etcd3Backend::give_up(Error error) {
  again_.cancel();
  election_.reset();
  server_.reset();
  lost_ = std::move(error);
  if (told_left_) return end_lead();
  if (open_done_) return opened(tl::make_unexpected(*lost_));
  if (const auto done = std::exchange(join_done_, nullptr))
    return done(tl::make_unexpected(*lost_));
  if (!leaving_) interrupt({Interruption::Kind::end, lost_->message});
}

// --- as a member ---

void Etcd3Backend::join(Done<std::optional<Round>> done) {
  if (!election_ && lost_)
    return turn_.start({}, [this, done] { done(tl::make_unexpected(*lost_)); });
  join_done_ = std::move(done);
  interrupted_ = false;
  member_.join([this](Result<std::optional<Round>> joined) {
    if (const auto tell = std::exchange(join_done_, nullptr)) tell(std::move(joined));
  });
}

void Etcd3Backend::tell_failure(const std::string& line, bool final) {
  member_.tell_failure(line, final);
}
void Etcd3Backend::finish(Done<void> done) {
  member_.finish(std::move(done));
}
void Etcd3Backend::exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                                    std::function<void(std::vector<NodeReport>)> done) {
  member_.exchange_reports(own, timeout, std::move(done));
}

// --- the end ---

void Etcd3Backend::leave(Departure how, Done<void> done) {
  leaving_ = true;
  join_done_ = nullptr;
  again_.cancel();
  leave_done_ = std::move(done);
  if (!election_) return turn_.start({}, [this] { end_lead(); });
  // The others go on with another leader: they are not told to stop.
  if (server_ && how == Departure::stopped) {
    server_.reset();
    return turn_.start({}, [this] { end_lead(); });
  }
  member_.leave(how, [this, how](const Result<void>&) {
    turn_.start({}, [this, how] { leave_as_leader(how); });
  });
}

// The run id is spent, whoever leads next. It ends at once if the lead is lost over it.
void Etcd3Backend::leave_as_leader(Departure how) {
  if (!server_) return end_lead();
  told_left_ = true;
  turn_.start(settings_.hub.close_timeout, [this] { end_lead(); });
  facts_.closed = true;
  facts_.why = how == Departure::failed ? "the job has failed" : "the job is done";
  const std::weak_ptr<const bool> life = life_;
  election_->store_facts(facts_, [this, life](const Result<void>&) {
    if (life.expired() || !server_) return;
    // Not from inside the server.
    server_->when_empty([this] { turn_.start({}, [this] { end_lead(); }); });
  });
}

// Once: what is left of the lead, and of the lease.
void Etcd3Backend::end_lead() {
  turn_.cancel();
  again_.cancel();
  told_left_ = false;
  server_.reset();
  const auto done = std::exchange(leave_done_, nullptr);
  if (!done) return;
  if (!election_ || lost_)
    return loop_.post([life = std::weak_ptr<const bool>(life_), done] {
      if (!life.expired()) done({});
    });
  const std::weak_ptr<const bool> life = life_;
  election_->resign([life, done](const Result<void>&) {
    if (!life.expired()) done({});
  });
}

std::string Etcd3Backend::waiting_for() const {
  if (!client_ || !election_ || (!leader_ && !server_))
    return fmt::format("etcd at {}: nobody leads the rendezvous '{}' yet",
                       client_ ? client_->endpoints() : "?", settings_.hub.run_id);
  return member_.waiting_for();
}

}  // namespace lockstep::rendezvous
