#include "rendezvous/dynamic/c10d_place.h"

#include "base/text.h"
#include "host/port_owner.h"
#include "rendezvous/dynamic/state_codec.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::dynamic {
namespace {

// Returns the address of a participant of the given state, for messages.
std::string first_of(const std::optional<std::string>& text) {
  const auto state = decode_state(text.value_or(std::string()));
  if (!state || state->participants.empty()) return "another node";
  return printable(state->participants.begin()->first.addr);
}

}  // namespace

C10dPlace::C10dPlace(io::Loop& loop, C10dPlaceSettings settings)
    : loop_(loop), settings_(std::move(settings)) {}

C10dPlace::~C10dPlace() = default;

void C10dPlace::open(std::function<void(Result<void>)> done) {
  open_done_ = std::move(done);
  reach_until_ = io::Clock::now() + settings_.connect_timeout;
  finder_ =
      std::make_unique<HostFinder>(loop_, settings_.endpoint, settings_.is_host,
                                   settings_.connect_timeout, [this](Result<FoundHost> found) {
                                     if (!found)
                                       return finish(tl::make_unexpected(std::move(found).error()));
                                     found_ = std::move(*found);
                                     finder_.reset();
                                     settle_host();
                                   });
}

void C10dPlace::settle_host() {
  host_reason_ = found_.choice.reason;
  auto& endpoint = settings_.endpoint;
  if (!found_.choice.host) return reach(endpoint.host);
  // A loopback endpoint serves this machine alone. Listen on loopback only then.
  const std::string at = listening_place(endpoint.host);
  auto server = store::Server::listen(loop_, {.host = at, .port = endpoint.port});
  if (server) {
    server_ = std::move(*server);
    endpoint.port = server_->port();
    server_->on_departure([this] { look_who_left(); });
    if (settings_.is_host) check_host();
    return reach(at.empty() ? "127.0.0.1" : at);
  }
  Error error = std::move(server).error();
  // Another agent on this machine has the port and hosts. torchrun's agents join it too.
  if (found_.choice.may_join_instead && error.code == Errc::already_exists) {
    port_taken_ = true;
    return reach(endpoint.host);
  }
  host::name_port_holder(error, endpoint.port);
  finish(tl::make_unexpected(std::move(error).within("host the rendezvous store")));
}

// Finding the holder of a port takes milliseconds, so do it only if the text is shown.
std::string C10dPlace::host_reason() const {
  if (!port_taken_) return host_reason_;
  const std::string holder = host::port_holder(settings_.endpoint.port);
  return fmt::format("{}, but port {} is held by {}", host_reason_, settings_.endpoint.port,
                     holder.empty() ? "another program" : holder);
}

// Warns if is_host=1 contradicts the endpoint. This node hosts because the user said so, but by
// itself it would not have. Two nodes with is_host=1 make two stores, each with some of the nodes.
void C10dPlace::check_host() {
  finder_ = std::make_unique<HostFinder>(
      loop_, settings_.endpoint, std::nullopt, settings_.connect_timeout,
      [this](const Result<FoundHost>& found) {
        finder_.reset();
        if (!found || found->choice.host || !found->endpoint_address) return;
        host_reason_ += ", but " + found->choice.reason + "; only one node may have is_host=1";
      });
}

void C10dPlace::reach(const std::string& host) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(reach_until_ - io::Clock::now());
  keys_ = std::make_unique<TcpKeyValue>(
      loop_,
      store::AsyncClientOptions{.host = host,
                                .port = settings_.endpoint.port,
                                .connect_timeout = std::max(left, std::chrono::milliseconds(0)),
                                .timeout = settings_.read_timeout});
  keys_->on_lost([this](const Error& error) {
    if (on_lost_) on_lost_(host_gone(error));
  });
  keys_->connect([this](Result<void> outcome) {
    if (outcome) return open_state();
    Error error = std::move(outcome).error();
    error.message = fmt::format("the connection to the c10d store has failed: {} ({})",
                                error.message, host_reason());
    finish(tl::make_unexpected(std::move(error)));
  });
}

