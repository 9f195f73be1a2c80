#include "rendezvous/dynamic/c10d_place.h"

#include "base/text.h"
#include "host/port_owner.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous {
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
  const std::string at = listening_place(endpoint.host);
  auto server = store::Server::listen(loop_, {.host = at, .port = endpoint.port});
  if (server) {
    server_ = std::move(*server);
    endpoint.port = server_->port();
    return reach(at.empty() ? "127.0.0.1" : at);
  }
  Error error = std::move(server).error();
  if (found_.choice.may_join_instead && error.code == Errc::already_exists) {
    host_reason_ += ", but somebody here hosts already";
    return reach(endpoint.host);
  }
  host::name_port_holder(error, endpoint.port);
  finish(tl::make_unexpected(std::move(error).within("host the rendezvous store")));
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
    node_address_ = own_node_address(found_, settings_.endpoint.host, hosts(), settings_.local_addr,
                                     keys_->local_address());
    finish(std::move(outcome));
  });
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
  constexpr std::size_t kOwn = 2;
  if (!server_) return 0;
  const std::size_t all = server_->stats().connections;
  return all > kOwn ? all - kOwn : 0;
}

void C10dPlace::on_departure(std::function<void()> fn) {
  if (!server_) return;
  if (fn) server_->await_departures();
  server_->on_departure(std::move(fn));
}

std::string C10dPlace::describe_hosting() const {
  std::string text = fmt::format("the store that this node hosts at port {} ({})", server_->port(),
                                 hosting_reason(found_, settings_.endpoint.host));
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
  return fmt::format("{} (last attempt: {}; this node does not host it: {})", text,
                     keys_->attempt_text(), host_reason_);
}

}  // namespace lockstep::rendezvous
