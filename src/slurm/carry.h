// How a job's nodes come to have the binary.
#pragma once

#include <string_view>

namespace lockstep::slurm {

enum class Carry {
  no,           // all nodes see it in the job's folder
  unless_seen,  // by sbcast, unless the folder turns out to be on a shared file system
  always,       // by sbcast
};

// Of a job whose script runs on `host` and that was submitted on `submitted_on` (empty: nobody
// knows). Where two hosts see the job's folder, all do: without it no agent could start. On the one
// that serves it to the others it looks like a disk of its own all the same.
bool is_carried(Carry how, std::string_view host, std::string_view submitted_on);

// The same, of the job that this process belongs to.
bool is_carried_here(Carry how);

}  // namespace lockstep::slurm
