// The table of functions by which a stack is told, and its reader.
#include "looks/doing.h"

#include "base/text.h"
#include "looks/place.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace lockstep::looks {
namespace {

struct KnownFunction {
  Doing doing;
  std::string_view file;       // the end of the path; a folder, if '/' is its last character
  std::string_view functions;  // names between blanks; "": every function of the file
};

// The first row that fits the innermost frame counts, then the next frame. Names are those of
// PyTorch 1.13 to 2.14.
constexpr KnownFunction kRows[] = {
    // --- the end of a process
    {Doing::ending, "torch/distributed/distributed_c10d.py",
     " destroy_process_group _shutdown_backend _abort_process_group "},
    {Doing::ending, "concurrent/futures/thread.py", " _python_exit "},
    {Doing::ending, "multiprocessing/util.py", " _exit_function _run_finalizers "},
    {Doing::ending, "threading.py", " _shutdown "},
    // --- ranks find each other
    {Doing::rendezvous, "torch/distributed/distributed_c10d.py",
     " init_process_group new_group _new_group_with_tag _new_process_group_helper split_group"
     " new_subgroups new_subgroups_by_enumeration _store_based_barrier shrink_group"
     " _create_process_group_wrapper "},
    {Doing::rendezvous, "torch/distributed/rendezvous.py", ""},
    {Doing::rendezvous, "torch/distributed/device_mesh.py", " init_device_mesh "},
    // --- ranks wait for each other
    {Doing::collective, "torch/distributed/distributed_c10d.py",
     " send recv broadcast broadcast_multigpu all_reduce all_reduce_multigpu all_reduce_coalesced"
     " reduce reduce_multigpu all_gather all_gather_multigpu all_gather_object gather_object"
     " send_object_list recv_object_list broadcast_object_list scatter_object_list"
     " all_gather_single all_gather_into_tensor _all_gather_base all_gather_coalesced gather"
     " gather_single gather_into_tensor scatter reduce_scatter reduce_scatter_single"
     " reduce_scatter_multigpu reduce_scatter_tensor _reduce_scatter_base all_to_all_single"
     " all_to_all barrier monitored_barrier batch_isend_irecv isend irecv _coalescing_manager "},
    {Doing::collective, "torch/distributed/utils.py",
     " _sync_module_states _sync_params_and_buffers _verify_param_shape_across_processes"
     " _verify_params_across_processes "},
    {Doing::collective, "torch/distributed/_functional_collectives.py", ""},
    {Doing::collective, "torch/distributed/nn/functional.py", ""},
    {Doing::collective, "torch/nn/parallel/distributed.py",
     " _sync_params _sync_buffers _sync_module_states _sync_module_buffers"
     " _distributed_broadcast_coalesced _default_broadcast_coalesced"
     " _check_global_requires_backward_grad_sync "},
    {Doing::collective, "torch/distributed/algorithms/join.py", ""},
    {Doing::collective, "horovod/torch/mpi_ops.py", " synchronize "},
    {Doing::backward, "torch/autograd/graph.py", " _engine_run_backward "},
    // Before PyTorch 2.2.
    {Doing::backward, "torch/autograd/__init__.py", " backward grad "},
    {Doing::gpu_wait, "torch/cuda/__init__.py", " synchronize "},
    {Doing::gpu_wait, "torch/cuda/streams.py", " synchronize wait wait_event wait_stream "},
    {Doing::gpu_wait, "torch/accelerator/__init__.py", " synchronize "},
    // --- input
    {Doing::data_loader, "torch/utils/data/dataloader.py", ""},
    {Doing::data_loader, "nvidia/dali/plugin/", ""},
    {Doing::data_loader, "nvidia/dali/pipeline.py", ""},
    // --- checkpoints
    {Doing::saving, "torch/serialization.py", " save _save _legacy_save "},
    {Doing::saving, "torch/distributed/checkpoint/state_dict_saver.py", ""},
    {Doing::saving, "torch/distributed/checkpoint/filesystem.py", " write_data _write_item "},
    {Doing::saving, "safetensors/torch.py", " save_file save_model "},
    {Doing::saving, "",
     " save_checkpoint _save_checkpoint save_pretrained save_state save_model save_ckpt "},
    {Doing::loading, "torch/serialization.py", " load _load _legacy_load "},
    {Doing::loading, "torch/distributed/checkpoint/state_dict_loader.py", ""},
    {Doing::loading, "safetensors/torch.py", " load_file load_model "},
    {Doing::loading, "", " load_checkpoint from_pretrained load_pretrained load_ckpt "},
    // --- compilers. Frames of torch/_dynamo/eval_frame.py stay on the stack while compiled code
    // runs, so the file must not be in this table.
    {Doing::compiling, "torch/_dynamo/convert_frame.py", ""},
    {Doing::compiling, "torch/_dynamo/symbolic_convert.py", ""},
    {Doing::compiling, "torch/_inductor/compile_fx.py",
     " compile_fx compile_fx_inner _compile_fx_inner fx_codegen_and_compile codegen_and_compile"
     " bw_compiler "},
    {Doing::compiling, "torch/_inductor/async_compile.py", " wait _wait_futures "},
    {Doing::compiling, "torch/_inductor/codecache.py", " load compile "},
    {Doing::compiling, "torch/_inductor/graph.py", ""},
    {Doing::compiling, "torch/utils/cpp_extension.py", ""},
    {Doing::compiling, "triton/compiler/", ""},
    {Doing::compiling, "triton/runtime/autotuner.py", ""},
    // --- debuggers
    {Doing::debugger, "/pdb.py", ""},
    {Doing::debugger, "/bdb.py", ""},
    {Doing::debugger, "IPython/terminal/", ""},
    {Doing::debugger, "IPython/core/debugger.py", ""},
    {Doing::debugger, "debugpy/", ""},
    {Doing::debugger, "pydevd.py", ""},
    {Doing::debugger, "_pydevd_bundle/", ""},
    // --- modules
    {Doing::importing, "<frozen importlib._bootstrap>", ""},
    {Doing::importing, "<frozen importlib._bootstrap_external>", ""},
    {Doing::importing, "importlib/__init__.py", " import_module "},
};

// Code at a module's top level runs below importlib's frames. A whole training may run there, if
// somebody imports the script. So only the frames next to importlib's count as an import.
constexpr std::size_t kImportDepth = 8;

bool has_file(const KnownFunction& row, std::string_view file) {
  if (row.file.empty()) return true;
  if (row.file.ends_with('/')) {
    const std::size_t at = file.find(row.file);
    return at != std::string_view::npos && (at == 0 || file[at - 1] == '/');
  }
  if (!file.ends_with(row.file)) return false;
  const std::size_t before = file.size() - row.file.size();
  return before == 0 || row.file.front() == '/' || file[before - 1] == '/';
}

bool has_function(const KnownFunction& row, std::string_view name) {
  if (row.functions.empty()) return true;
  if (name.empty() || name.find(' ') != std::string_view::npos) return false;
  // The name may first be found inside a longer one.
  for (std::size_t at = row.functions.find(name); at != std::string_view::npos;
       at = row.functions.find(name, at + 1))
    if (row.functions[at - 1] == ' ' && row.functions[at + name.size()] == ' ') return true;
  return false;
}

const KnownFunction* row_of(const stacks::Frame& frame) {
  const std::string_view name = last_name(frame.function);
  for (const KnownFunction& row : kRows)
    if (has_file(row, frame.file) && has_function(row, name)) return &row;
  return nullptr;
}

bool is_checkpoint(Doing doing) {
  return doing == Doing::saving || doing == Doing::loading;
}

bool has_own(std::span<const stacks::Frame> frames) {
  return std::any_of(frames.begin(), frames.end(),
                     [](const auto& frame) { return !library_path(frame.file); });
}

}  // namespace

