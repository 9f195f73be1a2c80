// The memory of a living process, read by process_vm_readv(). The process is neither stopped nor
// told.
//
// The kernel takes the lock of the process's memory map, so a read waits while a thread of the
// process holds this lock for writing, such as in an mmap() of a file of a dead NFS server. A read
// of /proc/PID/maps does the same.
#pragma once

#include "stacks/memory.h"

#include <sys/types.h>

namespace lockstep::stacks {

class RemoteMemory final : public Memory {
 public:
  explicit RemoteMemory(pid_t pid) : pid_(pid) {}

  std::size_t read_pieces(std::span<const Piece> pieces) override;

  // The errno of the last read that failed as a whole: ESRCH (the process is gone), EPERM, ENOSYS,
  // EFAULT (no memory at this address). 0: no such read.
  int last_error() const { return last_error_; }
  void forget_error() { last_error_ = 0; }

 private:
  std::size_t read_batch(std::span<const Piece> pieces);

  pid_t pid_;
  int last_error_ = 0;
};

}  // namespace lockstep::stacks
