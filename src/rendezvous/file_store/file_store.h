// A key-value store in a file, the one of PyTorch's FileStore, shared with its processes and other
// Locksteps, over a network file system too if that carries flock(2). The loop never waits for the
// lock: whoever holds it for long only delays us, up to the timeout.
#pragma once

#include "base/callback_scope.h"
#include "base/error.h"
#include "io/loop.h"
#include "rendezvous/file_store/file_store_codec.h"
#include "rendezvous/file_store/file_visit.h"
#include "rendezvous/key_value.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::rendezvous::file_store {

struct FileStoreOptions {
  std::string path;                           // empty: a new temporary one, removed at the end
  std::chrono::milliseconds timeout{60'000};  // of what does not wait for a key: to get the lock
  std::chrono::milliseconds poll{10};         // while something waits
  // A record that is not whole and grows no more for so long is what a dead writer left.
  std::chrono::milliseconds torn_after{1000};
  FileStoreLimits limits = {};
};

class FileStore final : public KeyValue {
 public:
  using Options = FileStoreOptions;

  // Makes the file where it is missing. It is never removed, unless it is a temporary one: others
  // may use it still. `refcount/` and `cleanup/`, by which PyTorch removes it, stay untouched.
  static Result<std::unique_ptr<FileStore>> open(io::Loop& loop, Options options);
  ~FileStore() override;
  FileStore(const FileStore&) = delete;
  FileStore& operator=(const FileStore&) = delete;

  const std::string& path() const { return options_.path; }
  // The file is gone, replaced or damaged; comes after the callbacks of all requests, which fail
  // with the same error.
  void on_loss(std::function<void(const Error&)> fn) { on_loss_ = std::move(fn); }

  void set(std::string_view key, std::string_view value, Done<void> done) override;
  void multi_set(const Entries& entries, Done<void> done) override;
  void add(std::string_view key, std::int64_t delta, Done<std::int64_t> done) override;
  void put_if_absent(std::string_view key, std::string_view value, Done<std::string> done) override;
  void probe(std::string_view key, Done<std::optional<std::string>> done) override;
  void multi_get(const Keys& keys, Ms timeout, Done<Keys> done) override;
  void wait(const Keys& keys, Ms timeout, Done<void> done) override;
  void forget_waits() override;
  std::unique_ptr<Watch> watch(std::string_view key,
                               std::function<void(std::string)> done) override;
  // The value now stored, or `expected` where the key is missing and that is not empty.
  void compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                   Done<std::string> done);

 private:
  using Answer = std::function<void()>;
  // Carried out under the lock, when all that the file says is known; answered without it.
  struct Request {
    bool writes = false;
    io::TimePoint deadline;
    std::function<Answer(FileVisit&)> act;
    std::function<void(const Error&)> fail;
  };
  struct Waiting {
    Keys keys;
    Ms timeout{};
    io::TimePoint deadline;
    Done<Keys> done;
  };
  struct Watched {
    std::string key;
    CallbackScope::Witness owner;
    std::function<void(std::string)> done;
  };

  FileStore(io::Loop& loop, Options options, bool temporary, FileVisit::Identity identity);

  template <class T>
  void ask(bool writes, Done<T> done, std::function<Result<T>(FileVisit&)> act);
  Status append(FileVisit& file, const Entries& entries);
  const std::string* find(std::string_view key) const { return reader_.find(key); }

  void soon();
  void visit();
  void expire(std::vector<Answer>& answers);
  enum class Look { done, again_soon, locked, later };
  Result<Look> look(std::vector<Answer>& answers);
  Result<Look> work(FileVisit& file, std::vector<Answer>& answers);
  Result<bool> lock(FileVisit& file, bool exclusive) const;
  Result<bool> catch_up(const FileVisit& file);
  Result<bool> whole(FileVisit& file);
  void meet(std::vector<Answer>& answers);
  Answer answer_of(Waiting& waiting, Result<Keys> result) const;
  void schedule(Look outcome);
  void deliver(const std::vector<Answer>& answers);
  void lose(Error error);
  Error trouble() const;

  Options options_;
  bool temporary_;
  FileVisit::Identity identity_;
  FileStoreReader reader_;
  std::deque<Request> requests_;
  std::list<Waiting> waiting_;
  std::vector<Watched> watched_;
  io::Timer timer_;
  int refusals_ = 0;  // of the lock, one after the other
  std::optional<Error> last_error_;
  std::uint64_t torn_size_ = 0;  // of the file when a record at its end was not whole; 0: it was
  io::TimePoint torn_since_;
  std::optional<Error> lost_;
  std::function<void(const Error&)> on_loss_;
  CallbackScope calls_;
  CallbackScope wait_calls_;  // dropped when all waits are taken back
};

}  // namespace lockstep::rendezvous::file_store
