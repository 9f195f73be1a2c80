#include "rows/runner.h"

#include "base/backoff.h"
#include "base/clock_ms.h"
#include "base/exit_codes.h"
#include "base/log.h"
#include "codec/json.h"
#include "io/own_folders.h"
#include "proc/signal_watch.h"
#include "proc/spawn.h"
#include "rows/row_book.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace lockstep::rows {
namespace {

constexpr std::size_t kMostReport = 4UL << 20;
// A host may be broken if all of its first rows fail at once, this many for each slot, while rows
// of another host are done. Then it runs one row now and then, until a row works.
constexpr std::size_t kFirstRows = 3;
constexpr std::int64_t kAtOnceMs = 2000;
constexpr std::chrono::seconds kFirstPause{10};
constexpr std::chrono::seconds kLongestPause{60};

// In a shared folder another user may plant a link, or a FIFO, where open() would wait for ever.
Result<io::Fd> open_book(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
  io::Fd book(::open(path.c_str(), kFlags | O_NONBLOCK, 0600));
  struct stat info {};
  if (!book || fstat(book.get(), &info) != 0) return fail_sys(path, errno);
  // open() succeeds for a FIFO with a reader.
  if (!S_ISREG(info.st_mode)) return fail(Errc::already_exists, path + " is not a file");
  if (fcntl(book.get(), F_SETFL, O_APPEND) != 0) return fail_sys(path, errno);
  return book;
}

class Runner {
 public:
  explicit Runner(RunnerRequest request) : request_(std::move(request)) {}

  Result<int> run();

 private:
  struct Place {
    std::optional<proc::Child> child = {};
    std::unique_ptr<io::Watch> watch = {};
    std::size_t row = 0;
    std::int64_t began_ms = 0;
    bool over = false;
  };

  Status open();
  void take_row(std::size_t slot, std::optional<std::size_t> row);
  Status start(std::size_t slot, std::size_t row);
  void on_end(std::size_t slot);
  void end_row(std::size_t row, int code, const std::string& last_line,
               const std::optional<LastStep>& step = {});
  bool works();
  void go_on(std::size_t slot);
  void pause(std::size_t slot);
  void try_again();
  void close_slot(std::size_t slot);
  void on_signal(int number);
  void end_if_idle();
  void on_lost(const Error& why);
  void finish(std::optional<std::size_t> ended);
  void write(const std::string& line);
  std::string report_of(std::size_t row) const {
    return fmt::format("{}/{}.json", request_.folder, row);
  }

