// Classifies a rank by the state of its main thread and its Python stack. Pure.
#pragma once

#include "looks/rank_look.h"

#include <array>
#include <string>
#include <string_view>

namespace lockstep::looks {

enum class Doing {
  unknown,      // no readable stack
  own_code,     // nothing of the list below
  importing,    // Python modules
  rendezvous,   // init_process_group, new_group: waits for the other ranks' keys in the store
  collective,   // a function of torch.distributed that waits for other ranks
  backward,     // autograd's engine, which runs DDP's all-reduce
  gpu_wait,     // synchronizes with the GPU
  data_loader,  // waits for a batch, or makes one
  saving,       // a checkpoint
  loading,      // a checkpoint
  compiling,    // torch.compile, Triton, C++ extensions
  debugger,     // pdb and the like, or traced by another process
  input,        // reads its standard input
  stopped,      // by a signal
  ending,       // destroy_process_group, functions at exit
  ended,
};
inline constexpr std::array<std::string_view, 16> kDoingWords = {
    "unknown",  "own code",    "importing", "rendezvous", "collective", "backward",
    "gpu wait", "data loader", "saving",    "loading",    "compiling",  "debugger",
    "input",    "stopped",     "ending",    "ended"};

struct Activity {
  Doing doing = Doing::unknown;
  // "all_reduce": the function that the user called, printable. "": none that is known.
  std::string call = {};
  // The stack is inside a checkpoint, although the innermost known function is something else: the
  // collectives of torch.distributed.checkpoint.
  bool in_checkpoint = false;
  // The user's own code runs inside of backward: a hook, or the backward() of a Function.
  bool own_inside = false;

  friend bool operator==(const Activity&, const Activity&) = default;
};

Activity what_doing(const RankLook& look);
// Does the same for a stack alone.
Activity what_doing(const stacks::ThreadStack& stack);

// Returns whether a rank that does this may be waiting for other ranks.
bool waits_for_ranks(Doing doing);

// Returns whether this is a data loader's worker process.
bool is_loader(const ChildLook& child);
// Returns whether this loader waits for a request of its rank.
bool is_idle_loader(const ChildLook& child);

}  // namespace lockstep::looks
