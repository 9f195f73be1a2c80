// What keeps workers and all that descends from them together, so that nothing survives the agent:
// the rungs of docs/supervision.md, from strongest to none.
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
  // Splits off the guardian, except on the rung `none`, and returns in the agent. Fails where this
  // machine can't give the rung.
  static Result<Containment> set_up(Rung rung);

  Rung rung() const { return rung_; }
  const Guardian* guardian() const { return guardian_ ? &*guardian_ : nullptr; }
  void apply(SpawnSpec& spec) const;

  // The processes that workers left behind. Call it only when all workers were reaped.
  std::vector<pid_t> leftovers() const;
  // Kills the leftovers, at once.
  Sweep sweep(std::chrono::milliseconds limit) const;
  // The pid, as this process sees it, of the descendant that calls itself `own_pid` in its own PID
  // namespace; nullopt: we have none.
  std::optional<pid_t> find_descendant(pid_t own_pid) const;
  // The last call: ends everything that is left.
  void end();

 private:
  Rung rung_ = Rung::none;
  std::optional<Guardian> guardian_;
  std::optional<Cgroup> cgroup_;
  std::optional<PidNamespace> namespace_;
};

}  // namespace lockstep::proc
