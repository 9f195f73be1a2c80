// What a thread does below Python, as text.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace lockstep::stacks {

constexpr std::size_t kMostCallers = 16;

// All texts are printable.
struct NativeThread {
  pid_t tid = 0;
  std::string name = {};   // as the kernel knows it: "pt_nccl_watchdg"
  char state = '?';        // 'S', 'R', 'D'
  bool runs = false;       // on a CPU, or waits for one: then nothing below is known
  std::string call = {};   // "poll", "page fault"; "": not known
  std::string wchan = {};  // the kernel's function: "do_sys_poll"; "": hidden
  std::string at = {};     // "libc.so.6+0xfe2ad (poll)", "libx.so+0x11 (near init)"; "": not known
  // Functions whose return addresses lie on the stack, the innermost first. Stale ones may be among
  // them. Only on x86-64.
  std::vector<std::string> callers = {};
};

}  // namespace lockstep::stacks
