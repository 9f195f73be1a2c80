#include "rent/machines_for_use.h"

#include "base/text.h"
#include "rent/guard.h"
#include "rent/on_demand.h"
#include "rent/rental_files.h"
#include "rent/rented_cluster.h"

#include <fmt/core.h>

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace lockstep::rent {
namespace {

using Kind = MachinesForUse::Kind;

// Returns whether the cluster was used within the idle limit: the machines cannot have ended as
// idle then.
bool used_lately(const cloud::Rental& rental, std::int64_t now_ms) {
  struct stat info {};
  if (stat(used_file(rental.cluster).c_str(), &info) != 0) return false;
  const std::int64_t since_ms = now_ms - std::int64_t{info.st_mtim.tv_sec} * 1000;
  return since_ms >= 0 && since_ms < rental.terms.autostop_s * 1000;
}

// Returns whether the rental has an unended job. The process in charge of that job replaces and
// terminates the machines.
Result<bool> has_job(OnDemand& world, const cloud::Rental& rental) {
  LOCKSTEP_TRY_ASSIGN(const auto jobs, world.journal().jobs());
  return std::any_of(jobs.begin(), jobs.end(), [&](const cloud::RentedJob& job) {
    return job.rental == rental.id && job.goes_on();
  });
}

bool is_usable(const hosts::Registry& registry, const cloud::Rental& rental) {
  if (!rental.wanted || !cloud::is_whole(rental)) return false;
  const auto known = registry.find(rental.cluster);
  if (!known || known->nodes.empty()) return false;
  note_use(rental.cluster);
  return true;
}

Failure machines_of_job(const std::string& cluster) {
  return fail(
      Errc::unavailable,
      fmt::format(
          "the machines of '{}' are not there now: its job is getting new ones, or has just ended",
          cluster),
      fmt::format("try again later; lockstep down {} ends both", cluster));
}

// Returns the nodes that a command can still use: "0,2".
std::string nodes_left(cloud::Rental& rental) {
  std::vector<std::string> left;
  for (const cloud::Held* held : machines_there(rental))
    if (held->node != cloud::kSurplus && !held->machine.address.empty() &&
        held->machine.state == cloud::Machine::State::running)
      left.push_back(std::to_string(held->node));
  return join(left, ",");
}

Result<std::optional<cloud::Rental>> rental_of(OnDemand& world, const std::string& cluster) {
  auto rental = world.journal().of_cluster(cluster);
  if (rental) return std::optional(std::move(*rental));
  if (rental.error().code != Errc::not_found) return Failure(rental.error());
  return std::optional<cloud::Rental>();
}

// Call with the cluster's lock.
Result<MachinesForUse> look_again(OnDemand& world, const hosts::Registry& registry,
                                  const std::string& cluster, const EndMachines& end_rest) {
  LOCKSTEP_TRY_ASSIGN(auto rental, rental_of(world, cluster));
  if (!rental) return MachinesForUse{};
  if (rental->wanted) {
    LOCKSTEP_TRY(look(world, *rental));
    if (is_usable(registry, *rental)) return MachinesForUse{.kind = Kind::all};
    const auto known = registry.find(cluster);
    std::string left = nodes_left(*rental);
    if (!left.empty() && known && !known->nodes.empty())
      return MachinesForUse{.kind = Kind::some, .left = std::move(left)};
  }
  LOCKSTEP_TRY(end_rest(*rental));
  return MachinesForUse{};
}

}  // namespace

bool use_surely_there(const cloud::Rental& rental, const hosts::Cluster& known,
                      std::int64_t now_ms) {
  const bool there = rental.wanted && !known.nodes.empty() && now_ms < rental.ends_ms &&
                     used_lately(rental, now_ms) && (!wants_guard(rental) || guard_lives());
  if (there) note_use(rental.cluster);
  return there;
}

Result<MachinesForUse> find_machines_for_use(OnDemand& world, const hosts::Registry& registry,
                                             const std::string& cluster,
                                             const EndMachines& end_rest) {
  LOCKSTEP_TRY_ASSIGN(auto rental, rental_of(world, cluster));
  if (!rental) return MachinesForUse{};
  if (rental->wanted) LOCKSTEP_TRY(look_only(world, *rental));
  if (is_usable(registry, *rental)) return MachinesForUse{.kind = Kind::all};
  // Does not write into the journal: the job's own command or follower handles losses.
  LOCKSTEP_TRY_ASSIGN(const bool job, has_job(world, *rental));
  if (job) return machines_of_job(cluster);
  LOCKSTEP_TRY(world.locks().take(cluster));
  auto found = look_again(world, registry, cluster, end_rest);
  // After an error the lock stays until this process ends: the rental may be half terminated.
  if (found) world.locks().release(cluster);
  return found;
}

}  // namespace lockstep::rent
