// Stores on one loop, over real files, with short periods.
#include "rendezvous/file_store/file_store.h"

#include "base/error_testing.h"
#include "io/fd.h"
#include "io/loop_testing.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace lockstep::rendezvous::file_store {
namespace {
using namespace std::chrono_literals;

class FileStoreTest : public ::testing::Test {
 protected:
  FileStoreTest() {
    char name[] = "/tmp/file_store_test_XXXXXX";
    folder = mkdtemp(name);
    options.path = folder + "/store";
    options.poll = 1ms;
    options.torn_after = 30ms;
    options.timeout = 10'000ms;
  }
  ~FileStoreTest() override {
    store.reset();
    other.reset();
    std::filesystem::remove_all(folder);
  }
  std::unique_ptr<FileStore> open() { return FileStore::open(loop, options).value(); }
  template <class Fact>
  void until(Fact fact) {
    ASSERT_TRUE(io::run_until(loop, fact));
  }
  // Returns the answer of `call`.
  template <class T, class Call>
  Result<T> ask(Call call) {
    std::optional<Result<T>> answer;
    call([&](Result<T> result) { answer = std::move(result); });
    EXPECT_FALSE(answer) << "no callback inside the call";
    until([&] { return answer.has_value(); });
    return answer.value_or(fail(Errc::internal, "no answer"));
  }
  Status set(FileStore& in, const std::string& key, const std::string& value) {
    return ask<void>([&](auto done) { in.set(key, value, done); });
  }
  std::optional<std::string> get(FileStore& in, const std::string& key) {
    return ask<std::optional<std::string>>([&](auto done) { in.probe(key, done); }).value();
  }
  std::string compare_set(FileStore& in, const char* expected, const char* desired) {
    return ask<std::string>([&](auto done) { in.compare_set("k", expected, desired, done); })
        .value();
  }
  std::string bytes() const { return io::read_file(options.path).value(); }
  void append(std::string_view text) const {
    ASSERT_TRUE(io::write_file(options.path, bytes() + std::string(text)));
  }

