// The headers and the dynamic symbols of an ELF image, x86-64 or aarch64. All reads are bounded,
// and take any bytes.
#pragma once

#include "stacks/memory.h"

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::stacks {

constexpr std::size_t kMostSymbols = 400'000;  // a CPython with all symbols has 30,000
constexpr std::size_t kLongestChain = 1'024;   // symbols of a hash bucket; usually less than ten

struct ElfImage {
  Elf64_Ehdr head{};
  Address bias = 0;  // from an address in the file's headers to one in the process
  std::optional<Elf64_Phdr> dynamic;
};

// Addresses in the process. 0: not there.
struct DynamicSymbols {
  Address symbols = 0;
  Address names = 0;
  Address gnu_hash = 0;  // DT_GNU_HASH
  Address hash = 0;      // DT_HASH
};

struct GnuHashHeader {
  std::uint32_t buckets;
  std::uint32_t first_symbol;  // index of the first symbol with a hash
  std::uint32_t bloom_words;   // of 8 bytes
  std::uint32_t bloom_shift;
};

template <class T>
std::optional<std::vector<T>> read_table(Memory& memory, Address at, std::size_t count) {
  std::vector<T> table(count);
  if (!memory.read(at, std::as_writable_bytes(std::span(table)))) return {};
  return table;
}

// `headers`: where the headers lie in `memory`. `start`: where the process has them.
std::optional<ElfImage> read_image(Memory& memory, Address headers, Address start);

// Returns nothing unless the image in memory has symbols and their names.
std::optional<DynamicSymbols> dynamic_symbols(Memory& process, const ElfImage& image);

// Returns the number of the symbols, which only the hash tables tell; at most kMostSymbols. 0: not
// known, or not readable.
std::size_t count_symbols(Memory& process, const DynamicSymbols& table);

}  // namespace lockstep::stacks
