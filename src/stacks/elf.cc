// Looks names up in the dynamic symbols, and in the sections of a file.
#include "stacks/elf.h"

#include "stacks/elf_image.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

namespace lockstep::stacks {
namespace {

constexpr std::size_t kMostSections = 1'024;

constexpr std::string_view kRuntimeName = "_PyRuntime";
constexpr std::string_view kVersionName = "Py_Version";
constexpr std::string_view kRuntimeSection = ".PyRuntime";

// Reads the final zero, too: a longer name may begin with `name`.
bool is_named(Memory& memory, Address at, std::string_view name) {
  std::array<char, 16> text{};
  const auto bytes = std::as_writable_bytes(std::span(text)).first(name.size() + 1);
  return memory.read(at, bytes) && std::string_view(text.data(), name.size()) == name &&
         text[name.size()] == '\0';
}

std::uint32_t gnu_hash(std::string_view name) {
  std::uint32_t hash = 5381;
  for (const char c : name)
    hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

std::optional<Elf64_Sym> symbol(Memory& process, const DynamicSymbols& table,
                                std::string_view name) {
  if (table.gnu_hash == 0) return {};
  const auto header = process.value<GnuHashHeader>(table.gnu_hash);
  if (!header || header->buckets == 0) return {};
  // Skip the Bloom filter: it saves time only for names that are absent.
  const Address buckets = table.gnu_hash + sizeof(GnuHashHeader) + Address{8} * header->bloom_words;
  const Address hashes = buckets + Address{4} * header->buckets;
  const std::uint32_t wanted = gnu_hash(name);
  const auto first =
      process.value<std::uint32_t>(buckets + Address{4} * (wanted % header->buckets));
  if (!first || *first < header->first_symbol) return {};
  for (std::size_t step = 0; step < kLongestChain; ++step) {
    const Address index = *first + step;
    const auto hash = process.value<std::uint32_t>(hashes + 4 * (index - header->first_symbol));
    if (!hash) return {};
    // Bit 0 of a stored hash marks the end of its chain, so compare the other 31 bits.
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
                   const ElfImage& image, RuntimeAt& found) {
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
        // Py_Version is an unsigned long: an entry of another size has only the same name.
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
