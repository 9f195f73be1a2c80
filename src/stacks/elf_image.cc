// Reads ELF headers and the dynamic section.
#include "stacks/elf_image.h"

#include <algorithm>
#include <cstring>

namespace lockstep::stacks {
namespace {

// The image names these counts, and read_table() allocates before it reads: bound them.
constexpr std::size_t kMostSegments = 128;
constexpr std::size_t kMostDynamics = 256;

// The layouts were checked for these two machines only (layout.h).
bool known_machine(const Elf64_Ehdr& head) {
  return std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_ident[EI_CLASS] == ELFCLASS64 &&
         head.e_ident[EI_DATA] == ELFDATA2LSB &&
         (head.e_machine == EM_X86_64 || head.e_machine == EM_AARCH64) &&
         head.e_phentsize == sizeof(Elf64_Phdr);
}

// The chain of the bucket with the highest symbol ends with the last symbol of all.
std::size_t count_by_gnu_hash(Memory& process, Address at) {
  const auto header = process.value<GnuHashHeader>(at);
  if (!header || header->buckets == 0 || header->buckets > kMostSymbols) return 0;
  const Address buckets_at = at + sizeof(GnuHashHeader) + Address{8} * header->bloom_words;
  const auto buckets = read_table<std::uint32_t>(process, buckets_at, header->buckets);
  if (!buckets) return 0;
  std::size_t last = *std::max_element(buckets->begin(), buckets->end());
  if (last < header->first_symbol) return std::min<std::size_t>(header->first_symbol, kMostSymbols);
  const Address hashes = buckets_at + Address{4} * header->buckets;
  for (std::size_t step = 0; step < kLongestChain; ++step, ++last) {
    const auto hash =
        process.value<std::uint32_t>(hashes + Address{4} * (last - header->first_symbol));
    if (!hash) return 0;
    if ((*hash & 1) != 0) return std::min(last + 1, kMostSymbols);
  }
  return 0;
}

}  // namespace

std::optional<ElfImage> read_image(Memory& memory, Address headers, Address start) {
  const auto head = memory.value<Elf64_Ehdr>(headers);
  if (!head || !known_machine(*head) || head->e_phnum > kMostSegments) return {};
  const auto segments = read_table<Elf64_Phdr>(memory, headers + head->e_phoff, head->e_phnum);
  if (!segments) return {};
  ElfImage image{.head = *head, .bias = 0, .dynamic = {}};
  bool loaded = false;
  for (const Elf64_Phdr& segment : *segments) {
    // The segment with offset 0 holds the headers, so its address gives the bias. A program that is
    // not position-independent has a bias of 0.
    if (segment.p_type == PT_LOAD && segment.p_offset == 0 && !loaded) {
      image.bias = start - segment.p_vaddr;
      loaded = true;
    }
    if (segment.p_type == PT_DYNAMIC) image.dynamic = segment;
  }
  if (!loaded) return {};
  return image;
}

std::optional<DynamicSymbols> dynamic_symbols(Memory& process, const ElfImage& image) {
  if (!image.dynamic) return {};
  const std::size_t count =
      std::min<std::size_t>(image.dynamic->p_memsz / sizeof(Elf64_Dyn), kMostDynamics);
  const auto entries = read_table<Elf64_Dyn>(process, image.bias + image.dynamic->p_vaddr, count);
  if (!entries) return {};
  // glibc's loader adds the bias to these pointers, musl's and the kernel's vDSO don't.
  const auto place = [&](Address at) { return at < image.bias ? at + image.bias : at; };
  DynamicSymbols found;
  for (const Elf64_Dyn& entry : *entries) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_SYMTAB) found.symbols = place(entry.d_un.d_ptr);
    if (entry.d_tag == DT_STRTAB) found.names = place(entry.d_un.d_ptr);
    if (entry.d_tag == DT_GNU_HASH) found.gnu_hash = place(entry.d_un.d_ptr);
    if (entry.d_tag == DT_HASH) found.hash = place(entry.d_un.d_ptr);
  }
  if (found.symbols == 0 || found.names == 0) return {};
  return found;
}

std::size_t count_symbols(Memory& process, const DynamicSymbols& table) {
  if (table.gnu_hash != 0) return count_by_gnu_hash(process, table.gnu_hash);
  if (table.hash == 0) return 0;
  // Two words: the number of buckets, and of symbols.
  return std::min<std::size_t>(process.value<std::uint32_t>(table.hash + 4).value_or(0),
                               kMostSymbols);
}

}  // namespace lockstep::stacks
