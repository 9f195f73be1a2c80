// The memory of another process, or a picture of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

namespace lockstep::stacks {

using Address = std::uint64_t;

struct Piece {
  Address at = 0;
  std::span<std::byte> into;
};

class Memory {
 public:
  virtual ~Memory() = default;

  // Reads the pieces in order. Returns how many were read in full, and stops at the first piece
  // that is not readable.
  virtual std::size_t read_pieces(std::span<const Piece> pieces) = 0;

  bool read(Address at, std::span<std::byte> into) {
    const Piece piece{at, into};
    return read_pieces({&piece, 1}) == 1;
  }

  template <class T>
  std::optional<T> value(Address at) {
    static_assert(std::is_trivially_copyable_v<T>);
    T made{};
    if (!read(at, std::as_writable_bytes(std::span(&made, 1)))) return {};
    return made;
  }
};

// A copy of the first bytes of an object in another process.
class ObjectCopy {
 public:
  static constexpr std::size_t kLimit = 512;  // no object that is looked at needs more

  // Prepares the copy to be read as a piece. The size must be at most kLimit.
  Piece piece(Address at, std::size_t size) {
    size_ = size;
    return {at, std::span(bytes_).first(size)};
  }
  bool load(Memory& memory, Address at, std::size_t size) {
    const Piece wanted = piece(at, size);
    return memory.read_pieces({&wanted, 1}) == 1;
  }

  // Returns the member at this offset, or 0 beyond the end of the copy.
  template <class T>
  T get(std::size_t offset) const {
    static_assert(std::is_trivially_copyable_v<T>);
    T made{};
    if (offset + sizeof(T) <= size_) std::memcpy(&made, bytes_.data() + offset, sizeof(T));
    return made;
  }
  Address pointer(std::size_t offset) const { return get<Address>(offset); }

 private:
  std::array<std::byte, kLimit> bytes_{};
  std::size_t size_ = 0;
};

}  // namespace lockstep::stacks
