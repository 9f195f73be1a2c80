// Combines guardian, control group and PID namespace into rungs.
#include "proc/containment.h"

#include "base/text.h"

namespace lockstep::proc {

const char* rung_name(Rung rung) {
  switch (rung) {
    case Rung::pidns:
      return "pidns";
    case Rung::cgroup:
      return "cgroup";
    case Rung::guardian:
      return "guardian";
    case Rung::none:
      return "none";
  }
  return "?";
}

Result<Containment> Containment::set_up(Rung rung) {
  Containment out;
  out.rung_ = rung;
  if (rung == Rung::none) return out;
  // Make the group before the guardian, which must know how to kill and remove the group.
  if (rung == Rung::cgroup) {
    auto group = Cgroup::create();
    if (!group) return Failure(std::move(group).error().within("--isolation cgroup"));
    out.cgroup_ = std::move(*group);
  }
  LOCKSTEP_TRY_ASSIGN(out.guardian_, split_off_guardian(out.cgroup_, rung == Rung::pidns));
  // The namespace comes after the guardian: its init must be a child of the agent.
  if (rung == Rung::pidns) {
    auto entered = PidNamespace::enter_for_children();
    if (!entered) return Failure(std::move(entered).error().within("--isolation pidns"));
    out.namespace_ = std::move(*entered);
  }
  return out;
}

void Containment::apply(SpawnSpec& spec) const {
  // `none` has only process groups, like torchrun: workers may outlive the agent.
  spec.die_with_parent = rung_ != Rung::none;
  if (cgroup_) spec.cgroup_procs_fd = cgroup_->procs_fd();
  if (namespace_) spec.mount_namespace_fd = namespace_->mount_namespace_fd();
}

std::vector<pid_t> Containment::leftovers() const {
  if (rung_ == Rung::none) return {};
  return namespace_ ? descendants_of(namespace_->init_pid()) : descendants(spared_);
}

Sweep Containment::sweep(std::chrono::milliseconds limit) const {
  if (rung_ == Rung::none) return {};
  // In a namespace the tree hangs below its init, which also gets the orphans.
  if (namespace_) return sweep_below(namespace_->init_pid(), limit);
  // cgroup.kill also reaches processes forking faster than a sweep can list. The sweep then reaps.
  if (cgroup_) cgroup_->kill_all();
  return sweep_descendants(spared_, limit);
}

std::optional<pid_t> Containment::find_descendant(pid_t own_pid) const {
  for (const pid_t pid : descendants()) {
    if (!namespace_) {
      if (pid == own_pid) return pid;
      continue;
    }
    // NSpid lists the pids of one process, outermost namespace first.
    const auto status = io::read_file("/proc/" + std::to_string(pid) + "/status", 16384);
    if (!status) continue;
    for (const std::string& line : split(*status, '\n'))
      if (line.starts_with("NSpid:") && line.ends_with("\t" + std::to_string(own_pid))) return pid;
  }
  return std::nullopt;
}

void Containment::end() {
  if (namespace_) namespace_->end();
  if (cgroup_) cgroup_->kill_all();
}

}  // namespace lockstep::proc
