// The memory of a Python process with any bytes (tests/fuzz/make_stacks_corpus.py records real
// ones): stacks within the limits, or a reason. The same bytes are read as an ELF file, in memory
// and on a disk, as a line table and as texts of /proc.
#include "base/error.h"
#include "base/utf8.h"
#include "stacks/elf.h"
#include "stacks/find_python.h"
#include "stacks/image_memory.h"
#include "stacks/native_place.h"
#include "stacks/native_point.h"
#include "stacks/native_symbols.h"
#include "stacks/process_stacks.h"
#include "stacks/thread_ids.h"

#include <stddef.h>
#include <stdint.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {
using namespace lockstep;          // NOLINT
using namespace lockstep::stacks;  // NOLINT

// The picture as a file: offsets begin where it is mapped.
class PictureOfFile final : public Memory {
 public:
  PictureOfFile(Memory& picture, Address start) : picture_(picture), start_(start) {}
  std::size_t read_pieces(std::span<const Piece> pieces) override {
    std::vector<Piece> moved(pieces.begin(), pieces.end());
    for (Piece& piece : moved)
      piece.at += start_;
    return picture_.read_pieces(moved);
  }

 private:
  Memory& picture_;
  Address start_;
};

void check_stack(const ThreadStack& stack) {
  LOCKSTEP_CHECK(stack.frames.size() <= kMostFrames);
  for (const Frame& frame : stack.frames) {
    LOCKSTEP_CHECK(frame.line >= 0);
    LOCKSTEP_CHECK(is_utf8(frame.function) && frame.function.size() <= 4 * 1'024);
    LOCKSTEP_CHECK(is_utf8(frame.file) && frame.file.size() <= 4 * 4'096);
  }
}

void check_process(Recording& recording) {
  const std::vector<MappedFile> files = {{recording.start, 0, "/usr/bin/" + recording.name, false}};
  const auto found = find_python(recording.memory, files, [&](const MappedFile& file) {
    return std::make_unique<PictureOfFile>(recording.memory, file.start);
  });
  if (!found || !found->layout) return;
  ProcessStacks stacks(*found->layout, found->runtime, recording.pid,
                       {.pieces = 20'000, .time = std::chrono::seconds(60)});
  for (int i = 0; i < 2; ++i) {
    if (const auto all = stacks.read(recording.memory)) {
      LOCKSTEP_CHECK(all->size() <= kMostThreads);
      for (const ThreadStack& stack : *all)
        check_stack(stack);
    }
    if (const auto main = stacks.read_main(recording.memory); main && *main) check_stack(**main);
  }
}

void check_native(Recording& recording, std::string_view bytes) {
  const Address start = recording.start;
  const std::vector<Address> addresses = {start, start + 0x1000, start + bytes.size(), ~Address{0}};
  if (const auto symbols = symbols_at(recording.memory, start, addresses))
    for (const auto& symbol : *symbols)
      LOCKSTEP_CHECK(!symbol || symbol->name.size() <= kMostSymbolName);
  const std::vector<Mapping> mappings = {
      {.start = start, .end = start + (1U << 20), .image = start, .code = true, .name = "python"}};
  LOCKSTEP_CHECK(return_addresses(recording.memory, mappings, start, 16).size() <= 16);
}

void check_elf(std::string_view bytes) {
  constexpr Address kStart = 0x10000;
  const auto raw = std::as_bytes(std::span(bytes.data(), bytes.size()));
  ImageMemory file;
  file.put(0, raw);
  ImageMemory process;
  process.put(kStart, raw);
  (void)runtime_in_file(file, kStart);
  (void)runtime_in_memory(process, kStart);
  const std::vector<Address> addresses = {kStart + 0x100, kStart + bytes.size(), ~Address{0}};
  if (const auto symbols = symbols_at(process, kStart, addresses))
    for (const auto& symbol : *symbols)
      LOCKSTEP_CHECK(!symbol || symbol->name.size() <= kMostSymbolName);
}

void check_texts(std::string_view bytes) {
  (void)mapping_at(parse_mappings(bytes, {}), bytes.size());
  (void)parse_point(bytes);
  if (const auto state = parse_thread_state(bytes)) LOCKSTEP_CHECK(is_utf8(state->name));
  const std::string name = short_name(bytes);
  LOCKSTEP_CHECK(is_utf8(name) && name.size() <= 1'000);
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (auto recording = load_recording(bytes)) {
    check_process(*recording);
    check_native(*recording, bytes);
  }
  check_elf(bytes);
  check_texts(bytes);
  for (const LineTable kind : {LineTable::lnotab, LineTable::line_deltas, LineTable::locations})
    LOCKSTEP_CHECK(line_at(kind, {data, size}, 1, static_cast<int64_t>(size)) >= 0);
  LOCKSTEP_CHECK(python_files(bytes, "/usr/bin/python3").size() <= 8);
  (void)version_in_name(bytes);
  (void)ids_in_status(bytes);
  return 0;
}
