#include "jobs/rented/course_log.h"

#include "base/text.h"
#include "io/own_folders.h"
#include "rent/job_claim.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

namespace lockstep::jobs::rented {
namespace {

constexpr off_t kMostOfFile = 8 << 20;
// A full file may be longer by one piece, whose bytes may all be escaped.
constexpr std::size_t kMostRead = 9UL << 20;
constexpr std::size_t kPiece = 64UL << 10;
constexpr std::size_t kReadPiece = 256UL << 10;
// Reads of one stream in a row, so that a flood of output does not keep messages waiting.
constexpr int kMostPieces = 16;
constexpr std::size_t kProgressSize = 42;
// A child that never stops printing must not keep the process at its end.
constexpr int kMostLastRounds = 64;

std::string progress_path(const std::string& cluster) {
  return io::state_folder() + "/rentals/" + cluster + ".progress";
}

std::string name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// Puts the write end of a new pipe in the place of a standard stream. Returns the read end.
Result<io::Fd> redirect(int stream) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail_sys("pipe", errno);
  io::Fd from(ends[0]);
  const io::Fd to(ends[1]);
  // Only the read end is non-blocking: stdio cannot handle a full non-blocking pipe.
  if (fcntl(from.get(), F_SETFL, O_NONBLOCK) != 0 || dup2(to.get(), stream) < 0)
    return fail_sys("redirect the output", errno);
  return from;
}

// Returns the note for the file behind this full one. Empty if the file cannot be read: a wrong
// place would make clients miss output.
std::string place_after(const std::string& path) {
  const auto text = io::read_file(path, kMostRead);
  if (!text) return "";
  StreamDecoder decoder;
  decoder.decode(*text, [](link::Stream, std::string_view) {});
  return StreamEncoder::place(decoder.at());
}

}  // namespace

CourseLog::CourseLog(const std::string& cluster) : cluster_(cluster), buffer_(kPiece) {
  const std::vector<std::string> paths = rent::follow_logs(cluster);
  beginning_ = paths[0];
  before_ = paths[1];
  path_ = paths[2];
}

