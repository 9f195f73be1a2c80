// Reads ELF headers, dynamic symbols and sections.
#include "stacks/elf.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

namespace lockstep::stacks {
namespace {

constexpr std::size_t kMostSegments = 128;
constexpr std::size_t kMostSections = 1'024;
constexpr std::size_t kMostDynamics = 256;
constexpr std::size_t kMostSymbols = 400'000;  // a CPython with all symbols has 30,000
constexpr std::size_t kLongestChain = 1'024;   // symbols of a hash bucket; usually less than ten

constexpr std::string_view kRuntimeName = "_PyRuntime";
constexpr std::string_view kVersionName = "Py_Version";
constexpr std::string_view kRuntimeSection = ".PyRuntime";

struct Image {
  Elf64_Ehdr head{};
  Address bias = 0;  // from an address in the file's headers to one in the process
  std::optional<Elf64_Phdr> dynamic;
};

bool known_machine(const Elf64_Ehdr& head) {
  return std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_ident[EI_CLASS] == ELFCLASS64 &&
         head.e_ident[EI_DATA] == ELFDATA2LSB &&
         (head.e_machine == EM_X86_64 || head.e_machine == EM_AARCH64) &&
         head.e_phentsize == sizeof(Elf64_Phdr);
}

template <class T>
std::optional<std::vector<T>> read_table(Memory& memory, Address at, std::size_t count) {
  std::vector<T> table(count);
  if (!memory.read(at, std::as_writable_bytes(std::span(table)))) return {};
  return table;
}

// `headers`: where the headers lie in `memory`. `start`: where the process has them.
std::optional<Image> read_image(Memory& memory, Address headers, Address start) {
  const auto head = memory.value<Elf64_Ehdr>(headers);
  if (!head || !known_machine(*head) || head->e_phnum > kMostSegments) return {};
  const auto segments = read_table<Elf64_Phdr>(memory, headers + head->e_phoff, head->e_phnum);
  if (!segments) return {};
  Image image{.head = *head, .bias = 0, .dynamic = {}};
  bool loaded = false;
  for (const Elf64_Phdr& segment : *segments) {
    if (segment.p_type == PT_LOAD && segment.p_offset == 0 && !loaded) {
      image.bias = start - segment.p_vaddr;
      loaded = true;
    }
    if (segment.p_type == PT_DYNAMIC) image.dynamic = segment;
  }
  if (!loaded) return {};
  return image;
}

// Reads a name of the length of `name`, and its end.
bool is_named(Memory& memory, Address at, std::string_view name) {
  std::array<char, 16> text{};
  const auto bytes = std::as_writable_bytes(std::span(text)).first(name.size() + 1);
  return memory.read(at, bytes) && std::string_view(text.data(), name.size()) == name &&
         text[name.size()] == '\0';
}

// The dynamic symbols of an image in memory.
struct DynamicSymbols {
  Address symbols = 0;
  Address names = 0;
  Address hash = 0;  // DT_GNU_HASH
};

std::optional<DynamicSymbols> dynamic_symbols(Memory& process, const Image& image) {
  const std::size_t count =
      std::min<std::size_t>(image.dynamic->p_memsz / sizeof(Elf64_Dyn), kMostDynamics);
  const auto entries = read_table<Elf64_Dyn>(process, image.bias + image.dynamic->p_vaddr, count);
  if (!entries) return {};
  // glibc's loader adds the bias to these pointers, musl's doesn't.
  const auto place = [&](Address at) { return at < image.bias ? at + image.bias : at; };
  DynamicSymbols found;
  for (const Elf64_Dyn& entry : *entries) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_SYMTAB) found.symbols = place(entry.d_un.d_ptr);
    if (entry.d_tag == DT_STRTAB) found.names = place(entry.d_un.d_ptr);
    if (entry.d_tag == DT_GNU_HASH) found.hash = place(entry.d_un.d_ptr);
  }
  if (found.symbols == 0 || found.names == 0 || found.hash == 0) return {};
  return found;
}

