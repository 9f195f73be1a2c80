// A key-value store in a file of PyTorch's FileStore, shared with PyTorch and other Lockstep
// processes. Works over network file systems that support flock(2). The loop never waits for the
// lock: a process that holds the lock for long only delays requests, up to the timeout.
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
  std::string path;  // empty: a new temporary file, removed at the end
  std::chrono::milliseconds timeout{
      60'000};  // for requests that do not wait for a key: time to get the lock
  std::chrono::milliseconds poll{10};  // interval of looks while a request or wait is pending
  // After this time without growth an incomplete record counts as the rest of a dead writer.
  std::chrono::milliseconds torn_after{1000};
  FileStoreLimits limits = {};
};

class FileStore final : public KeyValue {
 public:
  using Options = FileStoreOptions;

  // Creates the file if it is missing. Never removes the file, unless it is a temporary one: other
  // processes may still use it. Leaves `refcount/` and `cleanup/` alone, by which PyTorch decides
  // about removal.
  static Result<std::unique_ptr<FileStore>> open(io::Loop& loop, Options options);
  ~FileStore() override;
  FileStore(const FileStore&) = delete;
  FileStore& operator=(const FileStore&) = delete;

  const std::string& path() const { return options_.path; }
  // Sets the function for a file that is gone, replaced or damaged. Called after the callbacks of
  // all requests, which fail with the same error.
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
  // Returns the value now stored, or `expected` if the key is missing and `expected` is not empty.
  void compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                   Done<std::string> done);

 private:
  using Answer = std::function<void()>;
  // Carried out under the lock, after reading all of the file; answered without the lock.
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
  int refusals_ = 0;  // consecutive refusals of the lock
  std::optional<Error> last_error_;
  std::uint64_t torn_size_ =
      0;  // file size when an incomplete record was found at the end; 0: none
  io::TimePoint torn_since_;
  std::optional<Error> lost_;
  std::function<void(const Error&)> on_loss_;
  CallbackScope calls_;
  CallbackScope wait_calls_;  // dropped by forget_waits()
};

}  // namespace lockstep::rendezvous::file_store
