#include "looks/wait_words.h"

#include <sys/syscall.h>

namespace lockstep::looks {
namespace {

struct Function {
  std::string_view begin;
  std::string_view word;
};
constexpr Function kFunctions[] = {
    {"hrtimer_nanosleep", "sleep"},
    {"do_nanosleep", "sleep"},
    {"futex", "lock"},
    {"poll_schedule_timeout", "poll"},
    {"do_poll", "poll"},
    {"do_sys_poll", "poll"},
    {"do_select", "poll"},
    {"ep_poll", "poll"},
    {"do_epoll_wait", "poll"},
    {"pipe_", "pipe"},
    {"anon_pipe_", "pipe"},
    {"wait_for_partner", "FIFO"},
    {"unix_", "socket"},
    {"sk_", "socket"},
    {"wait_woken", "socket"},
    {"inet_", "socket"},
    {"tcp_", "socket"},
    {"do_wait", "child"},
    {"kernel_clone", "vfork"},
    {"nfs", "NFS"},
    {"rpc_", "NFS"},
    {"fuse", "FUSE"},
    {"request_wait_answer", "FUSE"},
    {"cl_sync_io", "Lustre"},
    {"ptlrpc", "Lustre"},
    {"flock", "file lock"},
    {"locks_", "file lock"},
    {"posix_lock", "file lock"},
    {"folio_wait", "disk"},
    {"io_schedule", "disk"},
    {"jbd2", "disk"},
};

struct Call {
  int number;
  std::string_view word;
};
constexpr Call kCalls[] = {
    {SYS_nanosleep, "sleep"}, {SYS_clock_nanosleep, "sleep"},
    {SYS_futex, "lock"},      {SYS_ppoll, "poll"},
    {SYS_pselect6, "poll"},   {SYS_epoll_pwait, "poll"},
    {SYS_openat, "open"},     {SYS_read, "read"},
    {SYS_write, "write"},     {SYS_recvfrom, "socket"},
    {SYS_recvmsg, "socket"},  {SYS_connect, "socket"},
    {SYS_accept4, "socket"},  {SYS_wait4, "child"},
    {SYS_waitid, "child"},    {SYS_flock, "file lock"},
    {SYS_fsync, "disk"},
#ifdef SYS_poll  // aarch64 has the calls above only
    {SYS_poll, "poll"},       {SYS_select, "poll"},
    {SYS_epoll_wait, "poll"}, {SYS_open, "open"},
    {SYS_accept, "socket"},
#endif
};

}  // namespace

std::string_view wait_word(const ProcessLook& process) {
  for (const auto& [begin, word] : kFunctions)
    if (process.wchan.starts_with(begin)) return word;
  for (const auto& [number, word] : kCalls)
    if (process.syscall == number) return word;
  return {};
}

}  // namespace lockstep::looks
