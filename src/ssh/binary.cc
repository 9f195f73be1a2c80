#include "ssh/binary.h"

#include "base/fnv.h"
#include "base/id.h"
#include "codec/sha256.h"
#include "io/digest.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "proc/find_in_path.h"
#include "proc/spawn.h"
#include "ssh/other_binary.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace lockstep::ssh {
namespace {

constexpr std::size_t kIdBytes = 8;
constexpr std::size_t kHead = 16UL << 10;  // an executable's notes are near its start

template <class T>
std::optional<T> at(std::string_view bytes, std::size_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::optional<std::string> id_in_notes(std::string_view notes) {
  while (const auto note = at<Elf64_Nhdr>(notes, 0)) {
    const std::size_t name = sizeof *note;
    // Names and contents of notes are padded to 4 bytes.
    const std::size_t content = name + ((note->n_namesz + 3UL) & ~3UL);
    const std::size_t end = content + ((note->n_descsz + 3UL) & ~3UL);
    if (end > notes.size()) return std::nullopt;
    if (note->n_type == NT_GNU_BUILD_ID &&
        notes.substr(name, note->n_namesz) == std::string_view("GNU\0", 4) &&
        note->n_descsz >= kIdBytes)
      return codec::hex(notes.substr(content, kIdBytes));
    notes.remove_prefix(end);
  }
  return std::nullopt;
}

std::string head_of(const std::string& path) {
  const io::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string head(kHead, '\0');
  const ssize_t got = fd ? read(fd.get(), head.data(), head.size()) : 0;
  head.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return head;
}

// Identifies this user on this machine.
std::string client_id() {
  utsname here{};
  uname(&here);
  const std::uint64_t value = fnv1a(std::string(here.nodename) + "/" + std::to_string(geteuid()));
  return codec::hex({reinterpret_cast<const char*>(&value), sizeof value});
}

// Returns the digest of the unpacked binary, in hexadecimal digits.
Result<std::string> sha256_of_binary(const std::string& path, bool packed) {
  if (!packed) return io::sha256_of_file(path);
  LOCKSTEP_TRY_ASSIGN(const std::string whole, unpacked_binary(path));
  return codec::hex(codec::sha256(whole));
}

Result<Binary> named(std::string path, bool packed, std::string_view head) {
  auto id = build_id(head);
  if (!id) {  // linked without a build id: digest the file, which takes longer
    // The version alone does not name a binary: two builds of one version may differ.
    LOCKSTEP_TRY_ASSIGN(id, sha256_of_binary(path, packed));
    id->resize(2 * kIdBytes);
  }
  return Binary{std::move(path), {LOCKSTEP_VERSION, *id, client_id()}, packed};
}

// Runs gzip FROM > TO. Returns false if gzip is missing or fails.
bool compress(const std::string& from, const std::string& to) {
  const auto gzip = proc::find_in_path("gzip");
  const io::Fd in(open(from.c_str(), O_RDONLY | O_CLOEXEC));
  const io::Fd out(open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!gzip || !in || !out) return false;
  proc::SpawnSpec spec;
  spec.executable = *gzip;
  spec.argv = {"gzip", "-1",
               "-c"};  // a tenth larger than the default level, in a quarter of the time
  spec.env = {"PATH=/usr/bin:/bin"};
  spec.stdin_fd = in.get();
  spec.stdout_fd = out.get();
  auto child = proc::spawn(spec);
  if (!child) return false;
  pollfd end{child->pidfd(), POLLIN, 0};
  while (poll(&end, 1, -1) < 0 && errno == EINTR) {
  }
  const auto exit = child->reap();
  return exit && exit->ok();
}

std::uint64_t size_of(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

}  // namespace

std::optional<std::string> build_id(std::string_view elf) {
  const auto header = at<Elf64_Ehdr>(elf, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_phentsize != sizeof(Elf64_Phdr))
    return std::nullopt;
  for (std::size_t i = 0; i < header->e_phnum; ++i) {
    const auto segment = at<Elf64_Phdr>(elf, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment) return std::nullopt;
    if (segment->p_type != PT_NOTE || segment->p_offset > elf.size() ||
        elf.size() - segment->p_offset < segment->p_filesz)
      continue;
    if (auto id = id_in_notes(elf.substr(segment->p_offset, segment->p_filesz))) return id;
  }
  return std::nullopt;
}

Result<Binary> own_binary() {
  LOCKSTEP_TRY_ASSIGN(std::string path, proc::own_executable());
  // An update has replaced the file. The running process can still read its own through /proc.
  if (path.ends_with(" (deleted)") && access(path.c_str(), F_OK) != 0) path = "/proc/self/exe";
  const std::string head = head_of(path);
  return named(std::move(path), false, head);
}

Result<Binary> binary_for(std::string_view machine) {
  utsname here{};
  uname(&here);
  if (machine == here.machine) return own_binary();
  LOCKSTEP_TRY_ASSIGN(OtherBinary other, other_binary(machine));
  return named(std::move(other.path), other.packed, other.head);
}

Result<Pushable> pushable(const Binary& binary) {
  // This reads the whole file, so a damaged one is never sent.
  LOCKSTEP_TRY_ASSIGN(std::string sha256, sha256_of_binary(binary.path, binary.packed));
  if (binary.packed) return Pushable{binary.path, size_of(binary.path), true, std::move(sha256)};
  const std::string folder = io::cache_folder() + "/push";
  const std::string path =
      folder + "/lockstep-" + binary.name.version + "-" + binary.name.id + ".gz";
  if (access(path.c_str(), R_OK) != 0 && io::make_folders(folder)) {
    // Two pushes may compress at once: each writes a draft of its own, and rename() replaces the
    // file whole.
    const std::string draft = path + "." + random_suffix(8);
    if (!compress(binary.path, draft) || rename(draft.c_str(), path.c_str()) != 0)
      unlink(draft.c_str());
  }
  const std::uint64_t size = size_of(path);
  if (size > 0) return Pushable{path, size, true, std::move(sha256)};
  return Pushable{binary.path, size_of(binary.path), false, std::move(sha256)};
}

}  // namespace lockstep::ssh
