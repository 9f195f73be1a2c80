// The connections of the hub: accepting, greeting, closing.
#include "rendezvous/hub/hub_server.h"

#include "base/log.h"
#include "base/text.h"
#include "io/listen.h"
#include "io/resolve.h"
#include "rendezvous/hub/hub_auth.h"
#include "rendezvous/hub/hub_server_guest.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace lockstep::rendezvous::hub {
namespace {
// Thousands of agents may connect within milliseconds.
constexpr int kBacklog = 8192;
constexpr int kAcceptsPerWakeup = 256;
constexpr std::size_t kMostTold = 256;
}  // namespace

Result<std::unique_ptr<HubServer>> HubServer::open(io::Loop& loop, HubServerSettings settings) {
  LOCKSTEP_TRY_ASSIGN(io::Listener listener,
                      io::open_listener(settings.listen, settings.port, kBacklog));
  std::unique_ptr<HubServer> server(new HubServer(loop, std::move(settings)));
  server->port_ = listener.port;
  rlimit files{};
  // Strangers may use half of the descriptors. The rest is for members, workers and their pipes.
  if (getrlimit(RLIMIT_NOFILE, &files) == 0)
    server->settings_.max_unproven =
        std::min<std::size_t>(server->settings_.max_unproven, files.rlim_cur / 2);
  server->listener_ = std::move(listener.fd);
  // Given up for a moment when no descriptor is left: see refuse_one().
  server->spare_ = io::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  server->accept_watch_ = std::make_unique<io::Watch>(loop, server->listener_.get());
  server->accept_watch_->start(io::kReadable,
                               [self = server.get()](int) { self->on_acceptable(); });
  server->warn_if_open_to_all();
  server->arm();
  return server;
}

HubServer::HubServer(io::Loop& loop, HubServerSettings settings)
    : loop_(loop),
      settings_(std::move(settings)),
      opened_(io::Clock::now()),
      coordinator_(settings_.coordinator, io::Clock::now()),
      quorum_(settings_.coordinator.dead),
      timer_(loop) {
  if (!settings_.ledger) return;
  ledger_.emplace(*settings_.ledger);
  // A hub that takes over must first win a quorum.
  leads_ = !settings_.ledger->takes_over;
}

HubServer::~HubServer() = default;

void HubServer::warn_if_open_to_all() const {
  // A hub that takes over, or only tells the way, belongs to a job whose first hub has said so.
  const bool later = settings_.redirect || (settings_.ledger && settings_.ledger->takes_over);
  if (settings_.token || later) return;
  const auto known = io::resolve_numeric(settings_.listen, 0);
  // On loopback only users of this machine can reach the port.
  if (known && io::is_loopback(known->addresses.front())) return;
  log::warning(
      "no job token is set: any program that reaches port {} of this node can join the rendezvous "
      "'{}' (--rdzv-token-file prevents this)",
      port_, printable(settings_.coordinator.run_id));
}

// --- connections ---

