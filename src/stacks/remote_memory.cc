// Reads the memory of another process.
#include "stacks/remote_memory.h"

#include <errno.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>

namespace lockstep::stacks {
namespace {

constexpr std::size_t kBatch = 128;  // a call takes up to 1,024, but the iovecs lie on the stack

// The system call returns bytes, not pieces.
std::size_t full_pieces(std::span<const Piece> pieces, std::size_t bytes) {
  std::size_t count = 0;
  while (count < pieces.size() && bytes >= pieces[count].into.size())
    bytes -= pieces[count++].into.size();
  return count;
}

}  // namespace

std::size_t RemoteMemory::read_pieces(std::span<const Piece> pieces) {
  std::size_t done = 0;
  while (done < pieces.size()) {
    const auto batch = pieces.subspan(done, std::min(kBatch, pieces.size() - done));
    const std::size_t got = read_batch(batch);
    done += got;
    if (got < batch.size()) break;
  }
  return done;
}

std::size_t RemoteMemory::read_batch(std::span<const Piece> pieces) {
  std::array<iovec, kBatch> here;
  std::array<iovec, kBatch> there;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    here[i] = {piece.into.data(), piece.into.size()};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address in the other process
    there[i] = {reinterpret_cast<void*>(piece.at), piece.into.size()};
  }
  const ssize_t got =
      process_vm_readv(pid_, here.data(), pieces.size(), there.data(), pieces.size(), 0);
  if (got < 0) {
    last_error_ = errno;
    return 0;
  }
  return full_pieces(pieces, static_cast<std::size_t>(got));
}

}  // namespace lockstep::stacks
