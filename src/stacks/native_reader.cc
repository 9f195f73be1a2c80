// Reads /proc/PID/task, /proc/PID/maps and the list of mounted file systems.
#include "stacks/native_reader.h"

#include "base/text.h"
#include "io/fd.h"
#include "io/file_system.h"
#include "io/folder_names.h"
#include "stacks/bounded_memory.h"
#include "stacks/local_memory.h"
#include "stacks/native_point.h"
#include "stacks/process_stacks.h"
#include "stacks/remote_memory.h"

#include <errno.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace lockstep::stacks {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostText = 1'024;
constexpr std::size_t kMostWchan = 48;
constexpr std::size_t kLargestMaps = 16U << 20;  // also of the list of mounts
// A library as large as PyTorch's has 10 MB of symbols. The first reader brings them from the disk.
constexpr ReadLimits kLimits{.pieces = 100'000, .time = std::chrono::milliseconds(300)};
// ends_with_call() knows the instructions of x86-64 only.
#ifdef __x86_64__
constexpr bool kFindsCallers = true;
#else
constexpr bool kFindsCallers = false;
#endif

struct Seen {
  NativeThread thread;
  std::optional<ThreadPoint> point = {};
  std::vector<Address> callers = {};
};

std::string folder_of(pid_t pid, pid_t tid) {
  return "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid);
}

std::vector<pid_t> threads_of(pid_t pid) {
  std::vector<pid_t> tids;
  for (const std::string& name : io::names_in("/proc/" + std::to_string(pid) + "/task"))
    if (const auto tid = parse_int(name); tid && *tid != pid)
      tids.push_back(static_cast<pid_t>(*tid));
  std::sort(tids.begin(), tids.end());
  tids.insert(tids.begin(), pid);
  return tids;
}

std::optional<ThreadPoint> point_of(pid_t pid, pid_t tid) {
  const auto text = io::read_file(folder_of(pid, tid) + "/syscall", kMostText);
  return text ? parse_point(*text) : std::nullopt;
}

// Returns nothing if the thread has ended.
std::optional<Seen> look_at(pid_t pid, pid_t tid) {
  const std::string folder = folder_of(pid, tid);
  // Read the state after the call. The kernel tells the call only of a thread that waits. An older
  // state would show a thread that has just begun to wait as running.
  const std::optional<ThreadPoint> point = point_of(pid, tid);
  const auto stat = io::read_file(folder + "/stat", kMostText);
  auto state = stat ? parse_thread_state(*stat) : std::nullopt;
  if (!state) return {};
  Seen seen{.thread = {.tid = tid, .name = std::move(state->name), .state = state->state},
            .point = point};
  seen.thread.runs = seen.point ? seen.point->runs : state->state == 'R';
  if (seen.thread.runs || state->state == 'Z' || state->state == 'X') {
    seen.point.reset();
    return seen;
  }
  // "0": the thread does not wait in the kernel, or the kernel hides the place.
  if (const auto wchan = io::read_file(folder + "/wchan", kMostText))
    if (strip(*wchan) != "0") seen.thread.wchan = printable(strip(*wchan), kMostWchan);
  if (seen.point) seen.thread.call = call_words(*seen.point, seen.thread.state);
  return seen;
}

// Returns why a process tells nothing about its threads. nullopt: it does.
std::optional<Reason> refusal_of(pid_t pid) {
  const auto text = io::read_file(folder_of(pid, pid) + "/syscall", kMostText);
  // A kernel may lack the file. What else there is to read is read all the same.
  if (text || (text.error().sys != EPERM && text.error().sys != EACCES)) return {};
  return denied(pid);
}

NativePlace place_of(const ThreadPoint& point) {
  return point.call < 0 ? NativePlace{point.at, point.at} : after_call(point.at);
}

// A thread that moves meanwhile has another stack: nothing is claimed of its callers.
void find_callers(pid_t pid, Memory& memory, const std::vector<Mapping>& mappings, Seen& seen) {
  auto callers = return_addresses(memory, mappings, seen.point->stack, kMostCallers);
  if (point_of(pid, seen.thread.tid) == seen.point) seen.callers = std::move(callers);
}

void name_places(pid_t pid, PlaceNames& names, std::vector<Seen>& all) {
  const auto maps = io::read_file("/proc/" + std::to_string(pid) + "/maps", kLargestMaps);
  if (!maps) return;
  // Without this list no file counts as local, and none is read.
  const auto mounts = io::read_file("/proc/self/mountinfo", kLargestMaps);
  const std::vector<Mapping> mappings =
      parse_mappings(*maps, io::local_devices(mounts ? *mounts : std::string()));
  RemoteMemory remote(pid);
  LocalMemory local(remote, mappings);
  BoundedMemory calls(local, kLimits);
  std::vector<NativePlace> places;
  for (Seen& seen : all) {
    if (!seen.point) continue;
    if (kFindsCallers) find_callers(pid, calls, mappings, seen);
    places.push_back(place_of(*seen.point));
    for (const Address caller : seen.callers)
      places.push_back(after_call(caller));
  }
  // Many stacks may use up all reads, and the names must not suffer.
  BoundedMemory symbols(local, kLimits);
  names.find(symbols, mappings, places);
  for (Seen& seen : all) {
    if (!seen.point) continue;
    seen.thread.at = names.text(mappings, place_of(*seen.point));
    for (const Address caller : seen.callers)
      seen.thread.callers.push_back(names.text(mappings, after_call(caller)));
  }
}

}  // namespace

tl::expected<NativeThreads, Reason> NativeReader::read(pid_t pid, const NativeQuestion& question) {
  if (auto refusal = refusal_of(pid)) return tl::make_unexpected(std::move(*refusal));
  const std::vector<pid_t> tids = question.all ? threads_of(pid) : std::vector<pid_t>{pid};
  NativeThreads found;
  std::vector<Seen> all;
  for (const pid_t tid : tids) {
    if (all.size() == kMostThreads || Clock::now() >= question.end)
      ++found.left_out;
    else if (auto seen = look_at(pid, tid))
      all.push_back(std::move(*seen));
  }
  if (all.empty() && found.left_out == 0) return tl::make_unexpected(gone(pid));
  // A read of the memory would wait for such a thread, maybe for ever (remote_memory.h). Then show
  // only what the kernel tells.
  const bool held = std::any_of(all.begin(), all.end(), [](const Seen& seen) {
    return may_hold_map(seen.thread.state, seen.point);
  });
  if (question.memory && !held && Clock::now() < question.end) name_places(pid, names_, all);
  for (Seen& seen : all)
    found.threads.push_back(std::move(seen.thread));
  return found;
}

}  // namespace lockstep::stacks
