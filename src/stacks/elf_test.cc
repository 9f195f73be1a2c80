#include "stacks/elf.h"

#include "stacks/image_memory.h"

#include <gtest/gtest.h>

#include <elf.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::stacks {
namespace {

constexpr Address kRuntimeValue = 0x3000;
constexpr Address kVersionValue = 0x3800;

std::uint32_t hash_of(std::string_view name) {
  std::uint32_t hash = 5381;
  for (const char c : name)
    hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

// A small ELF file. Its addresses begin at `base`: 0 for a library, else a program at a fixed
// address.
class Elf {
 public:
  explicit Elf(Address base, std::uint16_t machine = EM_X86_64) : base_(base) {
    std::memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_ident[EI_DATA] = ELFDATA2LSB;
    head.e_machine = machine;
    head.e_phoff = 0x40;
    head.e_phentsize = sizeof(Elf64_Phdr);
    head.e_phnum = 2;
    head.e_shoff = 0x1000;
    head.e_shentsize = sizeof(Elf64_Shdr);
    segments[0] = {.p_type = PT_LOAD,
                   .p_flags = PF_R,
                   .p_offset = 0,
                   .p_vaddr = base,
                   .p_paddr = base,
                   .p_filesz = 0x4000,
                   .p_memsz = 0x4000,
                   .p_align = 0x1000};
    segments[1] = {.p_type = PT_DYNAMIC,
                   .p_flags = PF_R,
                   .p_offset = 0x200,
                   .p_vaddr = base + 0x200,
                   .p_paddr = 0,
                   .p_filesz = 64,
                   .p_memsz = 64,
                   .p_align = 8};
  }

  // Symbols: none, a decoy in the same bucket, an import of the same name, _PyRuntime, Py_Version.
  void add_dynamic_symbols(Address loaded_bias) {
    names_ = std::string("\0decoy\0_PyRuntime\0Py_Version\0", 29);
    symbols_ = {symbol(0, 0, 0), symbol(1, 0x5, 1), symbol(7, 0, 0),
                symbol(7, base_ + kRuntimeValue, 24, 0x100),
                symbol(18, base_ + kVersionValue, 24, 8)};
    put(0x400, names_.data(), names_.size());
    put(0x500, symbols_.data(), symbols_.size() * sizeof(Elf64_Sym));
    struct {
      std::uint32_t head[4];
      std::uint64_t bloom[1];
      std::uint32_t buckets[1];
      std::uint32_t chain[4];
    } const hash = {{1, 1, 1, 6},
                    {~std::uint64_t{0}},
                    {1},
                    {hash_of("decoy") & ~1U, hash_of("_PyRuntime") & ~1U,
                     hash_of("_PyRuntime") & ~1U, hash_of("Py_Version") | 1U}};
    put(0x600, &hash, sizeof hash);
    const std::array<Elf64_Dyn, 4> dynamic{Elf64_Dyn{DT_STRTAB, {loaded_bias + base_ + 0x400}},
                                           Elf64_Dyn{DT_SYMTAB, {loaded_bias + base_ + 0x500}},
                                           Elf64_Dyn{DT_GNU_HASH, {loaded_bias + base_ + 0x600}},
                                           Elf64_Dyn{DT_NULL, {0}}};
    put(0x200, dynamic.data(), sizeof dynamic);
  }

  void add_sections(bool runtime_section, bool symbols) {
    const std::string section_names("\0.PyRuntime\0.shstrtab\0", 22);
    put(0x1400, section_names.data(), section_names.size());
    std::array<Elf64_Shdr, 5> sections{};
    sections[1].sh_type = runtime_section ? SHT_PROGBITS : SHT_NOBITS;
    sections[1].sh_name = 1;
    sections[1].sh_addr = base_ + kRuntimeValue;
    sections[2].sh_type = SHT_STRTAB;
    sections[2].sh_offset = 0x1400;
    sections[3].sh_type = symbols ? SHT_SYMTAB : SHT_NULL;
    sections[3].sh_offset = 0x500;
    sections[3].sh_size = symbols_.size() * sizeof(Elf64_Sym);
    sections[3].sh_link = 4;
    sections[4].sh_type = SHT_STRTAB;
    sections[4].sh_offset = 0x400;
    head.e_shnum = 5;
    head.e_shstrndx = 2;
    put(0x1000, sections.data(), sizeof sections);
  }

  // The file's bytes, from this address on.
  ImageMemory at(Address start) {
    put(0, &head, sizeof head);
    put(0x40, segments.data(), sizeof segments);
    ImageMemory memory;
    memory.put(start, std::as_bytes(std::span(bytes_)));
    return memory;
  }

  Elf64_Ehdr head{};
  std::array<Elf64_Phdr, 2> segments{};

 private:
  static Elf64_Sym symbol(std::uint32_t name, Address value, std::uint16_t section,
                          std::uint64_t size = 0) {
    return {.st_name = name,
            .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
            .st_other = 0,
            .st_shndx = section,
            .st_value = value,
            .st_size = size};
  }
  void put(std::size_t offset, const void* from, std::size_t size) {
    std::memcpy(bytes_.data() + offset, from, size);
  }

  Address base_;
  std::string names_;
  std::vector<Elf64_Sym> symbols_;
  std::vector<char> bytes_ = std::vector<char>(0x4000);
};

struct Place {
  Address base;   // in the file
  Address start;  // where it is mapped
};

class ElfAt : public testing::TestWithParam<Place> {};

TEST_P(ElfAt, SymbolsInMemory) {
  const auto [base, start] = GetParam();
  // glibc relocates the dynamic section, musl does not.
  for (const Address relocated : {start - base, Address{0}}) {
    Elf elf(base, EM_AARCH64);
    elf.add_dynamic_symbols(relocated);
    ImageMemory process = elf.at(start);
    const auto found = runtime_in_memory(process, start);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->runtime, start + kRuntimeValue);
    EXPECT_EQ(found->version, start + kVersionValue);
    EXPECT_EQ(found->size, 0x100U);
  }
}

TEST_P(ElfAt, SectionsAndSymbolsInTheFile) {
  const auto [base, start] = GetParam();
  for (const bool symbols : {true, false}) {
    Elf elf(base);
    elf.add_dynamic_symbols(0);
    elf.add_sections(!symbols, symbols);
    ImageMemory file = elf.at(0);
    const auto found = runtime_in_file(file, start);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->runtime, start + kRuntimeValue);
    EXPECT_EQ(found->version, symbols ? start + kVersionValue : 0);
  }
  Elf neither(base);
  neither.add_sections(false, false);
  ImageMemory file = neither.at(0);
  EXPECT_FALSE(runtime_in_file(file, start));
}