  io::Loop loop;
  std::string folder;
  FileStoreOptions options;
  std::unique_ptr<FileStore> store;
  std::unique_ptr<FileStore> other;
};

TEST_F(FileStoreTest, TwoStoresSeeTheSame) {
  store = open();
  other = open();
  EXPECT_TRUE(set(*store, "a", "1"));
  EXPECT_EQ(get(*other, "a"), "1");
  EXPECT_EQ(get(*other, "b"), std::nullopt);
  EXPECT_EQ(ask<std::int64_t>([&](auto done) { other->add("n", 5, done); }).value(), 5);
  EXPECT_EQ(ask<std::int64_t>([&](auto done) { store->add("n", -7, done); }).value(), -2);
  EXPECT_EQ(get(*other, "n"), "-2");
  EXPECT_EQ(ask<std::string>([&](auto done) { store->put_if_absent("a", "2", done); }).value(),
            "1");
  EXPECT_EQ(ask<std::string>([&](auto done) { store->put_if_absent("c", "3", done); }).value(),
            "3");
  EXPECT_TRUE(ask<void>([&](auto done) { store->multi_set({{"d", "4"}, {"e", ""}}, done); }));
  const auto all = ask<KeyValue::Keys>([&](auto done) { other->multi_get({"e", "d"}, 1s, done); });
  EXPECT_EQ(all.value(), (KeyValue::Keys{"", "4"}));
}

TEST_F(FileStoreTest, CompareSetAsPyTorchHasIt) {
  store = open();
  EXPECT_EQ(compare_set(*store, "X", "A"),
            "X");  // missing key: returns the expected value, stores nothing
  EXPECT_EQ(get(*store, "k"), std::nullopt);
  EXPECT_EQ(compare_set(*store, "", "A"), "A");
  EXPECT_EQ(compare_set(*store, "", "B"), "A");
  EXPECT_EQ(compare_set(*store, "B", "C"), "A");
  EXPECT_EQ(compare_set(*store, "A", "D"), "D");
  EXPECT_EQ(get(*store, "k"), "D");
}

TEST_F(FileStoreTest, RequestsTakeEffectInOrder) {
  store = open();
  std::string order;
  store->set("a", "1", [&](const Status&) { order += 's'; });
  store->add("a", 1, [&](const Result<std::int64_t>& sum) { order += std::to_string(*sum); });
  store->probe("a", [&](const auto& value) { order += "p" + **value; });
  store->multi_get({"a"}, 1s, [&](const auto& values) { order += "g" + values->front(); });
  until([&] { return order.size() == 6; });
  EXPECT_EQ(order, "s2p2g2");
}

TEST_F(FileStoreTest, WaitsEndWithTheKeyOrInTime) {
  store = open();
  other = open();
  std::optional<Status> waited;
  store->wait({"a", "b"}, 10s, [&](Status done) { waited = std::move(done); });
  EXPECT_TRUE(set(*other, "a", "1"));
  EXPECT_FALSE(waited);
  EXPECT_TRUE(set(*other, "b", "1"));
  until([&] { return waited.has_value(); });
  EXPECT_TRUE(*waited);
  const auto never = ask<void>([&](auto done) { store->wait({"a", "never"}, 5ms, done); });
  ASSERT_FALSE(never);
  EXPECT_EQ(code_of(never), Errc::timeout);
  EXPECT_EQ(never.error().message, "wait timeout after 5ms, keys: a, never");
}

TEST_F(FileStoreTest, AWatchCallsOnceAndAnEndedOneNever) {
  store = open();
  other = open();
  std::string told;
  std::unique_ptr<KeyValue::Watch> kept;
  kept = store->watch("a", [&](const std::string& value) {
    told += "kept:" + value;
    kept.reset();
  });
  auto ended = store->watch("a", [&](const std::string&) { told += "ended"; });
  ended.reset();
  EXPECT_TRUE(set(*other, "a", "1"));
  until([&] { return !told.empty(); });
  EXPECT_TRUE(set(*other, "a", "2"));
  EXPECT_EQ(get(*store, "a"), "2");
  EXPECT_EQ(told, "kept:1");
}

TEST_F(FileStoreTest, AWatchMayEndAnotherWhoseTurnItIsToo) {
  store = open();
  std::string told;
  std::unique_ptr<KeyValue::Watch> second;
  const auto first = store->watch("a", [&](const std::string&) {
    told += "first";
    second.reset();
  });
  second = store->watch("a", [&](const std::string&) { told += "second"; });
  EXPECT_TRUE(set(*store, "a", "1"));
  until([&] { return !told.empty(); });
  EXPECT_TRUE(set(*store, "a", "2"));
  EXPECT_EQ(told, "first");
}

// A store that still looked at the file would notice that the file is gone.
TEST_F(FileStoreTest, NobodyLooksForAnEndedWatch) {
  store = open();
  bool looked = false;
  store->on_loss([&](const Error&) { looked = true; });
  store->watch("never", [](const std::string&) {}).reset();
  EXPECT_TRUE(set(*store, "a", "1"));  // the first look after the end of the watch
  unlink(options.path.c_str());
  bool passed = false;  // a timer that is due after the next look
  io::Timer timer(loop);
  timer.start(20 * options.poll, [&] { passed = true; });
  until([&] { return passed; });
  EXPECT_FALSE(looked);
}

TEST_F(FileStoreTest, ForgottenWaitsNeverCallBack) {
  store = open();
  int calls = 0;
  const auto count = [&](const Status&) { ++calls; };
  store->wait({"never"}, 1ms, count);
  store->forget_waits();
  store->wait({"a"}, 10s, [&](const Status&) {
    ++calls;
    store->forget_waits();
  });
  store->wait({"a"}, 10s, count);  // answered along with the other wait
  EXPECT_TRUE(set(*store, "a", "1"));
  until([&] { return calls > 0; });
  EXPECT_TRUE(ask<void>([&](auto done) { store->wait({"a"}, 10s, done); }));
  EXPECT_EQ(calls, 1);
}

TEST_F(FileStoreTest, MayBeDestroyedInItsCallback) {
  store = open();
  int calls = 0;
  store->set("a", "1", [&](const Status&) {
    ++calls;
    store.reset();
  });
  store->set("b", "1", [&](const Status&) { ++calls; });
  until([&] { return store == nullptr; });
  while (loop.run_once()) {
  }
  EXPECT_EQ(calls, 1);
}

TEST_F(FileStoreTest, AHeldLockDelaysUntilTheTimeout) {
  options.timeout = 60ms;
  store = open();
  const io::Fd holder(::open(options.path.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(flock(holder.get(), LOCK_EX), 0);
  const auto start = io::Clock::now();
  std::optional<Status> done;
  store->set("a", "1", [&](Status result) { done = std::move(result); });
  int turns = 0;
  for (; !done; ++turns)
    loop.run_once();
  EXPECT_GT(turns, 3) << "the loop should have gone on meanwhile";
  EXPECT_GE(io::Clock::now() - start, 60ms);
  ASSERT_FALSE(*done);
  EXPECT_EQ(done->error().code, Errc::timeout);
  EXPECT_NE(done->error().message.find("lock"), std::string::npos) << done->error().message;
  EXPECT_FALSE(ask<void>([&](auto answer) { store->set("b", "1", answer); }));
  ASSERT_EQ(flock(holder.get(), LOCK_UN), 0);
  EXPECT_TRUE(set(*store, "c", "1"));
  EXPECT_EQ(get(*store, "a"), std::nullopt);  // a request that timed out must not take effect later
}

TEST_F(FileStoreTest, AReaderDoesNotShutOutReaders) {
  store = open();
  EXPECT_TRUE(set(*store, "a", "1"));
  const io::Fd holder(::open(options.path.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(flock(holder.get(), LOCK_SH), 0);
  EXPECT_EQ(get(*store, "a"), "1");
}

TEST_F(FileStoreTest, HalfARecordOfADeadWriterIsCutOff) {
  store = open();
  EXPECT_TRUE(set(*store, "a", "1"));
  const std::string good = bytes();
  append({"\x02\0\0\0/b\x09\0\0\0half", 14});
  EXPECT_EQ(get(*store, "a"), "1");
  EXPECT_EQ(get(*store, "b"), std::nullopt);
  EXPECT_TRUE(set(*store, "c", "3"));
  EXPECT_EQ(bytes().substr(0, good.size()), good);
  EXPECT_EQ(bytes().find("half"), std::string::npos);
  other = open();
  EXPECT_EQ(get(*other, "c"), "3");
}

TEST_F(FileStoreTest, HalfARecordThatGrowsIsLeftAlone) {
  options.torn_after = 10'000ms;
  store = open();
  EXPECT_TRUE(set(*store, "a", "1"));
  append({"\x02\0\0\0/b\x03\0\0\0on", 12});
  std::optional<Status> done;
  store->set("c", "3", [&](Status result) { done = std::move(result); });
  for (int i = 0; i < 50; ++i)
    loop.run_once();
  EXPECT_FALSE(done);
  append("e");
  until([&] { return done.has_value(); });
  EXPECT_EQ(get(*store, "b"), "one");
  EXPECT_EQ(get(*store, "c"), "3");
}

TEST_F(FileStoreTest, AForeignFileIsAnErrorAndStaysAsItIs) {
  for (const std::string& text : {std::string("root:x:0:0\n"), std::string("\x05\0\0\0/a", 6)}) {
    ASSERT_TRUE(io::write_file(options.path, text));
    store = open();
    std::optional<Error> lost;
    store->on_loss([&](const Error& error) { lost = error; });
    const auto done = set(*store, "a", "1");
    ASSERT_FALSE(done);
    EXPECT_EQ(code_of(done), Errc::corrupt);
    EXPECT_NE(done.error().message.find(options.path), std::string::npos);
    EXPECT_EQ(bytes(), text);
    until([&] { return lost.has_value(); });
    EXPECT_FALSE(set(*store, "b", "1"));
  }
}

TEST_F(FileStoreTest, ALostFileEndsEverything) {
  const auto lose = [&](auto spoil, const char* why) {
    store = open();
    EXPECT_TRUE(set(*store, "a", "1"));
    std::optional<Status> waited;
    std::optional<Error> lost;
    store->on_loss([&](const Error& error) { lost = error; });
    store->wait({"b"}, 20s, [&](Status done) { waited = std::move(done); });
    spoil();
    until([&] { return waited && lost; });
    EXPECT_NE(lost->message.find(why), std::string::npos) << lost->message;
    EXPECT_EQ(waited->error().message, lost->message);
  };
  lose([&] { unlink(options.path.c_str()); }, "No such file");
  lose([&] { ASSERT_EQ(truncate(options.path.c_str(), 0), 0); }, "shortened");
  lose(
      [&] {
        ASSERT_TRUE(io::write_file(folder + "/new", bytes()));
        ASSERT_EQ(rename((folder + "/new").c_str(), options.path.c_str()), 0);
      },
      "another file");
}

TEST_F(FileStoreTest, BadPathsFailAtOnce) {
  options.path = folder;
  EXPECT_FALSE(FileStore::open(loop, options));
  options.path = folder + "/no/such";
  EXPECT_EQ(code_of(FileStore::open(loop, options)), Errc::not_found);
  options.path = folder + "/fifo";
  ASSERT_EQ(mkfifo(options.path.c_str(), 0600), 0);
  EXPECT_EQ(code_of(FileStore::open(loop, options)), Errc::invalid_input);
}

TEST_F(FileStoreTest, OnlyATemporaryFileIsRemoved) {
  store = open();
  EXPECT_TRUE(set(*store, "a", "1"));
  store.reset();
  EXPECT_EQ(access(options.path.c_str(), F_OK), 0);
  options.path.clear();
  store = open();
  const std::string path = store->path();
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
  EXPECT_TRUE(set(*store, "a", "1"));
  store.reset();
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST_F(FileStoreTest, NumbersThatAreNone) {
  store = open();
  EXPECT_TRUE(set(*store, "n", "five"));
  const auto sum = ask<std::int64_t>([&](auto done) { store->add("n", 1, done); });
  ASSERT_FALSE(sum);
  EXPECT_EQ(code_of(sum), Errc::corrupt);
  EXPECT_TRUE(set(*store, "n", "9223372036854775807"));
  EXPECT_FALSE(ask<std::int64_t>([&](auto done) { store->add("n", 1, done); }));
  EXPECT_EQ(get(*store, "n"), "9223372036854775807");
}

TEST_F(FileStoreTest, AFileLongerThanATurnIsReadWhole) {
  store = open();
  for (int i = 0; i < 5; ++i)
    EXPECT_TRUE(set(*store, "big", std::string(5U << 20, static_cast<char>('a' + i))));
  other = open();
  const auto values = ask<KeyValue::Keys>([&](auto done) { other->multi_get({"big"}, 10s, done); });
  EXPECT_EQ(values->front(), std::string(5U << 20, 'e'));
}

}  // namespace
}  // namespace lockstep::rendezvous::file_store