  RunnerRequest request_;
  io::Loop loop_;
  std::string binary_;
  io::Fd book_;
  io::Fd null_;
  std::unique_ptr<proc::SignalWatch> signals_;
  std::unique_ptr<RowQueue> queue_;
  std::vector<Place> places_;
  std::size_t open_slots_ = 0;
  std::size_t done_ = 0;
  std::size_t failed_ = 0;
  bool began_ = false;    // a row, on this host
  bool missing_ = false;  // a row has no end, or this host could not reach the queue
  bool cut_line_ = false;
  bool works_ = false;               // a row has not failed at once on this host
  std::vector<std::size_t> paused_;  // slots
  Backoff pause_{{.first = kFirstPause, .longest = kLongestPause}};
  io::Timer again_{loop_};
  int signal_ = 0;
};

Status Runner::open() {
  LOCKSTEP_TRY_ASSIGN(binary_, proc::own_executable());
  LOCKSTEP_TRY(io::make_folders(request_.folder));
  const std::string path = request_.folder + "/rows.jsonl";
  LOCKSTEP_TRY_ASSIGN(book_, open_book(path));
  // A power cut may have left a line unfinished.
  cut_line_ = lseek(book_.get(), 0, SEEK_END) > 0;
  write(run_line(unix_ms()));
  // Rows run side by side: none of them may read the terminal.
  null_ = io::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  LOCKSTEP_TRY_ASSIGN(signals_, proc::SignalWatch::open(loop_, [this](int n) { on_signal(n); }));
  if (request_.queue.node > 0)
    log::info("waits for the queue of rows at {}:{}", request_.queue.host, request_.queue.port);
  LOCKSTEP_TRY_ASSIGN(
      queue_, RowQueue::open(loop_, request_.rows, request_.queue,
                             {.on_row = [this](std::size_t slot, auto row) { take_row(slot, row); },
                              .on_lost = [this](const Error& why) { on_lost(why); }}));
  return {};
}

Result<int> Runner::run() {
  LOCKSTEP_TRY(open());
  places_ = std::vector<Place>(request_.slots.size());
  open_slots_ = places_.size();
  for (std::size_t slot = 0; slot < places_.size(); ++slot)
    queue_->ask(slot);
  // The other hosts run all rows.
  if (places_.empty()) queue_->leave([this](auto ended) { finish(ended); });
  loop_.run();
  queue_.reset();
  if (signal_ != 0) return 128 + signal_;
  return failed_ == 0 && !missing_ ? 0 : 1;
}

void Runner::take_row(std::size_t slot, std::optional<std::size_t> row) {
  if (!row || signal_ != 0) {
    // No row is left for the paused slots either.
    for (const std::size_t other : std::exchange(paused_, {}))
      close_slot(other);
    return close_slot(slot);
  }
  write(begin_line(*row, unix_ms()));
  if (const Status started = start(slot, *row); !started) {
    end_row(*row, kExitCannotRun, started.error().message);
    // The next row would fail too, and other slots and hosts may be able to run it.
    close_slot(slot);
  }
}

Status Runner::start(std::size_t slot, std::size_t row) {
  const std::string report = report_of(row);
  // The report of an earlier try must not speak for this one.
  unlink(report.c_str());
  proc::SpawnSpec spec;
  spec.executable = binary_;
  spec.argv = {"lockstep"};
  for (std::string& word : request_.words(row, report))
    spec.argv.push_back(std::move(word));
  spec.env = request_.env;
  for (std::string& variable : row_variables(request_.table, row))
    spec.env.push_back(std::move(variable));
  if (std::exchange(began_, true)) spec.env.push_back(std::string(kWarnedBefore) + "=1");
  if (const auto& gpus = request_.slots[slot].gpus) {
    const std::string name = "CUDA_VISIBLE_DEVICES=";
    // getenv() returns the first of two equal names, so the old value must go.
    std::erase_if(spec.env, [&](const std::string& entry) { return entry.starts_with(name); });
    spec.env.push_back(name + *gpus);
  }
  spec.stdin_fd = null_.get();
  Place& place = places_[slot];
  LOCKSTEP_TRY_ASSIGN(place.child, proc::spawn(spec));
  place.row = row;
  place.began_ms = unix_ms();
  place.watch = std::make_unique<io::Watch>(loop_, place.child->pidfd());
  place.watch->start(io::kReadable, [this, slot](int) { on_end(slot); });
  return {};
}

void Runner::on_end(std::size_t slot) {
  Place& place = places_[slot];
  const auto exit = place.child->reap();
  if (!exit) return;
  place.watch.reset();
  place.child.reset();
  const int code = exit->shell_code();
  const std::string path = report_of(place.row);
  const auto report = codec::parse_json(io::read_file(path, kMostReport).value_or(""));
  // Keep only the reports of failures: a sweep may have thousands of rows.
  if (code == 0) unlink(path.c_str());
  end_row(place.row, code, code == 0 ? "" : last_line_of(report, code),
          last_step_of_report(report, request_.progress));
  works_ = works_ || code == 0 || unix_ms() - place.began_ms > kAtOnceMs;
  if (signal_ != 0) return end_if_idle();
  go_on(slot);
}

// A row that has run for a while counts, too: it may go on for hours.
bool Runner::works() {
  for (const Place& place : places_)
    works_ = works_ || (place.child && unix_ms() - place.began_ms > kAtOnceMs);
  return works_;
}

// A broken host would empty the queue faster than the others can.
void Runner::go_on(std::size_t slot) {
  if (works() || failed_ < kFirstRows * places_.size()) {
    queue_->ask(slot);
    return try_again();
  }
  queue_->ask_any_done([this, slot](bool done) {
    if (signal_ != 0) return close_slot(slot);
    done && !works() ? pause(slot) : queue_->ask(slot);
  });
}

void Runner::pause(std::size_t slot) {
  paused_.push_back(slot);
  if (again_.active()) return;
  log::error(
      "the first {} rows of this host have all failed at once, and rows of another host are done: "
      "this host tries one row now and then",
      failed_);
  again_.start(pause_.next(), [this] { try_again(); });
}

// One slot tries for all. The others stay paused until a row works.
void Runner::try_again() {
  if (paused_.empty() || signal_ != 0) return;
  do {
    queue_->ask(paused_.back());
    paused_.pop_back();
  } while (works() && !paused_.empty());
  again_.start(pause_.next(), [this] { try_again(); });
}

void Runner::end_row(std::size_t row, int code, const std::string& last_line,
                     const std::optional<LastStep>& step) {
  // A row that a signal has stopped may begin again with `lockstep resume`.
  write(end_line(row, code, unix_ms(), last_line, step));
  queue_->note_end(code == 0);
  ++(code == 0 ? done_ : failed_);
  if (code != 0 && signal_ == 0)
    log::error("row {} ({}) failed with exit code {}: {}", row, row_text(request_.table, row), code,
               last_line);
}

void Runner::close_slot(std::size_t slot) {
  if (std::exchange(places_[slot].over, true)) return;
  if (--open_slots_ == 0) queue_->leave([this](auto ended) { finish(ended); });
}

void Runner::on_signal(int number) {
  if (number != SIGINT && number != SIGTERM && number != SIGHUP && number != SIGQUIT) return;
  // The result of a guest that only stays stands: all of its rows have ended.
  if (open_slots_ > 0 || request_.queue.node == 0) signal_ = number;
  // Each row's own `lockstep run` ends its ranks in time, and reports to nobody else.
  for (const Place& place : places_)
    if (place.child) kill(place.child->pid(), number == SIGHUP ? SIGTERM : number);
  end_if_idle();
}

// After a signal nothing is awaited but the rows that still end: no other host, and no answer.
void Runner::end_if_idle() {
  for (const Place& place : places_)
    if (place.child) return;
  finish(std::nullopt);
}

void Runner::on_lost(const Error& why) {
  missing_ = true;
  log::error(
      "the queue of rows at node 0 is lost: {}; this host's running rows go on, and no "
      "other row begins here",
      why.message);
}

void Runner::finish(std::optional<std::size_t> ended) {
  const std::size_t all = request_.rows.size();
  const bool counts = request_.queue.node == 0 && signal_ == 0;
  if (counts && (!ended || *ended < all)) {
    missing_ = true;
    log::error("{} of {} rows have no end: their hosts are lost, or have left",
               all - ended.value_or(0), all);
  }
  const std::string told = fmt::format("rows of this host: {} done, {} failed", done_, failed_);
  failed_ > 0 ? log::warning("{}", told) : log::info("{}", told);
  loop_.stop();
}

void Runner::write(const std::string& line) {
  // The line that could not be written may have left its beginning.
  const Status written =
      io::write_all(book_.get(), cut_line_ ? "\n" + line : line, request_.folder + "/rows.jsonl");
  cut_line_ = !written;
  if (written) return;
  // A full disk must not end the rows that run. Success counts only if it is recorded.
  missing_ = true;
  log::error("{}", written.error().message);
}

}  // namespace

Result<int> run_rows(RunnerRequest request) {
  return Runner(std::move(request)).run();
}

}  // namespace lockstep::rows
