#include "rendezvous/static_backend/static_store.h"

#include "base/log.h"
#include "base/text.h"
#include "host/port_owner.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::static_backend {
namespace {

// The counter of clients that know their world, PyTorch's workers included. The key has no leading
// "/".
constexpr std::string_view kInitKey = "init/";
// torchrun's host polls this key every 10 ms; a local look costs nothing.
constexpr std::chrono::milliseconds kCountPause{1};
constexpr std::size_t kMostFreeWords = 512;
constexpr std::chrono::seconds kLookUp{30};

}  // namespace

StaticStore::StaticStore(io::Loop& loop, const StaticSettings& settings, StaticKeys names)
    : loop_(loop),
      settings_(settings),
      names_(std::move(names)),
      place_(settings.master),
      turn_(loop) {}

std::string StaticStore::at() const {
  return fmt::format("{}:{}", place_.addr, place_.port);
}

Status StaticStore::host() {
  auto server =
      store::Server::listen(loop_, {.host = listening_place(place_.addr), .port = place_.port});
  if (server) {
    server_ = std::move(*server);
    place_.port = server_->port();
    // Before any guest can have connected, so every guest finds the number.
    server_->set("/" + names_.nodes(), std::to_string(settings_.nodes));
    check_master();
    return {};
  }
  Error error = std::move(server).error();
  host::name_port_holder(error, place_.port);
  // torchrun's default port is 29500, so two jobs on one machine collide easily.
  if (error.code == Errc::already_exists) error.hint = "choose another --master-port for this job";
  return Failure(std::move(error));
}

// Warns if the master's address belongs to another machine. A user who forgets --node-rank gets
// rank 0. Only a warning: behind address translation the setting may be right.
void StaticStore::check_master() {
  finder_ = std::make_unique<HostFinder>(
      loop_, codec::RdzvEndpoint{place_.addr, place_.port}, std::nullopt, kLookUp,
      [this](const Result<FoundHost>& found) {
        finder_.reset();
        if (!found || found->choice.host || !found->endpoint_address) return;
        misplaced_ =
            fmt::format("--node-rank is 0{}, but {}: give --node-rank on the other nodes",
                        settings_.offer.node_rank ? "" : " (not given)", found->choice.reason);
        log::warning("{}", misplaced_);
      });
}

void StaticStore::open(Done<std::optional<std::int64_t>> done,
                       std::function<void(const Error&)> lost) {
  deadline_ = io::Clock::now() + settings_.timeout;
  done_ = std::move(done);
  if (hosts()) {
    if (const Status hosting = host(); !hosting)
      return turn_.start({}, [this, hosting] { answer(tl::make_unexpected(hosting.error())); });
  }
  // The host reaches its own store over loopback, whatever firewall guards its address.
  const std::string at = hosts() && server_->options().host.empty() ? "127.0.0.1" : place_.addr;
  keys_ = std::make_unique<TcpKeyValue>(
      loop_, store::AsyncClientOptions{.host = at,
                                       .port = place_.port,
                                       .connect_timeout = settings_.timeout,
                                       .timeout = settings_.timeout});
  keys_->on_lost(std::move(lost));
  keys_->connect([this](Result<void> outcome) { connected(std::move(outcome)); });
}

void StaticStore::answer(Result<std::optional<std::int64_t>> outcome) {
  opened_ = outcome.has_value();
  if (const auto done = std::exchange(done_, nullptr)) done(std::move(outcome));
}

void StaticStore::connected(Result<void> outcome) {
  if (!outcome) {
    Error error = std::move(outcome).error();
    error.message = fmt::format("the connection to the store of node rank 0 at {} has failed: {}",
                                at(), error.message);
    return answer(tl::make_unexpected(std::move(error)));
  }
  if (hosts()) {
    // The host counts itself, as in torchrun.
    [[maybe_unused]] const auto count = server_->engine().add(kInitKey, 1);
    // The count was changed inside the engine, past the server. Wake the clients waiting for it.
    server_->flush();
    return count_nodes();
  }
  keys_->probe(names_.nodes(), [this](Result<std::optional<std::string>> nodes) {
    if (!nodes) return answer(tl::make_unexpected(std::move(nodes).error()));
    compare_nodes(*nodes);
  });
}