Status CourseLog::begin(std::int64_t since_ms) {
  if (log_written_ms(cluster_).value_or(since_ms) < since_ms)
    for (const std::string& path : {beginning_, before_, path_})
      (void)unlink(path.c_str());
  LOCKSTEP_TRY(open_file());
  over_ = io::Fd(eventfd(0, EFD_CLOEXEC));
  if (!over_) return fail_sys("eventfd", errno);
  const std::string progress = progress_path(cluster_);
  progress_ = io::Fd(::open(progress.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  show({});
  std::fflush(stdout);
  LOCKSTEP_TRY_ASSIGN(out_, redirect(STDOUT_FILENO));
  LOCKSTEP_TRY_ASSIGN(err_, redirect(STDERR_FILENO));
  pump_ = std::thread([this] { pump(); });
  return {};
}

CourseLog::~CourseLog() {
  if (!pump_.joinable()) return;
  std::fflush(stdout);
  (void)eventfd_write(over_.get(), 1);
  pump_.join();
  const io::Fd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    (void)dup2(null.get(), stream);
  (void)unlink(progress_path(cluster_).c_str());
}

Status CourseLog::open_file() {
  file_ =
      io::Fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  struct stat info {};
  if (!file_ || fstat(file_.get(), &info) != 0) return fail_sys("open " + path_, errno);
  size_ = info.st_size;
  encoder_ = {};
  return {};
}

void CourseLog::pump() {
  for (int last_rounds = 0; last_rounds < kMostLastRounds;) {
    std::array<pollfd, 3> waits = {pollfd{out_.get(), POLLIN, 0}, pollfd{err_.get(), POLLIN, 0},
                                   pollfd{over_.get(), POLLIN, 0}};
    (void)poll(waits.data(), waits.size(), -1);
    // Children of the course may still hold the pipes: at the end wait for no end of file.
    const bool over = (waits[2].revents & POLLIN) != 0;
    const bool out = copy(link::Stream::out, out_);
    const bool err = copy(link::Stream::err, err_);
    if (over && !out && !err) return;
    if (over) ++last_rounds;
  }
}

bool CourseLog::copy(link::Stream stream, const io::Fd& from) {
  bool some = false;
  for (int piece = 0; piece < kMostPieces; ++piece) {
    const ssize_t got = ::read(from.get(), buffer_.data(), buffer_.size());
    if (got <= 0) break;
    append(stream, {buffer_.data(), static_cast<std::size_t>(got)});
    some = true;
  }
  return some;
}

void CourseLog::append(link::Stream stream, std::string_view bytes) {
  if (size_ >= kMostOfFile) turn_over();
  const std::string text = encoder_.encode(stream, bytes);
  // A full disk costs the log, not the job.
  if (io::write_all(file_.get(), text, path_))
    size_ += static_cast<off_t>(text.size());
  else
    encoder_ = {};  // the mark of the stream may be missing
}

// Moves a full file aside: to the beginning, if there is none yet. The new file begins with its
// place, so that a reader knows how much was dropped.
void CourseLog::turn_over() {
  const bool first = access(beginning_.c_str(), F_OK) != 0;
  // ENOENT: the file was moved before, and a new one could not be opened then.
  if (rename(path_.c_str(), (first ? beginning_ : before_).c_str()) != 0 && errno != ENOENT) return;
  io::Fd full = std::move(file_);
  if (!open_file()) {
    file_ = std::move(full);
    return;
  }
  const std::string place = place_after(first ? beginning_ : before_);
  if (io::write_all(file_.get(), place, path_)) size_ += static_cast<off_t>(place.size());
  append(link::Stream::err, fmt::format("lockstep: this log is long: it begins in {}; {} came "
                                        "before this\n",
                                        name_of(beginning_), name_of(before_)));
}

void CourseLog::show(const std::optional<Progress>& progress) {
  const Progress shown = progress.value_or(Progress{});
  // Always of one size, so that a shorter text leaves nothing of a longer one behind.
  const std::string text = progress ? fmt::format("{:<20} {:<20}\n", shown.bytes, shown.of)
                                    : std::string(kProgressSize, '\n');
  if (progress_) (void)!pwrite(progress_.get(), text.data(), text.size(), 0);
}

CourseLogReader::CourseLogReader(const std::string& cluster, From from)
    : cluster_(cluster), paths_(rent::follow_logs(cluster)), buffer_(kReadPiece) {
  if (from == From::beginning) return;  // read() opens the first part that exists
  file_ = io::Fd(::open(paths_.back().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file_) (void)lseek(file_.get(), 0, SEEK_END);
}

bool CourseLogReader::read(const StreamDecoder::Put& put) {
  if (!file_) return open_next() && read_some(put);
  if (read_some(put)) return true;
  if (is_file(paths_.back())) return false;
  // The writer has moved this file aside. It may have written between the last two looks.
  if (read_some(put)) return true;
  return open_next() && read_some(put);
}

bool CourseLogReader::read_some(const StreamDecoder::Put& put) {
  const ssize_t got = ::read(file_.get(), buffer_.data(), buffer_.size());
  if (got <= 0) return false;
  begun_ = true;
  decoder_.decode({buffer_.data(), static_cast<std::size_t>(got)}, put);
  return true;
}

// Opens the part behind the present one.
bool CourseLogReader::open_next() {
  std::size_t next = 0;
  for (std::size_t i = 0; file_ && i < paths_.size(); ++i)
    if (is_file(paths_[i])) next = i + 1;
  // None of them is the present part any more. Either a new log has begun since, or this reader is
  // behind, and the beginning was read long ago.
  if (file_ && next == 0 && begun_) {
    gap_ = true;
    next = 1;
  }
  for (; next < paths_.size(); ++next) {
    io::Fd part(::open(paths_[next].c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!part) continue;
    file_ = std::move(part);
    decoder_.begin(decoder_.at());
    return true;
  }
  return false;
}

bool CourseLogReader::is_file(const std::string& path) const {
  struct stat open_one {};
  struct stat named {};
  return fstat(file_.get(), &open_one) == 0 && stat(path.c_str(), &named) == 0 &&
         open_one.st_ino == named.st_ino && open_one.st_dev == named.st_dev;
}

std::optional<Progress> CourseLogReader::progress() const {
  const auto text = io::read_file(progress_path(cluster_), kProgressSize);
  if (!text || text->size() != kProgressSize) return std::nullopt;
  const auto bytes = parse_int(strip(text->substr(0, kProgressSize / 2)));
  const auto of = parse_int(strip(text->substr(kProgressSize / 2)));
  if (!bytes || !of || *bytes < 0 || *of < 0) return std::nullopt;
  return Progress{static_cast<std::uint64_t>(*bytes), static_cast<std::uint64_t>(*of)};
}

void CourseLogReader::drop_progress() const {
  (void)unlink(progress_path(cluster_).c_str());
}

bool CourseLogReader::take_gap() {
  return std::exchange(gap_, false);
}

std::optional<std::int64_t> log_written_ms(const std::string& cluster) {
  std::optional<std::int64_t> newest;
  for (const std::string& path : rent::follow_logs(cluster)) {
    struct stat info {};
    if (stat(path.c_str(), &info) != 0) continue;
    const std::int64_t ms =
        std::int64_t{info.st_mtim.tv_sec} * 1000 + info.st_mtim.tv_nsec / 1'000'000;
    newest = std::max(newest.value_or(ms), ms);
  }
  return newest;
}

}  // namespace lockstep::jobs::rented
