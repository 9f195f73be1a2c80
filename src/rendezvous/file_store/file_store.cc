// The requests of the store; file_store_visit.cc has the visits to the file.
#include "rendezvous/file_store/file_store.h"

#include "base/text.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::file_store {
namespace {

struct KeyWatch : KeyValue::Watch {
  CallbackScope scope;
};

Result<std::string> make_temporary() {
  // mkstemp() as in PyTorch, which makes such a file if the endpoint is empty.
  const char* const folder = getenv("TMPDIR");
  std::string path = folder != nullptr && *folder != '\0' ? folder : "/tmp";
  path += "/lockstep-rdzv-XXXXXX";
  const io::Fd fd(mkostemp(path.data(), O_CLOEXEC));
  if (!fd) return fail_sys("make a temporary file as " + path, errno);
  return path;
}

}  // namespace

Result<std::unique_ptr<FileStore>> FileStore::open(io::Loop& loop, Options options) {
  const bool temporary = options.path.empty();
  if (temporary) {
    LOCKSTEP_TRY_ASSIGN(options.path, make_temporary());
  }
  const auto file = FileVisit::open(options.path, FileVisit::Create::yes);
  if (!file)
    return tl::make_unexpected(
        Error(file.error()).within(fmt::format("the rendezvous file '{}'", options.path)));
  return std::unique_ptr<FileStore>(
      new FileStore(loop, std::move(options), temporary, file->identity()));
}

FileStore::FileStore(io::Loop& loop, Options options, bool temporary, FileVisit::Identity identity)
    : options_(std::move(options)),
      temporary_(temporary),
      identity_(identity),
      reader_(options_.limits),
      timer_(loop) {}

FileStore::~FileStore() {
  // No other node can know the name.
  if (temporary_) unlink(options_.path.c_str());
}

template <class T>
void FileStore::ask(bool writes, Done<T> done, std::function<Result<T>(FileVisit&)> act) {
  Request request{
      .writes = writes, .deadline = io::Clock::now() + options_.timeout, .act = {}, .fail = {}};
  request.act = [done, act = std::move(act)](FileVisit& file) -> Answer {
    return [done, result = act(file)] {
      if (done) done(result);
    };
  };
  request.fail = [done = std::move(done)](const Error& error) {
    if (done) done(tl::make_unexpected(error));
  };
  requests_.push_back(std::move(request));
  soon();
}

// Appends records in one write. Other processes see all of them, or none if this process is killed.
Status FileStore::append(FileVisit& file, const Entries& entries) {
  std::string bytes;
  for (const auto& [key, value] : entries)
    LOCKSTEP_TRY(put_file_record(bytes, key, value, options_.limits));
  if (auto written = file.write_end(reader_.taken(), bytes); !written)
    return tl::make_unexpected(std::move(written).error().within(options_.path));
  // Own records go through the reader like those of other processes.
  return reader_.feed(bytes);
}

void FileStore::set(std::string_view key, std::string_view value, Done<void> done) {
  multi_set({{std::string(key), std::string(value)}}, std::move(done));
}

void FileStore::multi_set(const Entries& entries, Done<void> done) {
  ask<void>(true, std::move(done),
            [this, entries](FileVisit& file) { return append(file, entries); });
}

void FileStore::add(std::string_view key, std::int64_t delta, Done<std::int64_t> done) {
  ask<std::int64_t>(
      true, std::move(done),
      [this, key = std::string(key), delta](FileVisit& file) -> Result<std::int64_t> {
        const std::string* const stored = find(key);
        // PyTorch's rule: an empty text counts as 0.
        const auto before = stored == nullptr || stored->empty() ? std::optional<std::int64_t>(0)
                                                                 : parse_int(*stored);
        std::int64_t sum = 0;
        if (!before || __builtin_add_overflow(*before, delta, &sum))
          return fail(Errc::corrupt, fmt::format("can't add {} to the '{}' stored as '{}'", delta,
                                                 printable(*stored), printable(key)));
        LOCKSTEP_TRY(append(file, {{key, std::to_string(sum)}}));
        return sum;
      });
}

void FileStore::put_if_absent(std::string_view key, std::string_view value,
                              Done<std::string> done) {
  ask<std::string>(true, std::move(done),
                   [this, key = std::string(key),
                    value = std::string(value)](FileVisit& file) -> Result<std::string> {
                     if (const std::string* const stored = find(key)) return *stored;
                     LOCKSTEP_TRY(append(file, {{key, value}}));
                     return value;
                   });
}

void FileStore::compare_set(std::string_view key, std::string_view expected,
                            std::string_view desired, Done<std::string> done) {
  ask<std::string>(true, std::move(done),
                   [this, key = std::string(key), expected = std::string(expected),
                    desired = std::string(desired)](FileVisit& file) -> Result<std::string> {
                     const std::string* const stored = find(key);
                     if (stored != nullptr && *stored != expected) return *stored;
                     // PyTorch's rule for a missing key.
                     if (stored == nullptr && !expected.empty()) return expected;
                     LOCKSTEP_TRY(append(file, {{key, desired}}));
                     return desired;
                   });
}

void FileStore::probe(std::string_view key, Done<std::optional<std::string>> done) {
  ask<std::optional<std::string>>(
      false, std::move(done),
      [this, key = std::string(key)](FileVisit&) -> Result<std::optional<std::string>> {
        const std::string* const stored = find(key);
        if (stored == nullptr) return std::nullopt;
        return *stored;
      });
}

void FileStore::multi_get(const Keys& keys, Ms timeout, Done<Keys> done) {
  if (!done) done = [](const Result<Keys>&) {};
  waiting_.push_back({keys, timeout, io::Clock::now() + timeout, std::move(done)});
  soon();
}

void FileStore::wait(const Keys& keys, Ms timeout, Done<void> done) {
  multi_get(keys, timeout, [done = std::move(done)](const Result<Keys>& values) {
    if (!done) return;
    if (!values) return done(tl::make_unexpected(values.error()));
    done({});
  });
}

void FileStore::forget_waits() {
  waiting_.clear();
  // Answers already on their way to the loop must not arrive either.
  wait_calls_.drop();
}

std::unique_ptr<KeyValue::Watch> FileStore::watch(std::string_view key,
                                                  std::function<void(std::string)> done) {
  auto watch = std::make_unique<KeyWatch>();
  // The witness tells visits that the watch is gone.
  watched_.push_back({std::string(key), watch->scope.witness(), watch->scope(std::move(done))});
  soon();
  return watch;
}

}  // namespace lockstep::rendezvous::file_store
