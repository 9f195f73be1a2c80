// This node's part in the succession of hosts: opening a hub when its turn comes, and closing the
// hub when another node leads.
#include "base/log.h"
#include "io/listen.h"
#include "rendezvous/hub/hub_backend.h"

#include <utility>

namespace lockstep::rendezvous::hub {

void HubBackend::expect_succession() {
  const auto listed = static_cast<std::uint32_t>(settings_.hosts.size());
  const std::uint32_t own = settings_.place.value_or(listed);
  if (!found_.choice.host) reserve();
  member_.set_witness(Witness(own));
  member_.on_unlinked([this](const Error& error) { succession_->lost(error); });
  member_.on_charter([this] { succession_->found(); });
  succession_ = std::make_unique<HubSuccession>(
      loop_,
      HubSuccession::Settings{
          .hosts = settings_.hosts, .own = own, .patience = settings_.succession_patience},
      member_,
      HubSuccession::Owner{.open_hub = [this] { return take_over(); },
                           .close_hub =
                               [this] {
                                 // A hub that leads must stay open for its members.
                                 if (server_ && !server_->leads()) stop_hosting();
                               }});
}

void HubBackend::add_ledger(hub::HubServerSettings& server, bool takes_over) {
  server.ledger = Ledger::Settings{.host = agent_,
                                   .place = settings_.place.value_or(0),
                                   // The hub's term must be later than any term promised by this
                                   // node.
                                   .after = member_.witness()->promised(),
                                   .takes_over = takes_over};
  for (const codec::RdzvEndpoint& host : settings_.hosts)
    server.hosts.push_back(host.host);
  server.coordinator.fenced = true;
  server.on_deposed = [this](const std::string& why) { deposed(why); };
}

Status HubBackend::take_over() {
  if (server_) return {};
  hub::HubServerSettings server = hub_server_settings(settings_, agent_);
  // The other nodes must reach this hub, so listen on all addresses.
  server.listen = "";
  server.port = settings_.hosts.at(*settings_.place).port;
  add_ledger(server, true);
  reserved_.reset();
  auto opened = hub::HubServer::open(loop_, std::move(server));
  if (!opened) {
    reserve();
    return tl::make_unexpected(std::move(opened).error());
  }
  server_ = std::move(*opened);
  return {};
}

void HubBackend::stop_hosting() {
  server_.reset();
  reserve();
}

// A job may run for weeks before this node takes over. Without the reservation a connection of its
// workers could have the port by then. A failure is no error: the next host takes over.
void HubBackend::reserve() {
  if (!settings_.place || *settings_.place >= settings_.hosts.size()) return;
  auto reserved = io::reserve_port(settings_.hosts[*settings_.place].port);
  if (reserved)
    reserved_ = std::move(*reserved);
  else
    log::info("this node may be unable to host the rendezvous later: {}", reserved.error().message);
}

// Close the server one turn later, after the last frames to the guests have been sent.
void HubBackend::deposed(const std::string& why) {
  log::warning("this node does not host the rendezvous any more: {}", why);
  deposed_.start({}, [this] {
    // The guests go to the other host: do not wait for them.
    if (left_done_) return end_hosting();
    stop_hosting();
  });
}

}  // namespace lockstep::rendezvous::hub
