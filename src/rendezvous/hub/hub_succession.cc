// The search for a new hub; line.cc has the order of the stops.
#include "rendezvous/hub/hub_succession.h"

#include "base/log.h"
#include "base/text.h"
#include "rendezvous/hub/hub_auth.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::hub {
// The patience if the job cannot go on without the lost host; see lost().
namespace {
constexpr std::chrono::milliseconds kClosedPatience{4'000};

// Returns 0 to 1,020 ms, at random. Nodes that search in step with each other could miss each other
// for as long as they search.
std::chrono::milliseconds open_longer() {
  return std::chrono::milliseconds(4 * random_nonce()[0]);
}
}  // namespace

HubSuccession::HubSuccession(io::Loop& loop, Settings settings, HubMember& member, Owner owner)
    : settings_(std::move(settings)), member_(member), owner_(std::move(owner)), timer_(loop) {}

std::string HubSuccession::name(std::uint32_t place) const {
  return place < settings_.hosts.size() ? printable(settings_.hosts[place].host) : "it";
}

void HubSuccession::begin() {
  until_.begin_unbounded();
  search(false);
}

void HubSuccession::end() {
  ended_ = true;
  searching_ = false;
  timer_.cancel();
}

void HubSuccession::lost(const Error& error) {
  // After the end the hub leaves too. But a node that has not been told the end needs the next hub:
  // its charter alone does not prove that the end was recorded.
  const bool over = member_.witness()->charter().end != Charter::End::none;
  if (ended_ || (over && !member_.awaits_hub())) return;
  // The hub here has let this node in but has not come to lead: go on with the next stop.
  if (searching_) return step();
  const bool closed = error.code != Errc::timeout;
  patience_ = settings_.patience;
  // The lost host is needed for a quorum, and a closed connection means that its machine is up
  // without the hub. So give up early. This does not apply to a hub of this node's own that was cut
  // off.
  if (closed && leader_ != settings_.own &&
      !may_go_on_without(leader_, member_.witness()->charter()))
    patience_ = std::min(patience_, kClosedPatience);
  until_.begin(patience_, io::Clock::now());
  search(closed);
}

void HubSuccession::learn(std::vector<codec::RdzvEndpoint> hosts, std::uint32_t own) {
  settings_.hosts = std::move(hosts);
  settings_.own = own;
}

void HubSuccession::search(bool closed) {
  searching_ = true;
  closed_ = closed;
  stops_.clear();
  next_ = 0;
  step();
}

void HubSuccession::found() {
  if (!searching_) return;
  searching_ = false;
  timer_.cancel();
  if (place_ != settings_.own) owner_.give_way();
  // The old host is back: nothing has changed for the user.
  if (place_ == leader_) return;
  log::warning("{} hosts the rendezvous now: the last host, {}, is gone",
               place_ == settings_.own ? "this node" : name(place_), name(leader_));
  leader_ = place_;
}

void HubSuccession::step() {
  if (until_.is_over(io::Clock::now())) return give_up();
  if (next_ >= stops_.size()) {
    stops_ = walk_line({.own = settings_.own,
                        .listed = static_cast<std::uint32_t>(settings_.hosts.size()),
                        .lost = leader_,
                        .closed = std::exchange(closed_, false)},
                       member_.witness()->charter());
    next_ = 0;
  }
  if (stops_.empty()) return;
  const LineStop stop = stops_[next_++];
  place_ = stop.place;
  wait(stop.patience + (stop.own ? open_longer() : io::Duration(0)));
  waited_ = false;
  at_first_ = stop.first;
  if (!stop.own) {
    // The hub on this node has not come to lead: close it and try the next host.
    owner_.close_hub();
    return member_.move_to(settings_.hosts[stop.place].host, settings_.hosts[stop.place].port);
  }
  if (const Status opened = owner_.open_hub(); !opened) {
    log::warning("this node can't host the rendezvous: {}", opened.error().message);
    // The timer goes on to the next stop.
    return;
  }
  member_.move_to(std::string(kOwnHub), settings_.hosts[stop.place].port);
}

void HubSuccession::wait(io::Duration time) {
  until_.plan(io::Clock::now() + time);
  timer_.start(time, [this] {
    // A hub that has let this node in may still come to lead, so wait once more. At the first host
    // of the line wait until that host closes its hub: there most nodes come together.
    const bool inside = member_.connected() && place_ != settings_.own;
    const bool more = inside && (!std::exchange(waited_, true) || at_first_);
    more && !until_.is_over(io::Clock::now()) ? wait(std::chrono::seconds(3)) : step();
  });
}

void HubSuccession::give_up() {
  const Voters& voters = member_.witness()->charter().now;
  end();
  owner_.close_hub();
  const std::string gone = fmt::format("the host of the rendezvous, {}, is gone", name(leader_));
  if (voters.all.empty())
    return member_.give_up({Errc::canceled, gone + ", and the job had not begun", {}, 0});
  const auto nodes = std::count_if(voters.all.begin(), voters.all.end(),
                                   [](const Voter& voter) { return voter.place != kVoteOnly; });
  member_.give_up(
      {Errc::canceled,
       fmt::format("{}, and in {} s too few of the {} nodes came together to go on: more than half "
                   "are needed, because the rest may still be running",
                   gone, patience_.count() / 1000, nodes),
       nodes == 2 ? "with a third node, as a spare, or while the client of run --on follows, the "
                    "job survives the loss of a node"
                  : "",
       0});
}

}  // namespace lockstep::rendezvous::hub
