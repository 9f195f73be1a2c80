// How the nodes of a job get the lockstep binary.
#pragma once

#include <string_view>

namespace lockstep::slurm {

enum class Carry {
  no,           // all nodes see the binary in the job's folder
  unless_seen,  // by sbcast, unless the folder turns out to be on a shared file system
  always,       // by sbcast
};

// Returns whether sbcast copies the binary. host: runs the batch script. submitted_on: called
// sbatch; empty: unknown. If both hosts differ and see the job's folder, all nodes see it, because
// otherwise no agent could start. On the file server itself the shared folder looks like a local
// disk, so the file system's type proves nothing.
bool is_carried(Carry how, std::string_view host, std::string_view submitted_on);

// Returns is_carried() for the job that this process belongs to.
bool is_carried_here(Carry how);

}  // namespace lockstep::slurm