void HubServer::on_acceptable() {
  for (int i = 0; i < kAcceptsPerWakeup; ++i) {
    io::Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd) {
      admit(std::move(fd));
    } else if (errno == EMFILE || errno == ENFILE) {
      // accept() fails without a free descriptor even if no connection waits. If one does, close
      // the oldest connection still in its greeting.
      pollfd waiting{listener_.get(), POLLIN, 0};
      if (poll(&waiting, 1, 0) != 1) return;
      if (unproven_.empty()) return refuse_one();
      close(*unproven_.begin());
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

// Accepts one connection in place of the spare descriptor and closes it. No descriptor and no
// stranger to close are left. Left in the queue, the connection would make the loop spin and its
// peer hang.
void HubServer::refuse_one() {
  if (first_time("", "descriptors"))
    log::warning("rendezvous on port {}: out of file descriptors at {} connections, refusing more",
                 port_, guests_.size());
  spare_.reset();
  const io::Fd refused(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  spare_ = io::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

void HubServer::admit(io::Fd fd) {
  ++counts_.accepted;
  const PeerId id = ++last_id_;
  auto& guest = *(guests_[id] = std::make_unique<Guest>());
  guest.id = id;
  guest.from = io::peer_name(fd.get());
  guest.since = io::Clock::now();
  guest.stream = std::make_unique<HubStream>(
      loop_, std::move(fd),
      HubStream::Events{
          .frame = [this, at = &guest](Frame frame) { on_frame(*at, std::move(frame)); },
          .bytes = [this, id] { coordinator_.hear(id, io::Clock::now()); },
          .ended = [this, at = &guest](const Error& error) { on_end(*at, error); }});
  unproven_.insert(id);
  // Ids ascend, so the first connection is the oldest.
  if (unproven_.size() > settings_.max_unproven) close(*unproven_.begin());
}

void HubServer::close(PeerId id) {
  unproven_.erase(id);
  const auto at = guests_.find(id);
  if (at == guests_.end()) return;
  const Guest& guest = *at->second;
  if (guest.state == Guest::State::member) --counts_.guests;
  if (guest.state == Guest::State::vote_only)
    log::info("{} votes no more in this rendezvous", printable(guest.hello.name));
  guests_.erase(at);
  if (ledger_) ledger_->lose(id);
}

void HubServer::on_end(Guest& guest, const Error& error) {
  const PeerId id = guest.id;
  const bool member = guest.admitted();
  // Malformed bytes deserve a line in the log; a closed connection does not.
  if (error.code == Errc::corrupt) {
    tell_stranger(guest);
    ++counts_.turned_away;
  }
  close(id);
  if (member) coordinator_.lose(id, error.message, io::Clock::now());
  pump();
}

// --- greeting ---

void HubServer::on_frame(Guest& guest, Frame frame) {
  if (guest.admitted()) {
    const PeerId id = guest.id;
    const auto now = io::Clock::now();
    if (ledger_ && take_for_ledger(guest, frame)) return pump();
    if (auto taken = coordinator_.take(id, std::move(frame), now); !taken) {
      turn_away(guest, Why::malformed, taken.error().message, {});
      // turn_away() has closed the connection without telling the coordinator.
      coordinator_.lose(id, "it sent " + taken.error().message, now);
    }
    return pump();
  }
  if (guest.state == Guest::State::redirected) return;
  const auto* hello = std::get_if<Hello>(&frame);
  const auto* proof = std::get_if<Proof>(&frame);
  if (guest.state == Guest::State::hello && hello != nullptr) return on_hello(guest, *hello);
  if (guest.state == Guest::State::proof && proof != nullptr) return on_proof(guest, *proof);
  turn_away(guest, Why::malformed,
            fmt::format("a '{}' frame before the greeting was done", frame_name(frame)), {});
}

void HubServer::turn_away(Guest& guest, Why why, const std::string& text, const std::string& hint) {
  tell_turned_away(guest, text);
  guest.stream->send(Refusal{why, text, hint});
  close(guest.id);
}

void HubServer::on_hello(Guest& guest, const Hello& hello) {
  const std::string& run_id = settings_.coordinator.run_id;
  guest.hello = hello;
  // Compare versions first: the other fields of another version are unreadable.
  if (hello.version != kVersion)
    return turn_away(guest, Why::version,
                     fmt::format("version {} of the lockstep rendezvous protocol meets version {} "
                                 "of the host",
                                 hello.version, kVersion),
                     "install the same lockstep on all nodes");
  if (run_id_on_the_wire(run_id) != hello.run_id) return refuse_run_id(guest);
  if (settings_.token && !hello.has_token)
    return turn_away(guest, Why::token,
                     fmt::format("the rendezvous '{}' wants a job token, and {} has none",
                                 printable(run_id), printable(hello.name)),
                     "give every node the same --rdzv-token-file");
  if (!settings_.token && hello.has_token)
    return turn_away(guest, Why::token,
                     fmt::format("{} has a job token, and the host of the rendezvous '{}' has none",
                                 printable(hello.name), printable(run_id)),
                     "give every node the same --rdzv-token-file");
  if (!settings_.token) return welcome(guest);
  guest.state = Guest::State::proof;
  // A fresh nonce for each greeting, so a recorded proof cannot be used again.
  guest.nonce = random_nonce();
  guest.stream->send(Challenge{guest.nonce});
}

// Refuses an agent that asked for another run id. The host's own log names both run ids. The
// stranger is not told this hub's run id.
void HubServer::refuse_run_id(Guest& guest) {
  const std::string text = fmt::format("{} looks for the rendezvous '{}', but this is ",
                                       printable(guest.hello.name), printable(guest.hello.run_id));
  tell_turned_away(guest, text + "'" + printable(settings_.coordinator.run_id) + "'");
  guest.stream->send(
      Refusal{Why::run_id, text + "another one",
              "give every node the same --rdzv-id, and every job a port of its own (the host's log "
              "shows the host's --rdzv-id)"});
  close(guest.id);
}

void HubServer::on_proof(Guest& guest, const Proof& proof) {
  const std::string& run_id = guest.hello.run_id;
  const Mac expected = prove(*settings_.token, Side::agent, guest.hello.nonce, guest.nonce, run_id);
  if (same_mac(expected, proof.mac)) return welcome(guest);
  turn_away(guest, Why::token,
            fmt::format("the job token of {} does not match the rendezvous '{}'",
                        printable(guest.hello.name), printable(run_id)),
            "give every node the same --rdzv-token-file");
}

Welcome HubServer::welcome_for(const Guest& guest) const {
  const auto ms = [](Ms time) { return static_cast<std::uint32_t>(time.count()); };
  Welcome welcome{.heartbeat_ms = ms(settings_.coordinator.heartbeat),
                  .dead_ms = ms(settings_.coordinator.dead)};
  if (settings_.token)
    welcome.mac =
        prove(*settings_.token, Side::hub, guest.hello.nonce, guest.nonce, guest.hello.run_id);
  return welcome;
}

void HubServer::welcome(Guest& guest) {
  if (settings_.redirect) {
    const auto place = settings_.redirect();
    if (!place) return close(guest.id);
    // Still counted with the greetings, so their limits in number and time hold.
    guest.state = Guest::State::redirected;
    guest.stream->send(welcome_for(guest));
    return guest.stream->send(*place);
  }
  guest.state = Guest::State::member;
  // A greeting was limited to a small size. A member may send whole reports.
  guest.stream->set_limit(FrameReader::kFromAgents);
  unproven_.erase(guest.id);
  ++counts_.guests;
  guest.stream->send(welcome_for(guest));
  if (ledger_) ledger_->arrive(guest.id, guest.hello.agent);
  // lead() tells the coordinator about guests that arrive before.
  if (leads_) coordinator_.arrive(guest.id, guest.hello.agent, guest.hello.name, io::Clock::now());
  pump();
}

// --- the coordinator ---

void HubServer::pump() {
  // The ledger's answer can free output of the coordinator, which can again need the ledger.
  do {
    pump_coordinator();  // closes connections, which the ledger must know first
    if (!ledger_ || ledger_->has_quorum()) coordinator_.conclude();
    pump_coordinator();
  } while (ledger_ && pump_ledger());
  arm();
  // Last statement: the callback may destroy this server.
  if (when_empty_ && counts_.guests == 0) std::exchange(when_empty_, nullptr)();
}

void HubServer::pump_coordinator() {
  const auto request = coordinator_.take_permit_request();
  // A hub whose own node has left can record nothing.
  const bool ends_well = request && request->end == PermitRequest::End::succeeded;
  if (ends_well && (!ledger_ || ledger_->has_host())) end_.begin();
  send_output();
  if (request && ledger_) ledger_->write(*request);
  if (request && !ledger_) ask_permission(*request);
}

void HubServer::send_output() {
  for (const auto& output : end_.let_through(coordinator_.take_output())) {
    const auto at = guests_.find(output.to);
    // The guest may be gone since the coordinator decided.
    if (at == guests_.end()) continue;
    if (!output.turned_away.empty()) tell_turned_away(*at->second, output.turned_away);
    if (output.bytes) at->second->stream->send(output.bytes);
    if (output.close) close(output.to);
  }
}

void HubServer::ask_permission(const PermitRequest& request) {
  settings_.permit(
      request, calls_([this, round = request.round, end = request.end](const Status& permitted) {
        if (end == PermitRequest::End::succeeded) end_.release();
        if (!permitted)
          return shut_down("the host of the rendezvous gives up: " + permitted.error().message);
        coordinator_.permit(round, io::Clock::now());
        pump();
      }));
}

void HubServer::arm() {
  const Time next = coordinator_.next_time();
  // Restarting the timer for every frame would be wasteful.
  if (next == armed_ && timer_.active()) return;
  armed_ = next;
  timer_.start(next - io::Clock::now(), [this] {
    const auto now = io::Clock::now();
    coordinator_.tick(now);
    sweep(now);
    if (ledger_) watch_quorum(now);
    pump();
  });
}

// Closes connections whose greeting takes too long.
void HubServer::sweep(Time now) {
  while (!unproven_.empty()) {
    const auto& guest = *guests_.at(*unproven_.begin());
    // unproven_ is ordered by age, so the rest is younger.
    if (now - guest.since < settings_.time_to_prove) return;
    ++counts_.turned_away;
    close(guest.id);
  }
}

void HubServer::shut_down(const std::string& why) {
  coordinator_.shut_down(why, io::Clock::now());
  pump();
}

void HubServer::when_empty(std::function<void()> done) {
  when_empty_ = std::move(done);
  pump();
}

// --- words ---

std::string HubServer::staying_for() const {
  const std::string names = coordinator_.present();
  if (names.empty()) return {};
  return fmt::format(
      "this node hosts the rendezvous and stays until the other nodes have left: {} {} still there",
      printable(names, kMaxLine), coordinator_.peers() == 1 ? "is" : "are");
}

// Strangers choose what they send, so the number of lines must be bounded.
bool HubServer::first_time(const std::string& from, const std::string& what) {
  return told_.size() < kMostTold && told_.insert(from + " " + what).second;
}

void HubServer::tell_turned_away(const Guest& guest, const std::string& text) {
  ++counts_.turned_away;
  const std::string address = guest.from.substr(0, guest.from.rfind(':'));
  if (first_time(address, text))
    log::warning("rendezvous on port {}: turned {} away: {}", port_, guest.from,
                 printable(text, kMaxLine));
}

void HubServer::tell_stranger(const Guest& guest) {
  const std::string address = guest.from.substr(0, guest.from.rfind(':'));
  const std::string& first = guest.stream->reader().stranger();
  if (!first.empty() && recognise(first) == Stranger::tcp_store) {
    if (first_time(address, "c10d"))
      log::warning(
          "a c10d client (torchrun, or --rdzv-backend c10d) at {} speaks c10d to port {}, where "
          "the "
          "lockstep rendezvous '{}' waits: give all agents --rdzv-backend c10d",
          guest.from, port_, printable(settings_.coordinator.run_id));
    return;
  }
  if (first_time(address, "nonsense"))
    log::warning("rendezvous on port {}: closed the connection of {}: {}", port_, guest.from,
                 guest.stream->reader().error());
}

}  // namespace lockstep::rendezvous::hub
