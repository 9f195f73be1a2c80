// Decides which node hosts the hub, and adds the host's tasks to the member's.
#include "rendezvous/hub/hub_backend.h"

#include "base/log.h"
#include "base/text.h"
#include "host/port_owner.h"
#include "rendezvous/hub/hub_auth.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::rendezvous::hub {
hub::HubMemberSettings member_settings(const HubSettings& settings, const hub::Nonce& agent) {
  return {.run_id = settings.run_id,
          .token = settings.token,
          .agent = agent,
          .rules = {.min_nodes = settings.min_nodes,
                    .max_nodes = settings.max_nodes,
                    .offer = settings.offer,
                    .connect_timeout = settings.connect_timeout,
                    .join_timeout = settings.join_timeout,
                    .lost_patience = settings.lost_patience,
                    .close_timeout = settings.close_timeout,
                    .succession = settings.hosts.size() > 1},
          .offer_store = settings.offer_store};
}

bool can_be_missed(const HubSettings& settings, const hub::HubMember& member) {
  const auto& round = member.round();
  if (!round || settings.has_spares) return true;
  const bool replaced = settings.offer.replacement && round->restarts < round->max_restarts;
  return replaced || static_cast<std::size_t>(round->group_world_size) > settings.min_nodes;
}

hub::HubServerSettings hub_server_settings(const HubSettings& given, const hub::Nonce& host) {
  hub::HubServerSettings settings{.listen = listening_place(given.endpoint.host),
                                  .port = given.endpoint.port,
                                  .token = given.token,
                                  .coordinator = {}};
  auto& rules = settings.coordinator;
  rules.run_id = given.run_id;
  rules.host = host;
  rules.min_nodes = given.min_nodes;
  rules.max_nodes = given.max_nodes;
  rules.last_call = given.last_call_timeout;
  rules.heartbeat = given.keep_alive_interval;
  rules.dead = given.keep_alive_interval * given.keep_alive_max_attempt;
  // A node that was cut off notices the silence after `dead`, like the host. Coming back may take
  // as long again.
  rules.return_grace = rules.dead * 2;
  rules.order = given.order;
  rules.expected = given.expected;
  return settings;
}