void StaticStore::compare_nodes(const std::optional<std::string>& nodes) {
  if (nodes && *nodes != std::to_string(settings_.nodes)) return refuse(*nodes);
  // A round number here means that this node comes to a running job.
  keys_->probe(names_.round(), [this](Result<std::optional<std::string>> round) {
    if (!round) return answer(tl::make_unexpected(std::move(round).error()));
    const auto number = *round ? parse_int(**round) : std::nullopt;
    if (!number || *number < 0) return arrive();
    answer(std::optional<std::int64_t>(*number));
  });
}

void StaticStore::arrive() {
  keys_->add_bare(kInitKey, 1);
  answer(std::optional<std::int64_t>());
}

// Refuses this node because of its --nnodes. torchrun would begin with too few nodes, or wait for
// nodes that never come.
void StaticStore::refuse(const std::string& nodes) {
  const std::string who = fmt::format("node rank {} ({}) was started with --nnodes {}",
                                      settings_.node_rank, settings_.offer.host, settings_.nodes);
  Error error{Errc::invalid_input,
              fmt::format("{}, node rank 0 at {} with --nnodes {}", who, at(),
                          printable(nodes, kMostFreeWords)),
              "give the same --nnodes on all nodes", 0};
  // Write first, so that the host can say why a node is missing.
  keys_->set(names_.other_nodes(), who, [this, error = std::move(error)](const Result<void>&) {
    answer(tl::make_unexpected(error));
  });
}

std::string StaticStore::turned_away() const {
  const auto who = server_->engine().get("/" + names_.other_nodes());
  if (!who) return {};
  return fmt::format("{}, this node with --nnodes {}: it was turned away",
                     printable(*who, kMostFreeWords), settings_.nodes);
}

std::int64_t StaticStore::joined() const {
  const auto text = server_->engine().get(kInitKey);
  return text ? parse_int(*text).value_or(0) : 0;
}

void StaticStore::count_nodes() {
  const std::int64_t count = joined();
  if (!told_turned_away_ && !turned_away().empty()) {
    told_turned_away_ = true;
    log::warning("{}", turned_away());
  }
  if (count >= settings_.nodes) return answer(std::optional<std::int64_t>());
  if (io::Clock::now() >= deadline_)
    return answer(
        fail(Errc::timeout,
             // torchrun's words for this timeout.
             fmt::format("timed out after {} seconds waiting for clients. {}/{} clients joined",
                         std::chrono::ceil<std::chrono::seconds>(settings_.timeout).count(), count,
                         settings_.nodes),
             fmt::format("every node needs --nnodes {}, its own --node-rank and --master-addr {} "
                         "--master-port {}",
                         settings_.nodes, place_.addr, place_.port)));
  turn_.start(kCountPause, [this] { count_nodes(); });
}

// Waits until the guests are gone. `stay` comes by value, because this function may be called from
// a callback that it replaces.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
void StaticStore::await_guests(Stay stay) {
  // The host's own agent holds two connections.
  constexpr std::size_t kOwn = 2;
  const auto now = io::Clock::now();
  if (!server_ || server_->stats().connections <= kOwn || stay.all_gone() || now >= stay.until) {
    // Clear the callback first: it holds a copy of `stay`.
    if (server_) server_->on_departure(nullptr);
    turn_.cancel();
    return stay.done();
  }
  server_->await_departures();
  server_->on_departure([this, stay] { await_guests(stay); });
  turn_.start(std::min<io::Duration>(stay.until - now, settings_.heartbeat_interval), [this, stay] {
    stay.look();
    await_guests(stay);
  });
}

std::string StaticStore::waiting_for() const {
  if (!hosts())
    return fmt::format("node rank 0 at {} (last attempt: {})", at(),
                       keys_ ? keys_->attempt_text() : "");
  return fmt::format(
      "{} of {} nodes have come to {}", server_ ? joined() : 0, settings_.nodes,
      misplaced_.empty() ? at() : fmt::format("port {} of this machine", place_.port));
}

std::string StaticStore::remarks() const {
  std::string text;
  if (!misplaced_.empty()) text += "; " + misplaced_;
  if (server_ && !turned_away().empty()) text += "; " + turned_away();
  return text;
}

}  // namespace lockstep::rendezvous::static_backend
