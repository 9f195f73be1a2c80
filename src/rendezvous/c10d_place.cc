#include "rendezvous/c10d_place.h"

#include "base/text.h"
#include "host/port_owner.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous {
namespace {

bool on_loopback(const std::string& host) {
  const auto known = io::resolve_numeric(host, 0);
  return known && io::is_loopback(known->addresses.front());
}

}  // namespace

C10dPlace::C10dPlace(io::Loop& loop, C10dPlaceSettings settings)
    : loop_(loop), settings_(std::move(settings)), turn_(loop) {}

C10dPlace::~C10dPlace() = default;

void C10dPlace::open(std::function<void(Result<void>)> done) {
  open_done_ = std::move(done);
  turn_.start({}, [this] {
    facts_ = facts_of_this_machine();
    const auto& endpoint = settings_.endpoint;
    if (const auto known = io::resolve_numeric(endpoint.host, endpoint.port))
      endpoint_address_ = known->addresses.front();
    if (const auto choice = choose_host_at_once(endpoint.host, settings_.is_host, facts_))
      return settle_host(*choice);
    look_up_endpoint();
  });
}

void C10dPlace::look_up_endpoint() {
  // Keeps the loop going, and ends a look-up that doesn't.
  turn_.start(settings_.read_timeout, [this] {
    finish(fail(Errc::timeout, "the look-up of '" + settings_.endpoint.host + "' does not end"));
  });
  lookup_ = std::make_unique<io::Lookup>(
      loop_, settings_.endpoint.host, settings_.endpoint.port, [this](Result<io::Resolved> found) {
        if (found) {
          endpoint_address_ = found->addresses.front();
          for (const auto& address : found->addresses)
            facts_.endpoint_addresses.push_back(io::address_text(address));
        }
        look_up_self();
      });
}

void C10dPlace::look_up_self() {
  lookup_ =
      std::make_unique<io::Lookup>(loop_, facts_.hostname, 0, [this](Result<io::Resolved> found) {
        if (found) {
          facts_.canonical_name = found->canonical_name;
          for (const auto& address : found->addresses)
            facts_.own_addresses.push_back(io::address_text(address));
        }
        settle_host(choose_host(settings_.endpoint.host, settings_.is_host, facts_));
      });
}

void C10dPlace::settle_host(const HostChoice& choice) {
  lookup_.reset();
  turn_.cancel();
  host_reason_ = choice.reason;
  auto& endpoint = settings_.endpoint;
  if (!choice.host) return reach(endpoint.host);
  // A job that says it stays on this machine is not offered to the network.
  const std::string at = on_loopback(endpoint.host) ? endpoint.host : "";
  auto server = store::Server::listen(loop_, {.host = at, .port = endpoint.port});
  if (server) {
    server_ = std::move(*server);
    endpoint.port = server_->port();
    return reach(at.empty() ? "127.0.0.1" : at);
  }
  Error error = std::move(server).error();
  if (choice.may_join_instead && error.code == Errc::already_exists) {
    host_reason_ += ", but somebody here hosts already";
    return reach(endpoint.host);
  }
  host::name_port_holder(error, endpoint.port);
  finish(tl::make_unexpected(std::move(error).within("host the rendezvous store")));
}

void C10dPlace::reach(const std::string& host) {
  keys_ = std::make_unique<TcpKeyValue>(
      loop_, store::AsyncClientOptions{.host = host,
                                       .port = settings_.endpoint.port,
                                       .connect_timeout = settings_.read_timeout,
                                       .timeout = settings_.read_timeout});
  keys_->on_lost([this](const Error& error) {
    if (on_lost_) on_lost_(error);
  });
  keys_->connect([this](Result<void> outcome) {
    if (outcome) return open_state();
    Error error = std::move(outcome).error();
    error.message = fmt::format("the connection to the c10d store has failed: {} ({})",
                                error.message, host_reason_);
    finish(tl::make_unexpected(std::move(error)));
  });
}

void C10dPlace::open_state() {
  state_ = std::make_unique<TextState<TcpKeyValue>>(*keys_, "torch.rendezvous." + settings_.run_id);
  state_->open([this](Result<void> outcome) {
    const NodeAddressFacts facts{.local_addr = settings_.local_addr,
                                 .endpoint_host = settings_.endpoint.host,
                                 .hosts = hosts(),
                                 .route_address = route_address(),
                                 .own_addresses = facts_.own_addresses,
                                 .hostname = facts_.hostname};
    node_address_ = choose_node_address(facts);
    finish(std::move(outcome));
  });
}

// A guest knows from its connection; a host asks the kernel for the way to the endpoint.
std::string C10dPlace::route_address() const {
  if (!hosts()) return keys_->local_address();
  if (!endpoint_address_) return {};
  return address_towards(*endpoint_address_).value_or(std::string());
}

void C10dPlace::finish(Result<void> outcome) {
  lookup_.reset();
  turn_.cancel();
  if (const auto done = std::exchange(open_done_, nullptr)) done(std::move(outcome));
}

std::size_t C10dPlace::guests() const {
  constexpr std::size_t kOwn = 2;
  if (!server_) return 0;
  const std::size_t all = server_->stats().connections;
  return all > kOwn ? all - kOwn : 0;
}

std::string C10dPlace::describe_hosting() const {
  std::string text = fmt::format("the store that this node hosts at port {}", server_->port());
  const auto& addresses = facts_.own_addresses;
  if (settings_.is_host && endpoint_address_ && !io::is_loopback(*endpoint_address_) &&
      std::find(addresses.begin(), addresses.end(), io::address_text(*endpoint_address_)) ==
          addresses.end())
    text += fmt::format(" (is_host says so, but {} is no address of this machine)",
                        settings_.endpoint.host);
  // Keys of the state: "/torch.rendezvous.ID".
  constexpr std::string_view kState = "/torch.rendezvous.";
  for (const std::string& key : server_->engine().keys_that_start_with(kState, 64)) {
    const std::string id = key.substr(kState.size());
    if (id == settings_.run_id || id.starts_with(settings_.run_id + ".") ||
        id.starts_with(settings_.run_id + "/") || id.find('/') != std::string::npos)
      continue;
    text += fmt::format("; somebody asks here for the --rdzv-id '{}'", printable(id));
    break;
  }
  return text;
}

std::string C10dPlace::describe() const {
  if (!keys_) return fmt::format("the look-up of '{}'", settings_.endpoint.host);
  if (hosts()) return describe_hosting();
  std::string text = "the store at " + keys_->place();
  if (!open_done_) return text;
  const Error* tried = keys_->last_attempt();
  return fmt::format("{} (last attempt: {}; this node does not host it: {})", text,
                     tried != nullptr ? tried->message : "no answer yet", host_reason_);
}

}  // namespace lockstep::rendezvous