INSTANTIATE_TEST_SUITE_P(Places, ElfAt,
                         testing::Values(Place{0, 0x7f0000000000}, Place{0x400000, 0x400000}));

TEST(Elf, OtherMachinesAndClassesAreRefused) {
  const auto refused = [](auto change) {
    Elf elf(0);
    elf.add_dynamic_symbols(0);
    elf.add_sections(true, true);
    change(elf);
    ImageMemory file = elf.at(0);
    return !runtime_in_file(file, 0) && !runtime_in_memory(file, 0);
  };
  EXPECT_FALSE(refused([](Elf&) {}));
  EXPECT_TRUE(refused([](Elf& elf) { elf.head.e_machine = EM_PPC64; }));
  EXPECT_TRUE(refused([](Elf& elf) { elf.head.e_ident[EI_CLASS] = ELFCLASS32; }));
  EXPECT_TRUE(refused([](Elf& elf) { elf.head.e_ident[EI_DATA] = ELFDATA2MSB; }));
  EXPECT_TRUE(refused([](Elf& elf) { elf.head.e_ident[0] = 'x'; }));
  EXPECT_TRUE(refused([](Elf& elf) { elf.head.e_phnum = 65535; }));
  EXPECT_TRUE(refused([](Elf& elf) { elf.head.e_phoff = ~std::uint64_t{0} - 8; }));
  EXPECT_TRUE(refused([](Elf& elf) { elf.segments[0].p_offset = 0x1000; }));
}

TEST(Elf, AHashThatLeadsNowhere) {
  Elf elf(0);
  elf.add_dynamic_symbols(0);
  ImageMemory process = elf.at(0);
  const std::uint32_t none = 0;
  process.put_value(0x600, none);  // no buckets
  EXPECT_FALSE(runtime_in_memory(process, 0));
  // A chain without an end.
  process = elf.at(0);
  for (Address at = 0x61c; at < 0x3000; at += 4)
    process.put_value(at, std::uint32_t{2});
  EXPECT_FALSE(runtime_in_memory(process, 0));
}

}  // namespace
}  // namespace lockstep::stacks
