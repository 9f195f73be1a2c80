#include "stacks/native_place.h"

#include "stacks/bounded_memory.h"
#include "stacks/image_memory.h"
#include "stacks/local_memory.h"
#include "stacks/native_symbols.h"

#include <gtest/gtest.h>

#include <elf.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

namespace lockstep::stacks {
namespace {

constexpr Address kStart = 0x7f0000000000;
constexpr Address kStack = 0x7ffd00000000;

enum class Hash { gnu, sysv };

// A library with functions "wait" (also "__wait") at 0x2000, "init" at 0x3000 and data at 0x3500.
class Library {
 public:
  explicit Library(Hash hash) {
    Elf64_Ehdr head{};
    std::memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_ident[EI_DATA] = ELFDATA2LSB;
    head.e_machine = EM_X86_64;
    head.e_phoff = 0x40;
    head.e_phentsize = sizeof(Elf64_Phdr);
    head.e_phnum = 2;
    put(0, head);
    std::array<Elf64_Phdr, 2> segments{};
    segments[0].p_type = PT_LOAD;
    segments[0].p_memsz = 0x4000;
    segments[1].p_type = PT_DYNAMIC;
    segments[1].p_vaddr = 0x200;
    segments[1].p_memsz = 64;
    put(0x40, segments);
    const std::string names("\0__wait\0wait\0init\0data\0imported\0", 32);
    std::copy(names.begin(), names.end(), bytes_.begin() + 0x400);
    put(0x500, std::array<Elf64_Sym, 6>{
                   symbol(0, 0, 0, STT_NOTYPE), symbol(23, 0, 0, STT_FUNC),
                   symbol(1, 0x2000, 0x80, STT_FUNC), symbol(8, 0x2000, 0x80, STT_FUNC),
                   symbol(18, 0x3500, 0x100, STT_OBJECT), symbol(13, 0x3000, 0x10, STT_FUNC)});
    // Two buckets of a GNU hash, from symbol 2 on: 4 words, a bloom word, buckets, hashes.
    if (hash == Hash::gnu)
      put(0x600, std::array<std::uint32_t, 12>{2, 2, 1, 6, ~0U, ~0U, 4, 2, 2, 3, 2, 3});
    else
      put(0x600, std::array<std::uint32_t, 3>{1, 6, 0});
    put(0x200, std::array<Elf64_Dyn, 4>{
                   Elf64_Dyn{DT_STRTAB, {kStart + 0x400}}, Elf64_Dyn{DT_SYMTAB, {kStart + 0x500}},
                   Elf64_Dyn{hash == Hash::gnu ? DT_GNU_HASH : DT_HASH, {0x600}},
                   Elf64_Dyn{DT_NULL, {0}}});
  }

  template <class T>
  void put(std::size_t at, const T& made) {
    std::memcpy(bytes_.data() + at, &made, sizeof made);
  }
  ImageMemory memory() const {
    ImageMemory memory;
    memory.put(kStart, std::as_bytes(std::span(bytes_)));
    return memory;
  }

