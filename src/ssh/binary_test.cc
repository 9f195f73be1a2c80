#include "ssh/binary.h"

#include "codec/sha256.h"
#include "ssh/other_binary.h"

#include <gtest/gtest.h>

#include <elf.h>
#include <sys/utsname.h>
#include <zlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace lockstep::ssh {
namespace {

// Returns an ELF file for riscv64 with one note segment.
std::string elf_with(const std::string& note_name, std::uint32_t type, const std::string& content) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_machine = EM_RISCV;
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

std::string riscv_program() {
  return elf_with(kGnu, NT_GNU_BUILD_ID, "12345678") + std::string(100'000, 'x');
}

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
  std::ofstream(data + "/lockstep/lockstep-riscv64") << riscv_program();
  setenv("XDG_DATA_HOME", data.c_str(), 1);
  for (const char* machine : {"x/../id_ed25519", "x/../../lockstep/id_ed25519", "", "X86_64"})
    EXPECT_FALSE(binary_for(machine)) << machine;
  EXPECT_TRUE(binary_for("riscv64"));
  EXPECT_EQ(binary_for("\x1b[2J").error().message,
            "its processor is '\\x1b[2J', and Lockstep has no binary for it");
}

void write_packed(const std::string& path, const std::string& bytes) {
  const gzFile file = gzopen(path.c_str(), "wb9");
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())),
            static_cast<int>(bytes.size()));
  EXPECT_EQ(gzclose(file), Z_OK);
}

// A data folder of a user, with the packed binary for hosts with riscv64.
class PackedBinary : public ::testing::Test {
 protected:
  PackedBinary() {
    std::filesystem::create_directories(folder_);
    write_packed(path_, riscv_program());
    setenv("XDG_DATA_HOME", data_.c_str(), 1);
    setenv("XDG_CACHE_HOME", data_.c_str(), 1);
  }
  ~PackedBinary() override { std::filesystem::remove_all(data_); }

  // Returns the error of the push, or "".
  static std::string trouble() {
    const auto binary = binary_for("riscv64");
    if (!binary) return binary.error().message;
    const auto what = pushable(*binary);
    return what ? "" : what.error().message;
  }

  std::string data_ = ::testing::TempDir() + "packed_binary." + std::to_string(getpid());
  std::string folder_ = data_ + "/lockstep";
  std::string path_ = folder_ + "/lockstep-riscv64.gz";
};

TEST_F(PackedBinary, IsSentAsItIs) {
  const auto binary = binary_for("riscv64");
  ASSERT_TRUE(binary) << binary.error().message;
  EXPECT_EQ(binary->path, path_);
  EXPECT_EQ(binary->name.id, codec::hex("12345678"));
  const auto what = pushable(*binary);
  ASSERT_TRUE(what) << what.error().message;
  EXPECT_EQ(what->path, path_);
  EXPECT_TRUE(what->compressed);
  EXPECT_EQ(what->size, std::filesystem::file_size(path_));
  EXPECT_EQ(what->sha256, codec::hex(codec::sha256(riscv_program())));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/push"));
}

TEST_F(PackedBinary, WithoutABuildIdIsNamedByItsDigest) {
  const std::string plain = elf_with(kGnu, NT_GNU_ABI_TAG, "12345678");
  write_packed(path_, plain);
  const auto binary = binary_for("riscv64");
  ASSERT_TRUE(binary) << binary.error().message;
  EXPECT_EQ(binary->name.id, codec::hex(codec::sha256(plain)).substr(0, 16));
}

TEST_F(PackedBinary, ADamagedFileIsNamed) {
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 9);
  EXPECT_EQ(trouble(), path_ + " is damaged");
  std::filesystem::resize_file(path_, 0);
  EXPECT_EQ(trouble(), path_ + " is not a program for riscv64");
  std::ofstream(path_) << "not gzip";
  EXPECT_EQ(trouble(), path_ + " is not a program for riscv64");
  std::string arm = riscv_program();
  arm[offsetof(Elf64_Ehdr, e_machine)] = static_cast<char>(EM_AARCH64);
  write_packed(path_, arm);
  EXPECT_EQ(trouble(), path_ + " is not a program for riscv64");
}

TEST_F(PackedBinary, IsBounded) {
  write_packed(path_, riscv_program() + std::string(65U << 20, '\0'));
  EXPECT_EQ(trouble(), path_ + " is damaged");
}

TEST_F(PackedBinary, ItsMachineIsServed) {
  utsname here{};
  uname(&here);
  EXPECT_EQ(served_machines(), (std::vector<std::string>{here.machine, "riscv64"}));
  std::filesystem::remove(path_);
  EXPECT_EQ(served_machines(), std::vector<std::string>{here.machine});
}

}  // namespace
}  // namespace lockstep::ssh
