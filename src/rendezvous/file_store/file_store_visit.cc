// The visits to the file: take the lock if it is free, read new records, carry out requests,
// unlock, then answer. A timer separates visits.
#include "base/log.h"
#include "base/text.h"
#include "rendezvous/file_store/file_store.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::file_store {
namespace {

constexpr std::size_t kPieceBytes = 256U << 10;
constexpr std::uint64_t kTurnBytes = 8U << 20;  // then the loop's other work has its turn
// Processes that wait in the kernel are woken for the lock. A lock passed from process to process
// is free for a few microseconds only, so spin for a moment.
constexpr std::chrono::microseconds kLockSpin{50};
constexpr int kQuickRefusals =
    100;  // after this many consecutive refusals, ask for the lock less often

}  // namespace

void FileStore::soon() {
  timer_.start({}, [this] { visit(); });
}

void FileStore::visit() {
  std::vector<Answer> answers;
  Result<Look> outcome = lost_ ? tl::make_unexpected(*lost_) : look(answers);
  if (!outcome) {
    // After the answers to requests already carried out.
    answers.emplace_back([this, error = std::move(outcome).error()] { lose(error); });
    return deliver(answers);
  }
  expire(answers);
  schedule(*outcome);
  deliver(answers);
}

Result<FileStore::Look> FileStore::look(std::vector<Answer>& answers) {
  auto file = FileVisit::open(options_.path);
  if (!file) {
    last_error_ = file.error();
    const Errc code = file.error().code;
    // Other errors, for instance of a network file system, may pass.
    if (code != Errc::not_found && code != Errc::denied && code != Errc::invalid_input)
      return Look::later;
    return tl::make_unexpected(std::move(file).error());
  }
  // A deleted and recreated file is another store: its nodes are not ours.
  if (file->identity() != identity_)
    return fail(Errc::unavailable, "another file has taken its place");
  Look outcome = Look::done;
  // An unchanged file needs no lock: records are only appended.
  if (!requests_.empty() || file->size() != reader_.taken()) {
    LOCKSTEP_TRY_ASSIGN(outcome, work(*file, answers));
  }
  // Not on stale data, nor before earlier requests.
  if (outcome == Look::done) meet(answers);
  return outcome;
}

Result<FileStore::Look> FileStore::work(FileVisit& file, std::vector<Answer>& answers) {
  const bool writes = std::any_of(requests_.begin(), requests_.end(),
                                  [](const Request& request) { return request.writes; });
  // A writer needs the exclusive lock; readers share one.
  auto locked = lock(file, writes);
  if (!locked) {
    last_error_ = std::move(locked).error();
    return Look::later;
  }
  if (!*locked) return Look::locked;
  refusals_ = 0;
  last_error_.reset();
  // PyTorch only appends, so a shorter file has lost records.
  if (file.size() < reader_.taken())
    return fail(Errc::corrupt, "another process has shortened the file");
  LOCKSTEP_TRY_ASSIGN(const bool all, catch_up(file));
  if (!all) return Look::again_soon;
  if (writes) {
    LOCKSTEP_TRY_ASSIGN(const bool appendable, whole(file));
    if (!appendable) return Look::later;
  }
  // All pending requests share one lock and one visit.
  for (; !requests_.empty(); requests_.pop_front())
    answers.push_back(requests_.front().act(file));
  return Look::done;
}

Result<bool> FileStore::lock(FileVisit& file, bool exclusive) const {
  const auto end = io::Clock::now() + kLockSpin;
  while (true) {
    LOCKSTEP_TRY_ASSIGN(const bool mine, file.try_lock(exclusive));
    if (mine) return true;
    if (io::Clock::now() >= end) return false;
  }
}

// Reads new records. Returns false if more is left for another turn. The reader applies only whole
// records.
Result<bool> FileStore::catch_up(const FileVisit& file) {
  const std::uint64_t start = reader_.taken();
  std::uint64_t at = start;
  reader_.drop_rest();
  while (at < file.size()) {
    // Give other work a turn, but not before at least one record is read.
    if (at - start >= kTurnBytes && reader_.taken() > start) return false;
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, file.size() - at));
    LOCKSTEP_TRY_ASSIGN(const std::string piece, file.read_at(at, count));
    if (piece.empty()) break;
    LOCKSTEP_TRY(reader_.feed(piece));
    at += piece.size();
  }
  return true;
}