std::uint32_t gnu_hash(std::string_view name) {
  std::uint32_t hash = 5381;
  for (const char c : name)
    hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

struct HashHeader {
  std::uint32_t buckets;
  std::uint32_t first_symbol;  // index of the first symbol with a hash
  std::uint32_t bloom_words;   // of 8 bytes
  std::uint32_t bloom_shift;
};

std::optional<Elf64_Sym> symbol(Memory& process, const DynamicSymbols& table,
                                std::string_view name) {
  const auto header = process.value<HashHeader>(table.hash);
  if (!header || header->buckets == 0) return {};
  const Address buckets = table.hash + sizeof(HashHeader) + Address{8} * header->bloom_words;
  const Address hashes = buckets + Address{4} * header->buckets;
  const std::uint32_t wanted = gnu_hash(name);
  const auto first =
      process.value<std::uint32_t>(buckets + Address{4} * (wanted % header->buckets));
  if (!first || *first < header->first_symbol) return {};
  for (std::size_t step = 0; step < kLongestChain; ++step) {
    const Address index = *first + step;
    const auto hash = process.value<std::uint32_t>(hashes + 4 * (index - header->first_symbol));
    if (!hash) return {};
    if ((*hash | 1) == (wanted | 1)) {
      const auto found = process.value<Elf64_Sym>(table.symbols + index * sizeof(Elf64_Sym));
      if (found && found->st_shndx != SHN_UNDEF &&
          is_named(process, table.names + found->st_name, name))
        return found;
    }
    if ((*hash & 1) != 0) return {};  // the last symbol of the bucket
  }
  return {};
}

// A symbol table in a file, read in parts.
void find_in_table(Memory& file, const Elf64_Shdr& table, const Elf64_Shdr& names,
                   const Image& image, RuntimeAt& found) {
  constexpr std::size_t kPart = 4096;
  const std::size_t count = std::min<std::size_t>(table.sh_size / sizeof(Elf64_Sym), kMostSymbols);
  for (std::size_t done = 0; done < count; done += kPart) {
    const auto part = read_table<Elf64_Sym>(file, table.sh_offset + done * sizeof(Elf64_Sym),
                                            std::min(kPart, count - done));
    if (!part) return;
    for (const Elf64_Sym& entry : *part) {
      // Only data has these names, so most names need not be read.
      if (ELF64_ST_TYPE(entry.st_info) != STT_OBJECT || entry.st_shndx == SHN_UNDEF) continue;
      const Address name = names.sh_offset + entry.st_name;
      if (found.runtime == 0 && is_named(file, name, kRuntimeName)) {
        found.runtime = image.bias + entry.st_value;
        found.size = entry.st_size;
      } else if (found.version == 0 && entry.st_size == 8 && is_named(file, name, kVersionName)) {
        found.version = image.bias + entry.st_value;
      }
    }
  }
}

}  // namespace

std::optional<RuntimeAt> runtime_in_memory(Memory& process, Address start) {
  const auto image = read_image(process, start, start);
  if (!image || !image->dynamic) return {};
  const auto table = dynamic_symbols(process, *image);
  if (!table) return {};
  const auto runtime = symbol(process, *table, kRuntimeName);
  if (!runtime) return {};
  RuntimeAt found{
      .runtime = image->bias + runtime->st_value, .version = 0, .size = runtime->st_size};
  if (const auto version = symbol(process, *table, kVersionName))
    found.version = image->bias + version->st_value;
  return found;
}

std::optional<RuntimeAt> runtime_in_file(Memory& file, Address start) {
  const auto image = read_image(file, 0, start);
  if (!image || image->head.e_shentsize != sizeof(Elf64_Shdr)) return {};
  const std::size_t count = std::min<std::size_t>(image->head.e_shnum, kMostSections);
  const auto sections = read_table<Elf64_Shdr>(file, image->head.e_shoff, count);
  if (!sections || image->head.e_shstrndx >= count) return {};
  const Elf64_Shdr& names = (*sections)[image->head.e_shstrndx];
  RuntimeAt found;
  for (const Elf64_Shdr& section : *sections) {
    if (section.sh_type == SHT_PROGBITS && found.runtime == 0 &&
        is_named(file, names.sh_offset + section.sh_name, kRuntimeSection)) {
      found.runtime = image->bias + section.sh_addr;
      found.size = section.sh_size;
    }
    if ((section.sh_type == SHT_DYNSYM || section.sh_type == SHT_SYMTAB) && section.sh_link < count)
      find_in_table(file, section, (*sections)[section.sh_link], *image, found);
  }
  if (found.runtime == 0) return {};
  return found;
}

}  // namespace lockstep::stacks
