#include "stacks/call_names.h"

#include <sys/syscall.h>

#include <string_view>

namespace lockstep::stacks {
namespace {

struct Call {
  int number;
  std::string_view name;
};

// Calls that may block or take long, since only a thread that waits shows its call. glibc has no
// function that names a system call.
constexpr Call kCalls[] = {
    {SYS_accept4, "accept4"},
    {SYS_brk, "brk"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_clone, "clone"},
    {SYS_clone3, "clone3"},
    {SYS_close, "close"},
    {SYS_connect, "connect"},
    {SYS_copy_file_range, "copy_file_range"},
    {SYS_dup3, "dup3"},
    {SYS_epoll_pwait, "epoll_pwait"},
    {SYS_execve, "execve"},
    {SYS_exit, "exit"},
    {SYS_exit_group, "exit_group"},
    {SYS_fallocate, "fallocate"},
    {SYS_fcntl, "fcntl"},
    {SYS_fdatasync, "fdatasync"},
    {SYS_flock, "flock"},
    {SYS_fstat, "fstat"},
    {SYS_fsync, "fsync"},
    {SYS_ftruncate, "ftruncate"},
    {SYS_futex, "futex"},
    {SYS_getdents64, "getdents64"},
    {SYS_io_getevents, "io_getevents"},
    {SYS_io_uring_enter, "io_uring_enter"},
    {SYS_ioctl, "ioctl"},
    {SYS_lseek, "lseek"},
    {SYS_madvise, "madvise"},
    {SYS_membarrier, "membarrier"},
    {SYS_mmap, "mmap"},
    {SYS_mprotect, "mprotect"},
    {SYS_mremap, "mremap"},
    {SYS_msgrcv, "msgrcv"},
    {SYS_msync, "msync"},
    {SYS_munmap, "munmap"},
    {SYS_nanosleep, "nanosleep"},
    {SYS_openat, "openat"},
    {SYS_ppoll, "ppoll"},
    {SYS_pread64, "pread64"},
    {SYS_preadv, "preadv"},
    {SYS_pselect6, "pselect6"},
    {SYS_pwrite64, "pwrite64"},
    {SYS_pwritev, "pwritev"},
    {SYS_read, "read"},
    {SYS_readv, "readv"},
    {SYS_recvfrom, "recvfrom"},
    {SYS_recvmmsg, "recvmmsg"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_restart_syscall, "restart_syscall"},
    {SYS_rt_sigsuspend, "rt_sigsuspend"},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
    {SYS_sched_yield, "sched_yield"},
    {SYS_semop, "semop"},
    {SYS_semtimedop, "semtimedop"},
    {SYS_sendfile, "sendfile"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_sendto, "sendto"},
    {SYS_splice, "splice"},
    {SYS_statfs, "statfs"},
    {SYS_statx, "statx"},
    {SYS_sync, "sync"},
    {SYS_unlinkat, "unlinkat"},
    {SYS_wait4, "wait4"},
    {SYS_waitid, "waitid"},
    {SYS_write, "write"},
    {SYS_writev, "writev"},
#ifdef SYS_poll  // aarch64 has the calls above only
    {SYS_accept, "accept"},
    {SYS_epoll_wait, "epoll_wait"},
    {SYS_fork, "fork"},
    {SYS_open, "open"},
    {SYS_pause, "pause"},
    {SYS_poll, "poll"},
    {SYS_rename, "rename"},
    {SYS_select, "select"},
    {SYS_stat, "stat"},
    {SYS_unlink, "unlink"},
    {SYS_vfork, "vfork"},
#endif
};

}  // namespace

std::string call_name(int number) {
  for (const Call& call : kCalls)
    if (call.number == number) return std::string(call.name);
  return "system call " + std::to_string(number);
}

}  // namespace lockstep::stacks