void C10dPlace::open_state() {
  state_ = std::make_unique<TextState<TcpKeyValue>>(*keys_, "torch.rendezvous." + settings_.run_id);
  state_->open([this](Result<void> outcome) {
    node_address_ = own_node_address(found_, settings_.endpoint.host, hosts(), settings_.local_addr,
                                     keys_->local_address());
    if (!outcome) outcome = tl::make_unexpected(host_gone(outcome.error()));
    finish(std::move(outcome));
  });
}

// Explains the connection error of a guest with an earlier connection.
Error C10dPlace::host_gone(Error error) const {
  if (!hosts() && error.code == Errc::unavailable)
    error.message = fmt::format("its host is gone or has left ({})", error.message);
  return error;
}

void C10dPlace::finish(Result<void> outcome) {
  if (const auto done = std::exchange(open_done_, nullptr)) done(std::move(outcome));
}

void C10dPlace::part() {
  if (server_) return;
  state_.reset();
  keys_.reset();
}

std::size_t C10dPlace::guests() const {
  // The host's own agent holds two connections, for requests and for blocking waits.
  constexpr std::size_t kOwn = 2;
  if (!server_) return 0;
  const std::size_t all = server_->stats().connections;
  return all > kOwn ? all - kOwn : 0;
}

std::string C10dPlace::announcement(const std::string& from) const {
  return fmt::format("lockstep/here/{}/{}", settings_.run_id, from);
}

void C10dPlace::announce(const Node& self) {
  if (!hosts()) keys_->set(announcement(keys_->local_place()), to_text(self), nullptr);
}

// Reports the nodes with closed connections. A guest behind address translation has announced an
// address unknown to the server. Missing heartbeats reveal the end of such a guest.
void C10dPlace::look_who_left() {
  for (const std::string& from : server_->take_departed()) {
    // PyTorch's clients put a slash before each key.
    const std::string key = "/" + announcement(from);
    const auto node = server_->engine().get(key);
    if (!node) continue;
    server_->engine().erase(key);
    if (on_guest_lost_) on_guest_lost_(*node);
  }
}

void C10dPlace::on_departure(std::function<void()> fn) {
  if (!server_) return;
  if (fn) server_->await_departures();
  server_->on_departure(std::move(fn));
}

std::string C10dPlace::describe_hosting() const {
  const std::string reason =
      settings_.is_host ? host_reason_ : hosting_reason(found_, settings_.endpoint.host);
  return fmt::format("the store hosted by this node at port {} ({})", server_->port(), reason);
}

// Names an agent that uses another run id: the agent has created its own state in our store.
std::string C10dPlace::strangers() const {
  if (!server_) return {};
  // Keys of the state: "/torch.rendezvous.ID".
  constexpr std::string_view kState = "/torch.rendezvous.";
  for (const std::string& key : server_->engine().keys_that_start_with(kState, 64)) {
    const std::string id = key.substr(kState.size());
    // Skip this job's keys, and the keys below another job's state.
    if (id == settings_.run_id || id.starts_with(settings_.run_id + ".") ||
        id.starts_with(settings_.run_id + "/") || id.find('/') != std::string::npos)
      continue;
    return fmt::format("{} asks here for the --rdzv-id '{}'", first_of(server_->engine().get(key)),
                       printable(id));
  }
  return {};
}

std::string C10dPlace::describe() const {
  if (!keys_) return fmt::format("the look-up of '{}'", settings_.endpoint.host);
  if (hosts()) return describe_hosting();
  std::string text = "the store at " + keys_->place();
  if (!open_done_) return text;
  return fmt::format("{} (last attempt: {}; this node is not the host: {})", text,
                     keys_->attempt_text(), host_reason());
}

}  // namespace lockstep::rendezvous::dynamic
