// Opens /proc/PID/maps and, rarely, the interpreter's file.
#include "stacks/stack_reader.h"

#include "io/fd.h"
#include "io/file_system.h"
#include "stacks/find_python.h"
#include "stacks/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <string>
#include <utility>

namespace lockstep::stacks {
namespace {

// A process may have 65,530 mappings, unless its system was told otherwise. Also the limit of its
// list of mounts.
constexpr std::size_t kLargestMaps = 16U << 20;
// A program comes first in the list, at the lowest addresses. PyTorch makes the list long: 1,700
// lines, for which the kernel needs some milliseconds.
constexpr std::size_t kStartOfMaps = 4'000;

std::string proc(pid_t pid) {
  return "/proc/" + std::to_string(pid);
}

// A file's bytes by offset.
class FileMemory final : public Memory {
 public:
  explicit FileMemory(io::Fd fd) : fd_(std::move(fd)) {}

  std::size_t read_pieces(std::span<const Piece> pieces) override {
    std::size_t done = 0;
    while (done < pieces.size() && read_piece(pieces[done]))
      ++done;
    return done;
  }

 private:
  bool read_piece(const Piece& piece) const {
    const ssize_t got =
        pread(fd_.get(), piece.into.data(), piece.into.size(), static_cast<off_t>(piece.at));
    return got >= 0 && static_cast<std::size_t>(got) == piece.into.size();
  }

  io::Fd fd_;
};

// O_NONBLOCK: a path of another process may lead to anything, such as a FIFO.
io::Fd open_regular(const std::string& path) {
  io::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat facts {};
  if (fd && (fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode))) fd.reset();
  return fd;
}

// Returns whether a path, as the process sees it, lies on a local file system. Asks no file system.
bool is_on_local(pid_t pid, const std::string& path) {
  const auto mounts = io::read_file(proc(pid) + "/mountinfo", kLargestMaps);
  return mounts && io::is_on_local(io::mounts_of(*mounts), path);
}

// Comes into play for interpreters without dynamic symbols, and for programs that are not Python.
std::unique_ptr<Memory> open_mapped(pid_t pid, const MappedFile& file) {
  // A dead file server would hold up the agent for ever, also at the link in map_files.
  if (!is_on_local(pid, file.path)) return nullptr;
  std::array<char, 64> range{};
  snprintf(range.data(), range.size(), "/map_files/%lx-%lx", static_cast<unsigned long>(file.start),
           static_cast<unsigned long>(file.end));
  // This is the mapped file itself, also after an upgrade, but needs CAP_CHECKPOINT_RESTORE.
  io::Fd fd = open_regular(proc(pid) + range.data());
  // Through the root of the process, which may be a container's.
  if (!fd && !file.deleted) fd = open_regular(proc(pid) + "/root" + file.path);
  if (!fd) return nullptr;
  return std::make_unique<FileMemory>(std::move(fd));
}

std::string program_of(pid_t pid) {
  std::array<char, PATH_MAX> path{};
  const ssize_t size = readlink((proc(pid) + "/exe").c_str(), path.data(), path.size());
  return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : std::string();
}

tl::unexpected<Reason> because(Reason reason) {
  return tl::make_unexpected(std::move(reason));
}

tl::expected<Interpreter, Reason> find_in(pid_t pid, RemoteMemory& memory) {
  const std::string maps_path = proc(pid) + "/maps";
  const std::string program = program_of(pid);
  auto maps = io::read_file(maps_path, kStartOfMaps);
  if (maps) {
    maps->resize(maps->rfind('\n') + 1);  // the last line may be cut off
    auto found = find_python(memory, python_files(*maps, ""), [](auto&) { return nullptr; });
    if (found) return *std::move(found);
    maps = io::read_file(maps_path, kLargestMaps);
  }
  if (!maps) return because(reason_of_errno(pid, maps.error().sys));
  // A zombie has no mappings, and neither has a thread of the kernel. Read any address, so that
  // last_error() says which.
  if (maps->empty()) (void)memory.value<char>(0);
  auto found = find_python(memory, python_files(*maps, program),
                           [pid](const MappedFile& file) { return open_mapped(pid, file); });
  if (found) return *std::move(found);
  const int error = memory.last_error();
  if (error == EPERM || error == ENOSYS || error == ESRCH)
    return because(reason_of_errno(pid, error));
  return because(not_python(pid));
}

}  // namespace

StackReader::StackReader(pid_t pid, ThreadIds ids, ProcessStacks stacks)
    : pid_(pid), memory_(pid), ids_(std::move(ids)), stacks_(std::move(stacks)) {}

tl::expected<StackReader, Reason> StackReader::attach(pid_t pid) {
  RemoteMemory memory(pid);
  const auto found = find_in(pid, memory);
  if (!found) return because(found.error());
  if (!found->layout) return because(unknown_python(pid, found->version));
  ThreadIds ids(pid);
  ProcessStacks stacks(*found->layout, found->runtime, ids.inner_pid());
  if (const auto good = stacks.check(memory); !good) {
    if (memory.last_error() == ESRCH) return because(gone(pid));
    if (good.error() == Unreadable::starting) return because(starting(pid));
    if (good.error() == Unreadable::slow) return because(slow(pid));
    // A debug build, or one with patches.
    return because(unknown_python(pid, found->version + " with other data than a release build"));
  }
  return StackReader(pid, std::move(ids), std::move(stacks));
}

tl::expected<std::vector<ThreadStack>, Reason> StackReader::read() {
  memory_.forget_error();
  auto stacks = stacks_.read(memory_);
  if (!stacks) return because(reason(stacks.error()));
  for (ThreadStack& stack : *stacks)
    stack.tid = ids_.outer(stack.tid);
  return *std::move(stacks);
}

tl::expected<std::optional<ThreadStack>, Reason> StackReader::read_main() {
  memory_.forget_error();
  auto stack = stacks_.read_main(memory_);
  if (!stack) return because(reason(stack.error()));
  if (*stack) (*stack)->tid = ids_.outer((*stack)->tid);
  return *std::move(stack);
}

Reason StackReader::reason(Unreadable kind) const {
  const int error = memory_.last_error();
  if (error == ESRCH || error == EPERM || error == ENOSYS) return reason_of_errno(pid_, error);
  if (kind == Unreadable::slow) return slow(pid_);
  return kind == Unreadable::starting ? starting(pid_) : changed(pid_);
}

}  // namespace lockstep::stacks