namespace {
static_assert(kMaxNews == kMostNews);
constexpr std::chrono::milliseconds kFindPatience{2'000};

// Returns whether the user should read why this node does not host. That matters if no host, or
// another program, was reached. A refusal by the right host needs no such explanation.
bool is_about_hosting(const Error& error, bool port_taken) {
  if (error.code == Errc::denied) return false;
  return port_taken || error.code == Errc::unavailable || error.code == Errc::timeout ||
         error.code == Errc::not_found;
}
}  // namespace

HubBackend::HubBackend(io::Loop& loop, HubSettings settings)
    : loop_(loop),
      settings_(std::move(settings)),
      agent_(hub::random_nonce()),
      member_(loop, member_settings(settings_, agent_)),
      timer_(loop),
      deposed_(loop),
      recall_(loop) {
  member_.on_interruption([this](const Interruption& interruption) {
    if (const auto tell = on_interruption_) tell(interruption);
  });
  member_.on_news([this](int from, const std::string& text) {
    if (const auto tell = on_news_) tell(from, text);
  });
}

HubBackend::~HubBackend() = default;

// --- opening ---

void HubBackend::open(Done<void> done) {
  open_done_ = std::move(done);
  // The join timeout includes the search for the host.
  member_.begin();
  if (settings_.learns_hosts) member_.set_witness(Witness(kNoPlace));
  finder_ = std::make_unique<HostFinder>(
      loop_, settings_.endpoint, settings_.is_host, settings_.connect_timeout,
      [this](Result<FoundHost> found) { settle(std::move(found)); });
}

void HubBackend::settle(Result<FoundHost> found) {
  if (!found) return opened(tl::make_unexpected(std::move(found).error()));
  found_ = std::move(*found);
  if (settings_.hosts.size() < 2) return settled();
  // The endpoint is the first host of the list.
  if (found_.choice.host) settings_.place = 0;
  // The first host too may be told not to host: it comes back to a job that goes on elsewhere.
  look_for_place(settings_.is_host && !*settings_.is_host ? 0 : 1);
}

// Finds this node's place in the list, unless the node is the first or the scheduler has named the
// place.
void HubBackend::look_for_place(std::size_t at) {
  if (settings_.place || at >= settings_.hosts.size()) {
    if (!found_.choice.host) reserve();
    member_.set_witness(Witness(settings_.place.value_or(kNoPlace)));
    expect_succession();
    return settled();
  }
  finder_ = std::make_unique<HostFinder>(loop_, settings_.hosts[at], std::nullopt, kFindPatience,
                                         [this, at](const Result<FoundHost>& found) {
                                           if (found && found->choice.host)
                                             settings_.place = static_cast<std::uint32_t>(at);
                                           // Not here: a callback must not replace its own finder.
                                           timer_.start({}, [this, at] { look_for_place(at + 1); });
                                         });
}

void HubBackend::settled() {
  const std::string at = listening_place(settings_.endpoint.host);
  if (!found_.choice.host) return reach(settings_.endpoint.host);
  if (auto hosting = host(); !hosting) {
    Error error = std::move(hosting).error();
    if (!found_.choice.may_join_instead || error.code != Errc::already_exists) {
      host::name_port_holder(error, settings_.endpoint.port);
      return opened(tl::make_unexpected(std::move(error).within("host the rendezvous")));
    }
    // Another agent on this machine may host already, so join as a guest.
    port_taken_ = true;
    return reach(settings_.endpoint.host);
  }
  look_for_the_real_host();
  reach(at.empty() ? std::string(kOwnHub) : at);
}

// Looks up the endpoint's address, which only messages need. With is_host nothing else needed it.
void HubBackend::look_for_the_real_host() {
  if (!settings_.is_host || found_.endpoint_address) return;
  lookup_ = std::make_unique<io::Lookup>(
      loop_, settings_.endpoint.host, settings_.endpoint.port, [this](Result<io::Resolved> at) {
        if (at && !io::is_loopback(at->addresses.front()))
          found_.facts.endpoint_addresses = {io::address_text(at->addresses.front())};
      });
}

Status HubBackend::host() {
  hub::HubServerSettings server = hub_server_settings(settings_, agent_);
  if (succession_ || settings_.learns_hosts) add_ledger(server, false);
  LOCKSTEP_TRY_ASSIGN(server_, hub::HubServer::open(loop_, std::move(server)));
  // The kernel has chosen the port if the user gave 0. Messages must name the real port.
  settings_.endpoint.port = server_->port();
  return {};
}

void HubBackend::reach(const std::string& host) {
  // The previous job on the port may be ending. Try again to host after each failed attempt to
  // connect.
  if (found_.choice.host && !hosts())
    member_.on_attempt([this](const Error&) { try_to_host_after_all(); });
  member_.connect(host, settings_.endpoint.port,
                  [this](Result<void> outcome) { opened(std::move(outcome)); });
  // The first host of the list may be gone already, so look at the other hosts too.
  if (succession_ && !found_.choice.host) succession_->begin();
}

void HubBackend::try_to_host_after_all() {
  if (hosts() || !host()) return;
  port_taken_ = false;
  member_.on_attempt(nullptr);
  // Not inside the member's callback: forget_connect() destroys the dialer that called.
  timer_.start({}, [this] {
    const std::string at = listening_place(settings_.endpoint.host);
    member_.forget_connect();
    reach(at.empty() ? std::string(kOwnHub) : at);
  });
}

void HubBackend::opened(Result<void> outcome) {
  if (succession_ && outcome) succession_->found();
  if (succession_ && !outcome) succession_->end();
  if (outcome) {
    member_.set_address(own_node_address(found_, settings_.endpoint.host, hosts(),
                                         settings_.local_addr, member_.local_address()));
    if (settings_.learns_hosts) offer_to_host();
  } else if (!found_.choice.reason.empty() && is_about_hosting(outcome.error(), port_taken_)) {
    Error& error = outcome.error();
    drop_tried(error.message);
    error.message += fmt::format(" ({})", why_not_host());
    if (error.hint.empty() && !hosts())
      error.hint = "is the host up? --rdzv-conf join_timeout=SECONDS waits longer";
  }
  if (const auto done = std::exchange(open_done_, nullptr)) done(std::move(outcome));
}

// --- as a member ---

void HubBackend::join(Done<std::optional<Round>> done) {
  member_.join(std::move(done));
}
void HubBackend::tell_failure(const std::string& line, bool final) {
  member_.tell_failure(line, final);
}
void HubBackend::finish(Done<void> done) {
  member_.finish(std::move(done));
}
void HubBackend::exchange_reports(const NodeReport& own, std::chrono::milliseconds timeout,
                                  std::function<void(std::vector<NodeReport>)> done) {
  member_.exchange_reports(own, timeout, std::move(done));
}

void HubBackend::tell_stop() {
  leaving_ = true;
  if (succession_) succession_->end();
  member_.tell_stop();
}

void HubBackend::leave(Departure how, Done<void> done) {
  leaving_ = true;
  if (succession_) succession_->end();
  if (!hosts()) return member_.leave(how, std::move(done));
  // The member leaves first: the server counts this node among its guests.
  member_.leave(how, [this, done = std::move(done)](const Result<void>&) {
    timer_.start({}, [this, done] { wait_for_guests(done); });
  });
}

// Waits until the guests have left, at most close_timeout. Guests leave by themselves once they
// have all they need from this host.
void HubBackend::wait_for_guests(const Done<void>& done) {
  // Another node may have come to lead while this one was leaving.
  if (!server_) return done({});
  endpoint_call_.reset();
  left_done_ = done;
  timer_.start(settings_.close_timeout, [this] {
    const std::string left =
        server_ && !server_->coordinator().over() ? server_->coordinator().present() : "";
    if (!left.empty())
      log::warning("close_timeout ({} s) is over: this node hosts the rendezvous no longer for {}",
                   settings_.close_timeout.count() / 1000, printable(left));
    end_hosting();
  });
  // In the next turn: the server calls here, and must not be destroyed meanwhile.
  server_->when_empty([this] { timer_.start({}, [this] { end_hosting(); }); });
}

void HubBackend::end_hosting() {
  endpoint_call_.reset();
  server_.reset();
  if (const auto done = std::exchange(left_done_, nullptr)) done({});
}

std::string HubBackend::staying_for() const {
  return server_ ? server_->staying_for() : std::string();
}

std::string HubBackend::waiting_for() const {
  if (open_done_ && finder_ && found_.choice.reason.empty())
    return "the look-up of '" + settings_.endpoint.host + "'";
  std::string text = member_.waiting_for();
  if (open_done_ && !hosts()) {
    drop_tried(text);
    text += fmt::format("; this node is not the host: {}", why_not_host());
  }
  if (hosts() && member_.forming())
    text += fmt::format("; this node hosts the rendezvous at port {}: {}", settings_.endpoint.port,
                        hosting_reason(found_, settings_.endpoint.host));
  return text;
}

// Removes the tried address from a text if there is only one: why_not_host() names the same
// address.
void HubBackend::drop_tried(std::string& text) const {
  const auto& addresses = found_.facts.endpoint_addresses;
  if (addresses.size() != 1) return;
  const std::string tried = fmt::format(" (tried {})", addresses.front());
  if (const auto at = text.find(tried); at != std::string::npos) text.erase(at, tried.size());
}

std::string HubBackend::why_not_host() const {
  if (!port_taken_) return found_.choice.reason;
  Error taken{
      Errc::already_exists,
      fmt::format("{}, but port {} is taken", found_.choice.reason, settings_.endpoint.port),
      {},
      0};
  host::name_port_holder(taken, settings_.endpoint.port);
  return taken.message;
}

}  // namespace lockstep::rendezvous::hub
