#include "rent/moved_client.h"

#include "base/text.h"
#include "hosts/registry.h"
#include "io/own_folders.h"
#include "io/signals_blocked.h"
#include "rent/gang.h"
#include "rent/on_demand.h"
#include "rent/ssh_access.h"

#include <fmt/core.h>

#include <sys/eventfd.h>

#include <cstdio>
#include <set>
#include <thread>
#include <utility>

namespace lockstep::rent {
namespace {

void say_moved(const std::string& line) {
  std::fputs(("lockstep: " + printable(line, std::string::npos) + "\n").c_str(), stderr);
}

void say_trouble(const Error& error) {
  say_moved(error.hint.empty() ? error.message : error.message + "; " + error.hint);
}

Result<std::string> rented_cluster(const std::string& pins) {
  LOCKSTEP_TRY_ASSIGN(const hosts::Registry registry, hosts::Registry::open(io::state_folder()));
  LOCKSTEP_TRY_ASSIGN(const auto clusters, registry.list());
  for (const hosts::Cluster& one : clusters)
    if (one.is_rented() && registry.pins_file(one.name) == pins) return one.name;
  return fail(Errc::not_found, "these hosts are not rented");
}

// Asks again under the cluster's lock: another lockstep may have changed the port rule already.
void follow_to(OnDemand& world, const std::string& name, const std::string& address) {
  if (!world.locks().take(name)) return;  // another lockstep is changing this rental
  auto rental = world.journal().of_cluster(name);
  if (!rental || !rental->wanted) return;
  if (const Status open = follow_address(world, *rental, address, say_moved); !open)
    say_trouble(open.error());
}

// Returns true, with a message, if the machine does not answer because the machine has ended.
bool told_that_it_ended(OnDemand& world, cloud::Rental rental, cloud::Web& web) {
  const std::string where = rented_where(world, rental);
  if (!look_only(world, rental, web) || !cloud::is_lost(rental)) return false;
  say_moved(
      fmt::format("{0}: a machine of '{1}' has ended; lockstep up {1} rents the machine again, "
                  "lockstep down {1} terminates the rest",
                  where, rental.cluster));
  return true;
}

// Looks for the reason of one slow login. Requests through `web` stop at the end of this command. A
// change of a port rule uses the world's own Web and is completed.
void look_after(const std::string& pins, cloud::Web& web) {
  const auto name = rented_cluster(pins);
  if (!name) return;
  const auto world = OnDemand::open();
  if (!world) return;
  auto rental = (*world)->journal().of_cluster(*name);
  if (!rental || !rental->wanted || rental->settled()) return;
  if (rental->terms.open_to_all()) {
    (void)told_that_it_ended(**world, *rental, web);
    return;
  }
  const auto address = own_address(web);
  if (!web.pause({})) return;
  const bool moved = address && !lets_in(*rental, *address);
  if (address && (moved || rental->terms.own_address)) follow_to(**world, *name, *address);
  // The changed address explains the slow login, so do not ask the provider about the machine.
  if (moved) return;
  if (told_that_it_ended(**world, *rental, web) || address || !web.pause({})) return;
  say_moved(
      fmt::format("{0}: the ssh port of '{1}' may not be open to this machine, whose public "
                  "address was not found; lockstep up {1} --allow-from ADDRESS/32 opens the port",
                  rented_where(**world, *rental), *name));
}

class SlowLogins {
 public:
  SlowLogins() : stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  SlowLogins(const SlowLogins&) = delete;
  SlowLogins& operator=(const SlowLogins&) = delete;
  ~SlowLogins() { finish(); }

  void add(const std::string& pins) {
    if (!stop_ || !seen_.insert(pins).second) return;
    auto web = cloud::open_web({.stop_fd = stop_.get()});
    if (!web) return;
    const io::SignalsBlocked blocked;
    threads_.emplace_back(
        [pins, own = std::shared_ptr<cloud::Web>(std::move(*web))] { look_after(pins, *own); });
  }
  void finish() {
    (void)eventfd_write(stop_.get(), 1);
    for (std::thread& thread : threads_)
      thread.join();
    threads_.clear();
  }

 private:
  io::Fd stop_;
  std::set<std::string> seen_;  // pin files of clusters already looked at: once per command
  std::vector<std::thread> threads_;
};

SlowLogins& slow_logins() {
  // A single object for the process: many commands log in, and none knows about rented machines.
  static SlowLogins made;
  return made;
}

}  // namespace

void on_slow_login(const ssh::Target& target, const std::string& pins) {
  if (target.host_keys == ssh::HostKeys::pinned && !pins.empty()) slow_logins().add(pins);
}

void finish_slow_logins() {
  slow_logins().finish();
}

}  // namespace lockstep::rent
