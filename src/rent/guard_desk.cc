#include "rent/guard_desk.h"

#include "base/text.h"
#include "cloud/key_pair.h"
#include "hosts/registry.h"
#include "io/own_folders.h"
#include "rent/guard.h"
#include "rent/guard_plan.h"
#include "rent/guard_talk.h"
#include "rent/on_demand.h"
#include "rent/rental_files.h"
#include "rent/ssh_access.h"
#include "ssh/pins.h"

#include <fmt/core.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>

namespace lockstep::rent {
namespace {

using cloud::Rental;
using Words = std::vector<std::string>;

constexpr std::size_t kMostNews = 1UL << 20;
// Wait 20 s for the rental's lock: the guard here may hold it during a request to a provider.
constexpr int kDeskTries = 200;
constexpr std::chrono::milliseconds kDeskPause{100};
constexpr std::int64_t kRememberedMs = 40LL * 86'400'000;

// Keep each client installation's state below this user's own state folder. XDG_STATE_HOME is set
// in the environment because the guard started from here must use the same folder.
Result<std::unique_ptr<OnDemand>> open_for(const std::string& owner) {
  if (!is_owner(owner)) return fail(Errc::invalid_input, "that is not the name of an installation");
  const std::string top = io::state_folder() + "/guards/" + owner;
  if (setenv("XDG_STATE_HOME", top.c_str(), 1) != 0) return fail_sys("set XDG_STATE_HOME", errno);
  LOCKSTEP_TRY_ASSIGN(cloud::Journal journal, cloud::Journal::open(io::state_folder()));
  // Machines carry the owner's tag. The guard here must look for the client's machines, not for
  // those of this host.
  LOCKSTEP_TRY(journal.take_owner(owner));
  return OnDemand::open();
}

// Credentials are never sent to a guard host: the host must have credentials of its own.
Status check_key(cloud::Provider* provider) {
  if (provider == nullptr) return fail(Errc::invalid_input, "that provider is not known there");
  const Status keys = provider->keys();
  if (keys) return {};
  const cloud::Traits& traits = provider->traits();
  if (keys.error().code != Errc::not_found)
    return fail(Errc::denied, fmt::format("{}: {}", traits.title, keys.error().message),
                keys.error().hint);
  return fail(Errc::denied, fmt::format("no key of {} is there", traits.title),
              fmt::format("put a key there, since keys are never sent: {}", traits.keys_hint));
}

Result<GuardAnswer> answer_ask(OnDemand& world, const Words& words) {
  GuardAnswer answer;
  for (const std::string& name : split(words[2], ',')) {
    cloud::Provider* provider = world.providers().find(name);
    LOCKSTEP_TRY(check_key(provider));
    LOCKSTEP_TRY(provider->account(world.web()));
  }
  if (words[3] == "address") {
    LOCKSTEP_TRY_ASSIGN(answer.cidr, own_address(world.web()));
  }
  answer.now_ms = world.web().now_ms();
  return answer;
}

// Checks that this host can terminate the rental's machines. The host's credentials must belong to
// the account with the machines' registered ssh key.
Status check_account(OnDemand& world, const Rental& rental) {
  for (const cloud::Attempt& attempt : rental.attempts) {
    cloud::Provider* provider = world.providers().find(attempt.offer.provider);
    LOCKSTEP_TRY(check_key(provider));
    LOCKSTEP_TRY_ASSIGN(const bool same, provider->has_key(world.web(), rental.public_key));
    if (!same)
      return fail(
          Errc::denied,
          fmt::format("its key of {} is of another account than yours", provider->traits().title),
          fmt::format("it is looked for in {}", provider->traits().keys_hint));
  }
  return {};
}

// Gives the guard here ssh access to the machines, to ask whether they are idle.
Status keep_access(const Rental& rental, const std::string& user_key) {
  LOCKSTEP_TRY_ASSIGN(const hosts::Registry registry, hosts::Registry::open(io::state_folder()));
  if (!registry.find(rental.cluster))
    LOCKSTEP_TRY(registry.put(
        {.name = rental.cluster, .source = "cloud", .created_ms = rental.created_ms, .nodes = {}}));
  for (const cloud::Held* held : met_machines(rental))
    if (!held->machine.address.empty())
      LOCKSTEP_TRY(ssh::pin_host(registry.pins_file(rental.cluster), held->machine.address,
                                 held->machine.port, {.keys = {ssh::bare_key(held->host_key)}}));
  if (user_key.empty()) return {};
  const std::string path = user_key_file(rental.cluster);
  LOCKSTEP_TRY(io::make_folders(path.substr(0, path.rfind('/'))));
  return cloud::write_key_pair(path, {.private_text = user_key, .public_line = rental.public_key});
}

void drop_access(const Rental& rental) {
  const std::string path = user_key_file(rental.cluster);
  cloud::remove_key_pair(path);
  rmdir(path.substr(0, path.rfind('/')).c_str());
  if (const auto registry = hosts::Registry::open(io::state_folder()))
    (void)registry->remove(rental.cluster);
}

Result<GuardAnswer> take_news(OnDemand& world, GuardNews news) {
  Rental& told = news.rental;
  const std::int64_t now = world.web().now_ms();
  GuardAnswer answer{.now_ms = now};
  LOCKSTEP_TRY_ASSIGN(const auto all, world.journal().since(now - kRememberedMs));
  const Rental* known = nullptr;
  for (const Rental& one : all)
    if (one.id == told.id) known = &one;
  const NewsFate fate = fate_of_news(known, news);
  answer.over = fate == NewsFate::over;
  const bool lives = fate == NewsFate::take ? has_open_attempt(told) && told.closed_ms == 0
                                            : known != nullptr && known->closed_ms == 0;
  if (lives && known == nullptr) LOCKSTEP_TRY(check_account(world, told));
  // The guard cannot exit for lack of work while `use` is held.
  io::Fd use;
  if (lives) {
    answer.started = !guard_lives() && known != nullptr;
    LOCKSTEP_TRY_ASSIGN(use, need_guard(world));
  }
  // Stale news must not overwrite newer facts.
  if (fate != NewsFate::take) return answer;
  told.told_ms = news.kind == GuardNewsKind::noting && known != nullptr ? known->told_ms : now;
  if (lives) {
    LOCKSTEP_TRY(keep_access(told, news.user_key));
  } else {
    told.wanted = false;
    told.closed_ms = now;
  }
  LOCKSTEP_TRY(world.journal().keep(told));
  if (!lives) drop_access(told);
  // Credentials revoked since the launch terminate nothing, so tell the client. A silent provider
  // may answer again by the end of the lease, so other errors are ignored.
  if (lives && known != nullptr && news.kind == GuardNewsKind::noting)
    if (const Status can = check_account(world, told); !can && can.error().code == Errc::denied)
      return Failure(can.error());
  return answer;
}

Result<GuardAnswer> answer_tell(OnDemand& world, const std::string& owner) {
  LOCKSTEP_TRY_ASSIGN(const std::string text, read_request());
  LOCKSTEP_TRY_ASSIGN(GuardNews news, read_guard_news(text, owner));
  news.rental.cluster = name_there(news.rental.cluster, news.rental.id);
  const std::string name = news.rental.cluster;
  Status locked = world.locks().take(name);
  for (int tries = 0; !locked && tries < kDeskTries; ++tries) {
    LOCKSTEP_TRY(world.web().pause(kDeskPause));
    locked = world.locks().take(name);
  }
  if (!locked) {
    // The guard holds the lock, and is either looking at the rental or terminating the machines.
    const auto known = world.journal().of_cluster(name);
    if (!known || known->wanted)
      return fail(Errc::unavailable, "busy with these machines", "try again");
    return GuardAnswer{.now_ms = world.web().now_ms(), .over = true};
  }
  auto answer = take_news(world, std::move(news));
  world.locks().release(name);
  return answer;
}

Result<GuardAnswer> answer_to(const Words& words) {
  const bool asks = words.size() == 4 && words[0] == "ask";
  if (!asks && (words.size() != 2 || words[0] != "tell"))
    return fail(Errc::invalid_input, "a guard takes ask or tell");
  LOCKSTEP_TRY_ASSIGN(const auto world, open_for(words[1]));
  return asks ? answer_ask(*world, words) : answer_tell(*world, words[1]);
}

}  // namespace

Result<std::string> read_request() {
  std::string text;
  std::array<char, 4096> bytes;
  while (text.size() <= kMostNews) {
    const ssize_t got = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(bytes.data(), static_cast<std::size_t>(got));
  }
  return fail(Errc::invalid_input, "the request is too long");
}

std::string answer_guard_request(const Words& words) {
  return guard_answer_text(answer_to(words));
}

}  // namespace lockstep::rent
