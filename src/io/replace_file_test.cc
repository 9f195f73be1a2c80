#include "io/replace_file.h"

#include "base/error_testing.h"
#include "io/fail_write.h"
#include "io/fd.h"

#include <gtest/gtest.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <filesystem>

namespace lockstep::io {
namespace {

class ReplaceFile : public testing::Test {
 protected:
  ReplaceFile() {
    std::string name = testing::TempDir() + "replace.XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~ReplaceFile() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(folder_), {});
  }

  std::string folder_;
};

TEST_F(ReplaceFile, MakesAndReplacesAndLeavesNoDraft) {
  ASSERT_TRUE(replace_file(path("f"), "old and longer"));
  ASSERT_TRUE(replace_file(path("f"), "new"));
  EXPECT_EQ(*read_file(path("f")), "new");
  EXPECT_EQ(files(), 1);
  EXPECT_TRUE(replace_file("/dev/null", "x"));
  EXPECT_EQ(code_of(replace_file(path("no/such"), "x")), Errc::not_found);
}

TEST_F(ReplaceFile, APlantedLinkIsNotWrittenThrough) {
  ASSERT_TRUE(write_file(path("victim"), "precious"));
  ASSERT_EQ(symlink("victim", path("f").c_str()), 0);
  ASSERT_EQ(symlink("nowhere", path("g").c_str()), 0);
  ASSERT_TRUE(replace_file(path("f"), "new"));
  ASSERT_TRUE(replace_file(path("g"), "new"));
  EXPECT_EQ(*read_file(path("victim")), "precious");
  EXPECT_EQ(*read_file(path("f")), "new");
  EXPECT_EQ(files(), 3);
}

TEST_F(ReplaceFile, AStreamIsWrittenToAndStays) {
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  const Fd reader(open(path("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_EQ(symlink("fifo", path("link").c_str()), 0);
  std::array<char, 8> bytes{};
  for (const char* name : {"fifo", "link"}) {
    EXPECT_TRUE(replace_file(path(name), "new"));
    EXPECT_EQ(read(reader.get(), bytes.data(), bytes.size()), 3) << name;
  }
  EXPECT_EQ(files(), 2);
  // Only root can make a device. This one is the null device, under a name of its own.
  if (mknod(path("device").c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) return;
  EXPECT_TRUE(replace_file(path("device"), "x"));
  EXPECT_TRUE(std::filesystem::is_character_file(path("device")));
}

TEST_F(ReplaceFile, ALinkToAnOpenFileIsWrittenToBehindWhatTheFileHas) {
  ASSERT_TRUE(write_file(path("f"), "output\n"));
  const Fd fd(open(path("f").c_str(), O_WRONLY | O_CLOEXEC));
  for (const char* folder : {"/proc/self/fd/", "/dev/fd/"})
    EXPECT_TRUE(replace_file(folder + std::to_string(fd.get()), "report\n")) << folder;
  EXPECT_EQ(*read_file(path("f")), "output\nreport\nreport\n");
  EXPECT_EQ(files(), 1);
  // The folder counts, whatever it is called: here another user may have planted the link.
  const Fd folder(open(folder_.c_str(), O_PATH | O_CLOEXEC));
  ASSERT_EQ(symlink("f", path("planted").c_str()), 0);
  EXPECT_TRUE(replace_file("/proc/self/fd/" + std::to_string(folder.get()) + "/planted", "new"));
  EXPECT_EQ(*read_file(path("f")), "output\nreport\nreport\n");
  EXPECT_EQ(*read_file(path("planted")), "new");
}

TEST_F(ReplaceFile, AFileWhoseNameLeavesNoRoomForADraftIsWrittenInPlace) {
  const std::string longest = path(std::string(255, 'f'));
  ASSERT_TRUE(write_file(longest, "old and longer"));
  ASSERT_TRUE(replace_file(longest, "new"));
  EXPECT_EQ(*read_file(longest), "new");
}

// A limit on file size stands in for a full disk: it needs no mount.
class FullDisk : public ReplaceFile {
 protected:
  FullDisk() {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
  }
  ~FullDisk() override { setrlimit(RLIMIT_FSIZE, &before_); }
  void allow(rlim_t bytes) const {
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }

  rlimit before_{};
};

TEST_F(FullDisk, TheOldFileStaysAsItWas) {
  const std::string longest = path(std::string(255, 'f'));
  for (const std::string& each : {path("f"), longest}) {
    ASSERT_TRUE(write_file(each, "old"));
    allow(2);
    EXPECT_FALSE(replace_file(each, "newer"));
    EXPECT_FALSE(keep_record(each, "newer"));
    allow(before_.rlim_cur);
    EXPECT_EQ(*read_file(each), "old");
  }
  EXPECT_EQ(files(), 2) << "no draft is left";
}

TEST_F(ReplaceFile, ARecordIsNeverWrittenInPlace) {
  const std::string longest = path(std::string(255, 'f'));
  ASSERT_TRUE(write_file(longest, "old"));
  EXPECT_FALSE(keep_record(longest, "new"));
  EXPECT_EQ(*read_file(longest), "old");
}

TEST_F(ReplaceFile, AFullDiskIsNamedWithItsHost) {
  const Error error = fail_write("/d/f", ENOSPC).value();
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  EXPECT_EQ(error.message, std::string("no space left on ") + host + ":/d/f");
  EXPECT_EQ(error.code, Errc::exhausted);
  EXPECT_EQ(fail_write("/d/f", EIO).value().message, "write /d/f: Input/output error");
}

}  // namespace
}  // namespace lockstep::io
