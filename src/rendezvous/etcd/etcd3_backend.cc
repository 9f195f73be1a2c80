#include "rendezvous/etcd/etcd3_backend.h"

#include "base/log.h"
#include "rendezvous/host_finder.h"

#include <fmt/core.h>

#include <utility>

#include "rendezvous/hub/hub_auth.h"

namespace lockstep::rendezvous {
namespace {

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
      turn_(loop) {
  member_.on_interruption([this](const Interruption& interruption) {
    if (const auto tell = on_interruption_) tell(interruption);
  });
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
    campaign();
  });
}

void Etcd3Backend::campaign() {
  Etcd3Election::Handlers handlers;
  handlers.on_leader = [this](const std::optional<StorePlace>& place) { on_leader(place); };
  handlers.on_elected = [this](const std::optional<Etcd3Facts>& facts) { on_elected(facts); };
  handlers.on_deposed = [this] { on_deposed(); };
  handlers.on_unsure = [](const Error& error) {
    log::warning("etcd does not answer; the job goes on as long as its lease: {}", error.message);
  };
  handlers.on_sure = [] { log::warning("etcd answers again"); };
  handlers.on_lost = [this](const Error& error) { on_lost(error); };
  election_ = std::make_unique<Etcd3Election>(
      *client_,
      Etcd3ElectionSettings{.run_id = settings_.hub.run_id, .lease_ttl = settings_.lease_ttl},
      std::move(handlers));
  election_->start([this](Result<std::optional<Etcd3Facts>> facts) { started(std::move(facts)); });
}

void Etcd3Backend::started(Result<std::optional<Etcd3Facts>> facts) {
  if (!facts) return fail_open(std::move(facts).error());
  if (*facts) facts_ = **facts;
  if (!facts_.closed) return;
  const std::string why = facts_.why.empty() ? std::string() : ": " + facts_.why;
  fail_open({Errc::canceled,
             fmt::format("the rendezvous '{}' is closed{}", settings_.hub.run_id, why),
             "the job with this --rdzv-id has ended: choose another one", 0});
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
  if (facts) facts_ = *facts;
  if (leaving_ || facts_.closed) return;
  hub::HubServerSettings settings = hub_server_settings(settings_.hub, agent_);
  settings.listen = "";  // 127.0.0.1 must reach it as well as the address that is published
  settings.port = 0;
  settings.coordinator.first_round = facts_.round + 1;
  settings.coordinator.restarts = facts_.restarts;
  settings.coordinator.takeover = facts_.round >= 0;
  auto server = hub::HubServer::open(loop_, std::move(settings));
  if (!server) return on_lost(server.error());
  server_ = std::move(*server);
  election_->publish({member_.address(), server_->port()}, [](const Result<void>& published) {
    if (!published) log::debug("publish the rendezvous: {}", published.error().message);
  });
}

void Etcd3Backend::on_deposed() {
  log::warning("another node leads the rendezvous now");
  server_.reset();
}

// The lease is gone, and with it every claim; the workers have run on until now.
void Etcd3Backend::on_lost(const Error& error) {
  lost_ = error;
  lost_->message =
      fmt::format("etcd was out of reach for longer than the lease: {}", error.message);
  server_.reset();
  if (open_done_) return opened(tl::make_unexpected(*lost_));
  if (const auto done = std::exchange(join_done_, nullptr))
    return done(tl::make_unexpected(*lost_));
  if (leaving_) return;
  if (const auto tell = on_interruption_) tell({Interruption::Kind::end, lost_->message});
}

// --- as a member ---

void Etcd3Backend::join(Done<std::optional<Round>> done) {
  if (lost_) return turn_.start({}, [this, done] { done(tl::make_unexpected(*lost_)); });
  join_done_ = std::move(done);
  member_.join([this](Result<std::optional<Round>> joined) {
    const auto tell = std::exchange(join_done_, nullptr);
    if (!tell) return;
    if (joined && *joined) remember(**joined);
    tell(std::move(joined));
  });
}

// For a successor that nobody from this round is left to tell.
void Etcd3Backend::remember(const Round& round) {
  facts_.round = round.number;
  facts_.restarts = round.restarts;
  if (election_ && election_->leads()) election_->store_facts(facts_, [](const Result<void>&) {});
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
  if (lost_ || !election_) return turn_.start({}, [done = std::move(done)] { done({}); });
  // The others go on with another leader: they are not told to stop.
  if (server_ && how == Departure::stopped) {
    server_.reset();
    return end_lead(done);
  }
  member_.leave(how, [this, how, done = std::move(done)](const Result<void>&) {
    if (!server_) return end_lead(done);
    turn_.start({}, [this, how, done] { leave_as_leader(how, done); });
  });
}

// The run id is spent, whoever leads next.
void Etcd3Backend::leave_as_leader(Departure how, const Done<void>& done) {
  facts_.closed = true;
  facts_.why = how == Departure::failed ? "the job has failed" : "the job is done";
  const std::weak_ptr<const bool> life = life_;
  election_->store_facts(facts_, [this, life, done](const Result<void>&) {
    if (!life.expired()) close_hub(done);
  });
}

void Etcd3Backend::close_hub(const Done<void>& done) {
  if (!server_) return end_lead(done);  // lost with the lease meanwhile
  const auto go = [this, done] {
    turn_.start({}, [this, done] {
      server_.reset();
      end_lead(done);
    });
  };
  turn_.start(settings_.hub.close_timeout, go);
  server_->when_empty(go);
}

void Etcd3Backend::end_lead(const Done<void>& done) {
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
