// Opening: who hosts, how to reach the store, what this node is called. c10d_state.cc has the
// operations on the shared state.
#include "rendezvous/c10d.h"

#include "rendezvous/state_codec.h"

#include <fmt/core.h>

#include <unistd.h>

#include <utility>

namespace lockstep::rendezvous {
namespace {

bool on_loopback(const std::string& host) {
  const auto known = io::resolve_numeric(host, 0);
  return known && io::is_loopback(known->addresses.front());
}

}  // namespace

C10d::C10d(io::Loop& loop, C10dSettings settings)
    : loop_(loop), settings_(std::move(settings)), poll_(loop), watch_(loop) {}

C10d::~C10d() = default;

void C10d::open(Done<void> done) {
  open_done_ = std::move(done);
  poll_.start({}, [this] {
    facts_ = facts_of_this_machine();
    const auto& endpoint = settings_.endpoint;
    if (const auto known = io::resolve_numeric(endpoint.host, endpoint.port))
      endpoint_address_ = known->addresses.front();
    if (const auto choice = choose_host_at_once(endpoint.host, settings_.is_host, facts_))
      return settle_host(*choice);
    look_up_endpoint();
  });
}

void C10d::look_up_endpoint() {
  // Keeps the loop going, and ends a look-up that doesn't.
  poll_.start(settings_.read_timeout, [this] {
    fail_open(
        {Errc::timeout, "the look-up of '" + settings_.endpoint.host + "' does not end", {}, 0});
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

void C10d::look_up_self() {
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

void C10d::settle_host(const HostChoice& choice) {
  lookup_.reset();
  poll_.cancel();
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
  fail_open(std::move(error).within("host the rendezvous store"));
}

void C10d::reach(const std::string& host) {
  const store::AsyncClientOptions options{.host = host,
                                          .port = settings_.endpoint.port,
                                          .connect_timeout = settings_.read_timeout,
                                          .timeout = settings_.read_timeout};
  for (auto* client : {&quick_, &waits_}) {
    *client = std::make_unique<store::AsyncClient>(loop_, options);
    (*client)->on_loss([this](const Error& error) { lost(error); });
    (*client)->connect([this](Result<void> outcome) { connected(std::move(outcome)); });
  }
}

void C10d::connected(Result<void> outcome) {
  if (!open_done_) return;  // the other connection has failed already
  if (!outcome) {
    Error error = std::move(outcome).error();
    error.message = fmt::format("the connection to the c10d store has failed: {} ({})",
                                error.message, host_reason_);
    return fail_open(std::move(error));
  }
  if (++connections_ == 2) open_state();
}

void C10d::lost(const Error& error) {
  if (std::exchange(lost_, true)) return;
  watch_.cancel();
  const std::weak_ptr<const bool> life = life_;
  // An operation that waits for its time does not notice by itself.
  if (!operations_.empty() && poll_.active()) end(tl::make_unexpected(error));
  if (life.expired()) return;
  if (const auto tell = on_lost_) tell(error);
}

void C10d::open_state() {
  quick_->compare_set(state_key(), "", std::string(kNoState), [this](Result<std::string> stored) {
    if (!stored) return fail_open(std::move(stored).error());
    const NodeAddressFacts facts{.local_addr = settings_.local_addr,
                                 .endpoint_host = settings_.endpoint.host,
                                 .hosts = hosts(),
                                 .route_address = route_address(),
                                 .own_addresses = facts_.own_addresses,
                                 .hostname = facts_.hostname};
    member_.emplace(Node{choose_node_address(facts), getpid(), 0}, settings_.dynamic);
    if (const auto done = std::exchange(open_done_, nullptr)) done({});
  });
}

// A guest knows from its connection; a host asks the kernel for the way to the endpoint.
std::string C10d::route_address() const {
  if (!hosts()) return quick_->local_address();
  if (!endpoint_address_) return {};
  return address_towards(*endpoint_address_).value_or(std::string());
}

void C10d::fail_open(Error error) {
  lookup_.reset();
  poll_.cancel();
  if (const auto done = std::exchange(open_done_, nullptr))
    done(tl::make_unexpected(std::move(error)));
}

}  // namespace lockstep::rendezvous