Activity what_doing(const stacks::ThreadStack& stack) {
  Activity activity;
  if (stack.frames.empty()) return activity;
  activity.doing = Doing::own_code;
  for (std::size_t i = 0; i < stack.frames.size(); ++i) {
    const KnownFunction* row = row_of(stack.frames[i]);
    if (row == nullptr) continue;
    if (row->doing == Doing::importing && i >= kImportDepth) continue;
    // A debugger holds the rank, whatever its user looks at.
    if (row->doing == Doing::debugger) return {.doing = Doing::debugger};
    if (is_checkpoint(row->doing)) activity.in_checkpoint = true;
    // The innermost known function decides. Its callers of the same kind name it: the user called
    // init_process_group(), not _new_process_group_helper().
    if (activity.doing != Doing::own_code && activity.doing != row->doing) continue;
    if (activity.doing == Doing::own_code && row->doing == Doing::backward)
      activity.own_inside = has_own(std::span(stack.frames).first(i));
    activity.doing = row->doing;
    activity.call = printable(last_name(stack.frames[i].function), 48);
  }
  return activity;
}

Activity what_doing(const RankLook& look) {
  if (!look.process || look.process->state == 'Z' || look.process->state == 'X')
    return {.doing = Doing::ended};
  if (look.process->tracer != 0 || look.process->state == 't') return {.doing = Doing::debugger};
  Activity activity = look.stack ? what_doing(*look.stack) : Activity{};
  if (activity.doing == Doing::debugger) return activity;
  if (look.process->state == 'T') return {.doing = Doing::stopped};
  if (look.process->reads_stdin) return {.doing = Doing::input};
  return activity;
}

bool waits_for_ranks(Doing doing) {
  return doing == Doing::collective || doing == Doing::backward || doing == Doing::rendezvous ||
         doing == Doing::gpu_wait;
}

namespace {

constexpr std::string_view kLoaderFile = "torch/utils/data/_utils/worker.py";

}  // namespace

bool is_loader(const ChildLook& child) {
  return child.stack &&
         std::any_of(child.stack->frames.begin(), child.stack->frames.end(),
                     [](const auto& frame) { return frame.file.ends_with(kLoaderFile); });
}

bool is_idle_loader(const ChildLook& child) {
  if (!child.stack) return false;
  // A loader that works has frames of a dataset between its loop and the standard library.
  for (const auto& frame : child.stack->frames) {
    if (frame.file.ends_with(kLoaderFile)) return last_name(frame.function) == "_worker_loop";
    const auto path = library_path(frame.file);
    if (!path || path->starts_with("torch/utils/data/_utils/fetch")) return false;
  }
  return false;
}

}  // namespace lockstep::looks
