// Keeps workers and all their descendants together, so that no process survives the agent.
// docs/supervision.md describes the rungs, from the strongest to none.
#pragma once

#include "base/error.h"
#include "proc/cgroup.h"
#include "proc/guardian.h"
#include "proc/pid_namespace.h"
#include "proc/process_tree.h"
#include "proc/spawn.h"

#include <chrono>
#include <optional>
#include <set>
#include <string>

namespace lockstep::proc {

enum class Rung {
  pidns,     // guardian + PID namespace with a private /proc
  cgroup,    // guardian + cgroup.kill
  guardian,  // guardian + subreaper sweep
  none,      // process groups only
};
const char* rung_name(Rung rung);

class Containment {
 public:
  // Splits off the guardian, except on the rung `none`, and returns in the agent. Fails if this
  // machine cannot provide the rung.
  static Result<Containment> set_up(Rung rung);

  Rung rung() const { return rung_; }
  const Guardian* guardian() const { return guardian_ ? &*guardian_ : nullptr; }
  // Adds the rung's settings to a worker's spec.
  void apply(SpawnSpec& spec) const;

  // Excepts a child of the agent that is not a worker, such as a helper. Such a child is neither a
  // leftover nor swept, and the owner reaps it. The child ends with the agent all the same.
  void spare(pid_t helper) { spared_.insert(helper); }
  void unspare(pid_t helper) { spared_.erase(helper); }
  bool spares(pid_t helper) const { return spared_.contains(helper); }

  // Returns the processes that workers left behind. Call only after all workers were reaped.
  std::vector<pid_t> leftovers() const;
  // Kills the leftovers. Blocks until they are gone, at most for `limit`.
  Sweep sweep(std::chrono::milliseconds limit) const;
  // Translates a pid from a worker's PID namespace: returns the pid, in this process's namespace,
  // of the descendant with `own_pid`. nullopt: no such descendant.
  std::optional<pid_t> find_descendant(pid_t own_pid) const;
  // Ends everything that is left. Must be the last call.
  void end();

 private:
  Rung rung_ = Rung::none;
  std::optional<Guardian> guardian_;
  std::optional<Cgroup> cgroup_;
  std::optional<PidNamespace> namespace_;
  std::set<pid_t> spared_;
};

}  // namespace lockstep::proc
