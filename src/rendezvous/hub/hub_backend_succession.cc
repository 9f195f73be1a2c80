// This node's part in the succession of hosts: opening a hub when its turn comes, and closing the
// hub when another node leads.
#include "base/log.h"
#include "base/text.h"
#include "io/listen.h"
#include "io/place_text.h"
#include "rendezvous/hub/hub_backend.h"

#include <utility>

namespace lockstep::rendezvous::hub {

void HubBackend::expect_succession() {
  member_.on_unlinked([this](const Error& error) { succession_->lost(error); });
  member_.on_charter([this] {
    succession_->found();
    learn_hosts();
  });
  succession_ = std::make_unique<HubSuccession>(
      loop_,
      HubSuccession::Settings{.hosts = settings_.hosts,
                              .own = settings_.place.value_or(kNoPlace),
                              .patience = settings_.succession_patience},
      member_,
      HubSuccession::Owner{.open_hub = [this] { return take_over(); },
                           .close_hub =
                               [this] {
                                 // A hub that leads must stay open for its members.
                                 if (server_ && !server_->leads()) stop_hosting();
                               },
                           .give_way =
                               [this] {
                                 if (server_) stop_hosting();
                               }});
}

// Tells the hub where this node may host, if the job has no list of hosts. At any port: other jobs
// may use the endpoint's port on this machine.
void HubBackend::offer_to_host() {
  if (!hosts()) reserve();
  const int port = hosts() ? server_->port() : own_port_;
  // The scope of a link-local address means nothing on another machine.
  const bool known_elsewhere = member_.address().find('%') == std::string::npos;
  if (port > 0 && known_elsewhere) member_.offer_hub({member_.address(), port});
  member_.on_charter([this] { learn_hosts(); });
}

// Takes the place of the hub from the charter, and the list of hosts if the hub makes it.
void HubBackend::learn_hosts() {
  const Charter& charter = member_.witness()->charter();
  if (settings_.learns_hosts) {
    settings_.hosts = charter.hosts;
    settings_.place = place_of(charter.now, agent_);
    if (!succession_) {
      member_.expect_succession();
      expect_succession();
    }
    succession_->learn(settings_.hosts, *settings_.place);
  }
  succession_->led_by(place_of(charter.now, charter.now.first));
}

void HubBackend::add_ledger(hub::HubServerSettings& server, bool takes_over) {
  server.ledger = Ledger::Settings{.host = agent_,
                                   // The hub's term must be later than any term promised by this
                                   // node.
                                   .after = member_.witness()->promised(),
                                   .takes_over = takes_over,
                                   .lists_hosts = settings_.learns_hosts};
  for (const codec::RdzvEndpoint& host : settings_.hosts)
    server.hosts.push_back(host.host);
  server.coordinator.fenced = true;
  server.on_deposed = [this](const std::string& why) { deposed(why); };
  server.on_moved = [this](const Moved& place) { moved(place); };
}

Status HubBackend::take_over() {
  if (server_) return {};
  hub::HubServerSettings server = hub_server_settings(settings_, agent_);
  // The other nodes must reach this hub, so listen on all addresses.
  server.listen = "";
  server.port = settings_.hosts.at(*settings_.place).port;
  add_ledger(server, true);
  reserved_.reset();
  redirect_.reset();
  auto opened = hub::HubServer::open(loop_, std::move(server));
  if (!opened) {
    reserve();
    return tl::make_unexpected(std::move(opened).error());
  }
  server_ = std::move(*opened);
  if (!is_first()) call_endpoint();
  return {};
}

// A first host that was started again waits at the endpoint for the nodes of this hub.
void HubBackend::call_endpoint() {
  const codec::RdzvEndpoint& first = settings_.endpoint;
  endpoint_call_ = std::make_unique<EndpointCall>(
      loop_,
      HubDialSettings{.host = first.host,
                      .port = first.port,
                      .run_id = settings_.run_id,
                      .token = settings_.token,
                      .name = settings_.offer.host},
      Moved{{member_.address(), server_->port()}},
      [this] { return server_ && server_->leads() && !server_->coordinator().over(); });
}

void HubBackend::stop_hosting() {
  endpoint_call_.reset();
  server_.reset();
  reserve();
}

// A job may run for weeks before this node takes over. Without the reservation a connection of its
// workers could have the port by then. A failure is no error: the next host takes over.
void HubBackend::reserve() {
  const bool listed = settings_.place && *settings_.place < settings_.hosts.size();
  if (!listed && !settings_.learns_hosts) return;
  const auto open = [&]() -> Status {
    // Nodes that come later know the endpoint alone.
    if (settings_.learns_hosts && is_first()) return redirect();
    const int port = listed ? settings_.hosts[*settings_.place].port : own_port_;
    LOCKSTEP_TRY_ASSIGN(io::Listener held, io::reserve_port(port));
    reserved_ = std::move(held.fd);
    own_port_ = held.port;
    return {};
  };
  if (const Status opened = open(); !opened)
    log::info("this node may be unable to host the rendezvous later: {}", opened.error().message);
}

Status HubBackend::redirect() {
  hub::HubServerSettings server = hub_server_settings(settings_, agent_);
  server.redirect = [this] { return member_.hub_elsewhere(); };
  LOCKSTEP_TRY_ASSIGN(redirect_, hub::HubServer::open(loop_, std::move(server)));
  return {};
}

// Close the server one turn later, after the last frames to the guests have been sent.
void HubBackend::deposed(const std::string& why) {
  log::warning("this node does not host the rendezvous any more: {}", why);
  deposed_.start({}, [this] {
    // The guests go to the other host: do not wait for them.
    if (left_done_) return end_hosting();
    // A first host that was started again does not know the other hosts. The next hub calls it.
    if (settings_.learns_hosts && !succession_) {
      server_.reset();
      if (host()) return;
    }
    stop_hosting();
  });
}

// Joins the job at its host of today. Like above, in the next turn: the server is calling.
void HubBackend::moved(const Moved& moved) {
  const codec::RdzvEndpoint& place = moved.place;
  log::warning("the rendezvous '{}' goes on at {}: this node joins it there",
               printable(settings_.run_id), io::place_text(printable(place.host), place.port));
  deposed_.start({}, [this, place] {
    if (leaving_) return end_hosting();
    stop_hosting();
    member_.forget_job();
    if (!settings_.learns_hosts) return succession_->begin();
    member_.move_to(place.host, place.port);
    wait_to_be_called();
  });
}

// Opens a hub at the endpoint anew if no hub keeps this node until it learns the hosts. The hub
// that called may be gone since, and the next one calls the endpoint again.
void HubBackend::wait_to_be_called() {
  // A member without succession gives up after lost_patience.
  constexpr std::chrono::seconds kPatience{2};
  recall_.start(kPatience, [this] {
    if (leaving_ || succession_ || hosts()) return;
    if (member_.connected()) return wait_to_be_called();
    redirect_.reset();
    if (const auto hosting = host(); !hosting) {
      log::info("this node can't wait at the endpoint: {}", hosting.error().message);
      return wait_to_be_called();
    }
    member_.move_to(std::string(kOwnHub), settings_.endpoint.port);
  });
}

}  // namespace lockstep::rendezvous::hub