 private:
  static Elf64_Sym symbol(std::uint32_t name, Address value, std::uint64_t size,
                          unsigned char type) {
    return {.st_name = name,
            .st_info = static_cast<unsigned char>(ELF64_ST_INFO(STB_GLOBAL, type)),
            .st_other = 0,
            .st_shndx = static_cast<std::uint16_t>(value == 0 ? SHN_UNDEF : 1),
            .st_value = value,
            .st_size = size};
  }
  std::array<char, 0x4000> bytes_{};
};

std::vector<Mapping> mappings(const io::Devices& local = {"fe:00"}) {
  return parse_mappings(
      "7f0000000000-7f0000002000 r--p 00000000 fe:00 77 /opt/libx.so.1\n"
      "7f0000002000-7f0000004000 r-xp 00002000 fe:00 77 /opt/libx.so.1\n"
      "7f0000004000-7f0000005000 rwxp 00000000 00:00 0 \n"
      "7ffd00000000-7ffd00001000 rw-p 00000000 00:00 0 [stack]\n",
      local);
}

class Symbols : public ::testing::TestWithParam<Hash> {};
INSTANTIATE_TEST_SUITE_P(BothHashes, Symbols, ::testing::Values(Hash::gnu, Hash::sysv));

TEST_P(Symbols, AreTheNearestFunctions) {
  ImageMemory memory = Library(GetParam()).memory();
  const std::vector<Address> addresses = {kStart + 0x3004, kStart + 0x1fff, kStart + 0x2000,
                                          kStart + 0x207f, kStart + 0x2080, kStart + 0x3600};
  const auto all = symbols_at(memory, kStart, addresses);
  ASSERT_TRUE(all);
  const auto& found = *all;
  ASSERT_EQ(found.size(), addresses.size());
  EXPECT_EQ(found[0]->name, "init");
  EXPECT_TRUE(found[0]->inside);
  EXPECT_FALSE(found[1]);
  EXPECT_EQ(found[2]->name, "wait");  // rather than "__wait"
  EXPECT_TRUE(found[2]->inside);
  EXPECT_TRUE(found[3]->inside);
  EXPECT_EQ(found[4]->name, "wait");
  EXPECT_FALSE(found[4]->inside);
  EXPECT_EQ(found[5]->name, "init");  // data is no function
  EXPECT_FALSE(found[5]->inside);
}

TEST(SymbolsOfABrokenImage, AreNone) {
  const std::vector<Address> addresses = {kStart + 0x2001};
  for (std::size_t at = 0; at < 0x640; at += 4) {
    Library library(Hash::gnu);
    library.put(at, ~0U);
    ImageMemory memory = library.memory();
    const auto found = symbols_at(memory, kStart, addresses);
    EXPECT_TRUE(!found || found->size() == 1U);
  }
  ImageMemory nothing;
  EXPECT_FALSE(symbols_at(nothing, kStart, addresses));
}

TEST(PlaceNames, SayLibraryOffsetAndFunction) {
  ImageMemory memory = Library(Hash::gnu).memory();
  const NativePlace inside{kStart + 0x2010, kStart + 0x2010};
  const NativePlace behind = after_call(kStart + 0x2080);  // a call is the last instruction
  const NativePlace near = after_call(kStart + 0x2081);
  const NativePlace before{kStart + 0x2000, kStart + 0x1000};
  const NativePlace made{kStart + 0x4000, kStart + 0x4000};
  PlaceNames names;
  names.find(memory, mappings(), std::vector{inside, behind, near, before, made});
  EXPECT_EQ(names.text(mappings(), inside), "libx.so.1+0x2010 (wait)");
  EXPECT_EQ(names.text(mappings(), behind), "libx.so.1+0x2080 (wait)");
  EXPECT_EQ(names.text(mappings(), near), "libx.so.1+0x2081 (near wait)");
  EXPECT_EQ(names.text(mappings(), before), "");
  EXPECT_EQ(names.text(mappings(), made), "");
  // Without symbols, library and offset are left.
  EXPECT_EQ(PlaceNames().text(mappings(), inside), "libx.so.1+0x2010");
}

TEST(PlaceNames, OfASearchThatWasCutAreNeitherSaidNorKept) {
  ImageMemory memory = Library(Hash::gnu).memory();
  const NativePlace place{kStart + 0x3004, kStart + 0x3004};
  PlaceNames names;
  std::size_t pieces = 0;
  for (; names.text(mappings(), place) == "libx.so.1+0x3004"; ++pieces) {
    ASSERT_LT(pieces, 100U);
    BoundedMemory bounded(memory, {.pieces = pieces, .time = std::chrono::seconds(60)});
    names.find(bounded, mappings(), std::vector{place});
  }
  EXPECT_GT(pieces, 5U);
  EXPECT_EQ(names.text(mappings(), place), "libx.so.1+0x3004 (init)");
}

TEST(PlaceNames, OfATableThatIsTooLargeAreNotSaid) {
  Library library(Hash::sysv);
  library.put(0x604, std::uint32_t{400'000});
  ImageMemory memory = library.memory();
  EXPECT_FALSE(symbols_at(memory, kStart, std::vector<Address>{kStart + 0x3004}));
}

// Counts the bytes that are read from the library.
class Watched final : public Memory {
 public:
  explicit Watched(Memory& memory) : memory_(memory) {}
  std::size_t read_pieces(std::span<const Piece> pieces) override {
    for (const Piece& piece : pieces)
      if (piece.at >= kStart && piece.at < kStart + 0x4000) ++reads;
    return memory_.read_pieces(pieces);
  }
  std::size_t reads = 0;

 private:
  Memory& memory_;
};

TEST(FilesOnAServer, AreNotRead) {
  Library library(Hash::gnu);
  library.put(0x2100, std::array<unsigned char, 5>{0xe8, 1, 2, 3, 4});
  ImageMemory memory = library.memory();
  std::array<Address, 512> stack{};
  stack[1] = kStart + 0x2105;
  memory.put(kStack, std::as_bytes(std::span(stack)));
  const NativePlace place{kStart + 0x3004, kStart + 0x3004};
  for (const bool far : {false, true}) {
    const auto mapped = far ? mappings({"fe:01"}) : mappings();
    Watched watched(memory);
    LocalMemory local(watched, mapped);
    PlaceNames names;
    names.find(local, mapped, std::vector{place});
    EXPECT_EQ(names.text(mapped, place), far ? "libx.so.1+0x3004" : "libx.so.1+0x3004 (init)");
    EXPECT_EQ(return_addresses(local, mapped, kStack, 16).size(), far ? 0U : 1U);
    EXPECT_EQ(watched.reads == 0, far);
  }
}

TEST(LocalMemory, RefusesPiecesThatReachIntoAFileOnAServer) {
  const auto mapped = parse_mappings(
      "1000-2000 r--p 0 00:00 0 \n2000-3000 r--p 0 00:2b 7 /a\n4000-5000 r--p 0 00:00 0 \n", {});
  ImageMemory memory;
  std::array<std::byte, 0x5000> bytes{};
  memory.put(0, bytes);
  LocalMemory local(memory, mapped);
  const auto reads = [&](Address at, std::size_t size) {
    return local.read(at, std::span(bytes).first(size));
  };
  EXPECT_TRUE(reads(0x1000, 0x1000));
  EXPECT_FALSE(reads(0x1fff, 2));
  EXPECT_FALSE(reads(0x2800, 1));
  EXPECT_FALSE(reads(0x3fff, 2));  // nothing was mapped there
  EXPECT_TRUE(reads(0x4fff, 1));
  EXPECT_FALSE(reads(~Address{0}, 2));
  EXPECT_FALSE(local.read(0x4fff, std::span(bytes).first(2)));
}

TEST(ReturnAddresses, FollowCalls) {
  Library library(Hash::gnu);
  library.put(0x2100, std::array<unsigned char, 5>{0xe8, 1, 2, 3, 4});
  library.put(0x2200, std::array<unsigned char, 2>{0xff, 0xd0});
  ImageMemory memory = library.memory();
  std::array<Address, 512> stack{};
  stack[1] = kStart + 0x2105;  // behind a call
  stack[2] = kStart + 0x2104;  // inside of it
  stack[3] = kStart + 0x2105;  // the same twice
  stack[4] = kStart + 0x0105;  // no code
  stack[5] = kStart + 0x4105;  // code without a file
  stack[6] = kStart + 0x2003;  // too near to the beginning
  stack[511] = kStart + 0x2202;
  memory.put(kStack, std::as_bytes(std::span(stack)));
  EXPECT_EQ(return_addresses(memory, mappings(), kStack, 16),
            (std::vector<Address>{kStart + 0x2105, kStart + 0x2202}));
  EXPECT_EQ(return_addresses(memory, mappings(), kStack, 1).size(), 1U);
  EXPECT_EQ(return_addresses(memory, mappings(), kStack + 16, 16),
            (std::vector<Address>{kStart + 0x2105, kStart + 0x2202}));
  EXPECT_TRUE(return_addresses(memory, mappings(), kStack + 1, 16).empty());
  EXPECT_TRUE(return_addresses(memory, mappings(), 0, 16).empty());
}

}  // namespace
}  // namespace lockstep::stacks
