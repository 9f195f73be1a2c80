#include "db/database.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

namespace lockstep::db {
namespace {

constexpr std::array<std::string_view, 1> kTable = {"CREATE TABLE words (word TEXT) STRICT;"};

struct DatabaseFile : ::testing::Test {
  DatabaseFile() {
    std::string name = ::testing::TempDir() + "databaseXXXXXX";
    folder = mkdtemp(name.data());
  }
  ~DatabaseFile() override { std::filesystem::remove_all(folder); }
  std::string path() const { return folder + "/file.db"; }
  std::string folder;
};

// A second process, forked before this process uses SQLite. Does its part on request, and answers
// 'y' or 'n'.
class Other {
 public:
  explicit Other(const std::function<bool()>& part) {
    if (pipe(asks_.data()) != 0 || pipe(says_.data()) != 0) std::abort();
    pid_ = fork();
    if (pid_ != 0) return;
    char letter = 0;
    while (read(asks_[0], &letter, 1) == 1 && letter == 'g')
      (void)!write(says_[1], part() ? "y" : "n", 1);
    _exit(0);
  }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;
  ~Other() {
    (void)!write(asks_[1], "e", 1);
    waitpid(pid_, nullptr, 0);
    for (const int fd : {asks_[0], asks_[1], says_[0], says_[1]})
      close(fd);
  }
  bool ask() const {
    char letter = 0;
    return write(asks_[1], "g", 1) == 1 && read(says_[0], &letter, 1) == 1 && letter == 'y';
  }

 private:
  std::array<int, 2> asks_{};
  std::array<int, 2> says_{};
  pid_t pid_ = 0;
};

bool has_word(const std::string& path) {
  const auto database = Database::open(path, kTable);
  if (!database) return false;
  auto rows = database->prepare("SELECT word FROM words");
  return rows && rows->step().value_or(false);
}

// SQLite knows from a process's locks that the write-ahead log is in use. The last user removes the
// log, and later writes of another process to it would be lost.
TEST_F(DatabaseFile, WhatOneOfTwoInAProcessWritesOthersReadWhoCameAndWentMeanwhile) {
  const Other other([this] { return has_word(path()); });
  const auto first = Database::open(path(), kTable);
  ASSERT_TRUE(first);
  ASSERT_TRUE(first->execute("DELETE FROM words"));
  {
    const auto second = Database::open(path(), kTable);
    ASSERT_TRUE(second);
    EXPECT_FALSE(other.ask());
  }
  ASSERT_TRUE(first->execute("INSERT INTO words VALUES ('kept')"));
  EXPECT_TRUE(other.ask());
  EXPECT_TRUE(has_word(path()));
}

TEST_F(DatabaseFile, IsMadeForItsUserAlone) {
  const mode_t old = umask(0);
  EXPECT_TRUE(Database::open(path(), kTable));
  umask(old);
  struct stat info {};
  ASSERT_EQ(stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600);
}

TEST_F(DatabaseFile, WhatCannotBeOneIsNamed) {
  std::filesystem::create_directory(path());
  auto opened = Database::open(path(), kTable);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message, path() + ": Is a directory");
  opened = Database::open(folder + "/none/file.db", kTable);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message, folder + "/none/file.db: No such file or directory");
  std::filesystem::remove(path());
  std::ofstream(folder + "/elsewhere").close();
  std::filesystem::create_symlink(folder + "/elsewhere", path());
  opened = Database::open(path(), kTable);
  ASSERT_FALSE(opened);
  EXPECT_EQ(code_of(opened), Errc::denied);
}

}  // namespace
}  // namespace lockstep::db