// Returns whether the file ends with a whole record, so that another can follow. An incomplete
// record under the lock comes from a dead writer, or from a writer whose locks this machine does
// not see. Only the latter goes on.
Result<bool> FileStore::whole(FileVisit& file) {
  const auto now = io::Clock::now();
  if (file.size() == reader_.taken()) {
    torn_size_ = 0;
    return true;
  }
  // It grows: the writer is alive.
  if (torn_size_ != file.size()) {
    torn_size_ = file.size();
    torn_since_ = now;
  }
  // The writer may still be alive: wait before cutting its record off.
  if (now - torn_since_ < options_.torn_after) return false;
  // Without a single record the file may belong to another program: do not cut it.
  if (reader_.taken() == 0) return fail(Errc::corrupt, "the file has no complete record");
  log::warning("{}: cutting off {} bytes of an unfinished record", options_.path,
               file.size() - reader_.taken());
  torn_size_ = 0;
  reader_.drop_rest();
  LOCKSTEP_TRY(file.truncate(reader_.taken()));
  return true;
}

// Answers the waits whose keys all exist.
void FileStore::meet(std::vector<Answer>& answers) {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    Keys values;
    values.reserve(at->keys.size());
    for (const auto& key : at->keys) {
      const std::string* const value = find(key);
      if (value == nullptr) break;
      values.push_back(*value);
    }
    if (values.size() < at->keys.size()) {
      ++at;
      continue;
    }
    answers.push_back(answer_of(*at, std::move(values)));
    at = waiting_.erase(at);
  }
  std::erase_if(watched_, [&](Watched& watched) {
    if (watched.owner.gone()) return true;
    const std::string* const value = find(watched.key);
    if (value == nullptr) return false;
    answers.emplace_back([done = std::move(watched.done), value = *value] { done(value); });
    return true;
  });
}

// Returns the answer, which forget_waits() can still take back.
FileStore::Answer FileStore::answer_of(Waiting& waiting, Result<Keys> result) const {
  return wait_calls_(
      [done = std::move(waiting.done), result = std::move(result)] { done(result); });
}

void FileStore::expire(std::vector<Answer>& answers) {
  const auto now = io::Clock::now();
  while (!requests_.empty() && requests_.front().deadline <= now) {
    answers.emplace_back(
        [fail = std::move(requests_.front().fail), error = trouble()] { fail(error); });
    requests_.pop_front();
  }
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    if (at->deadline > now) {
      ++at;
      continue;
    }
    Error error{Errc::timeout,
                fmt::format("wait timeout after {}ms, keys: {}", at->timeout.count(),
                            printable(join(at->keys, ", "))),
                {},
                0};
    // The wait may have failed because the file could not be read.
    if (last_error_ || refusals_ > 0) error.message += fmt::format(" ({})", trouble().message);
    answers.push_back(answer_of(*at, tl::make_unexpected(std::move(error))));
    at = waiting_.erase(at);
  }
}

// Returns why nothing was done in time.
Error FileStore::trouble() const {
  if (last_error_) return Error(*last_error_).within(options_.path);
  if (torn_size_ != 0)
    return {Errc::timeout, fmt::format("{}: the last record is incomplete", options_.path), {}, 0};
  return {Errc::timeout,
          fmt::format("the lock of {} did not become free in {} ms", options_.path,
                      options_.timeout.count()),
          "a stopped process may hold the lock: see lslocks", 0};
}

void FileStore::schedule(Look outcome) {
  const bool idle = requests_.empty() && waiting_.empty() && watched_.empty();
  io::Duration pause = options_.poll;
  switch (outcome) {
    case Look::again_soon:
      pause = {};
      break;
    case Look::locked:
      // The lock is in heavy use: try again soon at first, less often later.
      if (++refusals_ < kQuickRefusals) pause = std::chrono::milliseconds(1);
      break;
    case Look::done:
    case Look::later:
      break;
  }
  // flock() and appends wake no sleeping reader, so poll like PyTorch.
  if (!idle) timer_.start(pause, [this] { visit(); });
}

void FileStore::deliver(const std::vector<Answer>& answers) {
  const auto here = calls_.witness();
  for (const auto& answer : answers) {
    answer();
    if (here.gone()) return;
  }
}

void FileStore::lose(Error error) {
  timer_.cancel();
  const bool first = !lost_;
  if (first) {
    lost_ = std::move(error).within(fmt::format("the rendezvous file '{}'", options_.path));
  }
  std::vector<Answer> answers;
  answers.reserve(requests_.size() + waiting_.size() + 1);
  for (auto& request : std::exchange(requests_, {}))
    answers.emplace_back([fail = std::move(request.fail), error = *lost_] { fail(error); });
  for (auto& waiting : std::exchange(waiting_, {}))
    answers.push_back(answer_of(waiting, tl::make_unexpected(*lost_)));
  watched_.clear();
  if (first && on_loss_) answers.emplace_back([tell = on_loss_, error = *lost_] { tell(error); });
  deliver(answers);
}

}  // namespace lockstep::rendezvous::file_store
