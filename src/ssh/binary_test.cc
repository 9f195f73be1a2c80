#include "ssh/binary.h"

#include <gtest/gtest.h>

#include <elf.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace lockstep::ssh {
namespace {

// Returns an ELF file with one note segment.
std::string elf_with(const std::string& note_name, std::uint32_t type, const std::string& content) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  Elf64_Nhdr note{static_cast<std::uint32_t>(note_name.size()),
                  static_cast<std::uint32_t>(content.size()), type};
  Elf64_Phdr segment{};
  segment.p_type = PT_NOTE;
  segment.p_offset = sizeof header + sizeof segment;
  segment.p_filesz = sizeof note + note_name.size() + content.size();
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes.append(reinterpret_cast<const char*>(&segment), sizeof segment);
  bytes.append(reinterpret_cast<const char*>(&note), sizeof note);
  return bytes + note_name + content;
}

const std::string kGnu("GNU\0", 4);

TEST(BuildId, IsReadFromTheNotes) {
  EXPECT_EQ(build_id(elf_with(kGnu, NT_GNU_BUILD_ID, "\x01\x23\x45\x67\x89\xab\xcd\xef____")),
            "0123456789abcdef");
  EXPECT_FALSE(build_id(elf_with(kGnu, NT_GNU_ABI_TAG, "12345678")));
  EXPECT_FALSE(build_id(elf_with(std::string("ABC\0", 4), NT_GNU_BUILD_ID, "12345678")));
}

TEST(BuildId, BrokenFilesHaveNone) {
  EXPECT_FALSE(build_id(""));
  EXPECT_FALSE(build_id("#!/bin/sh\n"));
  const std::string whole = elf_with(kGnu, NT_GNU_BUILD_ID, "12345678");
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(build_id(std::string_view(whole).substr(0, size))) << size;
  std::string far = whole;
  far.replace(offsetof(Elf64_Ehdr, e_phoff), 8, 8, '\xff');
  EXPECT_FALSE(build_id(far));
}

TEST(OwnBinary, HasANameByItsContent) {
  const auto own = own_binary();
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(own->name.version, LOCKSTEP_VERSION);
  EXPECT_EQ(own->name.id.size(), 16U);
}

TEST(BinaryFor, AnotherProcessorNeedsAnotherFile) {
  setenv("XDG_DATA_HOME", "/nowhere", 1);
  const auto other = binary_for("riscv64");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("its processor is riscv64"), std::string::npos);
}

// The host names its machine. The name must never become a path on the client.
TEST(BinaryFor, AHostCannotNameAFileOfTheUser) {
  const std::string data = ::testing::TempDir() + "data_of_a_user";
  std::filesystem::create_directories(data + "/lockstep/lockstep-x");
  std::ofstream(data + "/lockstep/id_ed25519") << "secret";
  std::ofstream(data + "/lockstep/lockstep-riscv64") << "a binary";
  setenv("XDG_DATA_HOME", data.c_str(), 1);
  for (const char* machine : {"x/../id_ed25519", "x/../../lockstep/id_ed25519", "", "X86_64"})
    EXPECT_FALSE(binary_for(machine)) << machine;
  EXPECT_TRUE(binary_for("riscv64"));
  EXPECT_EQ(binary_for("\x1b[2J").error().message,
            "its processor is '\\x1b[2J', and Lockstep has no binary for it");
}

}  // namespace
}  // namespace lockstep::ssh
