// The shared state in a file, as seen by two agents.
#include "rendezvous/dynamic/file_state.h"

#include "base/error_testing.h"
#include "io/fd.h"
#include "rendezvous/dynamic/state_codec.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>

namespace lockstep::rendezvous::dynamic {
namespace {
using namespace std::chrono_literals;
using Stored = StateStore::Stored;

class FileStateTest : public ::testing::Test {
 protected:
  FileStateTest() {
    char name[] = "/tmp/file_state_test_XXXXXX";
    folder = mkdtemp(name);
    options.path = folder + "/store";
    options.poll = 1ms;
    options.timeout = 10'000ms;
  }
  ~FileStateTest() override { std::filesystem::remove_all(folder); }
  std::unique_ptr<file_store::FileStore> open() {
    return file_store::FileStore::open(loop, options).value();
  }
  // Returns the answer of `call`.
  template <class T, class Call>
  Result<T> ask(Call call) {
    std::optional<Result<T>> answer;
    call([&](Result<T> result) { answer = std::move(result); });
    EXPECT_FALSE(answer) << "no callback inside the call";
    const auto limit = io::Clock::now() + 20s;
    while (!answer && io::Clock::now() < limit)
      loop.run_once();
    return answer.value_or(fail(Errc::internal, "no answer"));
  }
  void append(std::string_view text) const {
    const std::string before = io::read_file(options.path).value();
    ASSERT_TRUE(io::write_file(options.path, before + std::string(text)));
  }

  io::Loop loop;
  std::string folder;
  file_store::FileStoreOptions options;
};

TEST_F(FileStateTest, TheSharedStateAndItsVersions) {
  const auto store = open();
  const auto other = open();
  FileState mine(*store, "job");
  FileState theirs(*other, "job");
  const Stored none = ask<Stored>([&](auto done) { mine.read(done); }).value();
  EXPECT_EQ(none.text, kNoState);
  const auto kept = ask<std::optional<std::string>>(
      [&](auto done) { store->probe("torch.rendezvous.job", done); });
  EXPECT_EQ(kept.value(), kNoState);
  const Stored same = ask<Stored>([&](auto done) { theirs.read(done); }).value();
  const Stored won = ask<Stored>([&](auto done) { mine.write(none, "one", done); }).value();
  EXPECT_TRUE(won.written);
  const Stored lost = ask<Stored>([&](auto done) { theirs.write(same, "two", done); }).value();
  EXPECT_FALSE(lost.written);
  EXPECT_EQ(lost.text, "one");
  EXPECT_TRUE(ask<Stored>([&](auto done) { theirs.write(lost, "two", done); })->written);
  // A key with the prefix "-" deletes the key.
  append({"\x16\0\0\0-/torch.rendezvous.job\0\0\0\0", 30});
  const auto gone = ask<Stored>([&](auto done) { mine.read(done); });
  ASSERT_FALSE(gone);
  EXPECT_EQ(code_of(gone), Errc::unavailable);
  EXPECT_FALSE(ask<Stored>([&](auto done) { mine.write(lost, "three", done); }));
}

}  // namespace
}  // namespace lockstep::rendezvous::dynamic
