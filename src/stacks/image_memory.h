// A picture of a process's memory: some ranges of bytes. Tests make pictures, and the fuzzer reads
// recorded ones.
#pragma once

#include "stacks/memory.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::stacks {

class ImageMemory final : public Memory {
 public:
  std::size_t read_pieces(std::span<const Piece> pieces) override;

  // Later bytes replace earlier ones at the same addresses.
  void put(Address at, std::span<const std::byte> bytes);
  template <class T>
  void put_value(Address at, const T& made) {
    put(at, std::as_bytes(std::span(&made, 1)));
  }

  // One record for each range: address (8 bytes), size (4 bytes), the bytes; little-endian.
  std::string save() const;
  // Reads what save() wrote. Stops at the first record that is cut off, and at 4 MiB in sum.
  static ImageMemory load(std::string_view saved);

 private:
  bool read_piece(const Piece& piece) const;

  std::map<Address, std::vector<std::byte>> ranges_;  // they neither overlap nor touch
};

// Remembers what is read through it. Refuses large pieces, with which frames are read ahead: the
// frames are read one by one then, and the picture stays small.
class RecordingMemory final : public Memory {
 public:
  explicit RecordingMemory(Memory& memory) : memory_(memory) {}

  std::size_t read_pieces(std::span<const Piece> pieces) override;
  const ImageMemory& image() const { return image_; }

 private:
  Memory& memory_;
  ImageMemory image_;
};

// A process as stacks_tool recorded it: the line "START PID NAME", then what ImageMemory::save()
// wrote.
struct Recording {
  Address start = 0;  // where the interpreter's file is mapped
  int pid = 0;
  std::string name;  // of that file
  ImageMemory memory;
};
std::string save_recording(const Recording& recording);
std::optional<Recording> load_recording(std::string_view saved);

}  // namespace lockstep::stacks
