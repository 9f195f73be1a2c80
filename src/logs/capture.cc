// Opens the ends of a worker's streams and connects the readers.
#include "logs/capture.h"

#include "logs/log_file.h"
#include "logs/pty.h"
#include "logs/stream_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace lockstep::logs {
namespace {
// A large pipe means fewer turns of the loop for a worker with much output. It must not be larger
// still: the kernel counts all pipes of a user against one limit (64 MiB), and new pipes beyond the
// limit are tiny.
constexpr int kPipeSize = 256 << 10;

// O_NONBLOCK: the worker may have replaced its log file by a FIFO.
io::Fd open_to_read(const std::string& path) {
  return io::Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

// Reads the end of a log file that the worker itself writes. cut: the text may begin within a line.
std::string last_of_file(const io::Fd& fd, std::size_t most, bool& cut) {
  if (!fd) return {};
  const off_t size = lseek(fd.get(), 0, SEEK_END);
  const off_t from = size > static_cast<off_t>(most) ? size - static_cast<off_t>(most) : 0;
  cut = from > 0;
  std::string bytes(most, '\0');
  std::size_t used = 0;
  while (used < bytes.size()) {
    const ssize_t got =
        pread(fd.get(), bytes.data() + used, bytes.size() - used, from + static_cast<off_t>(used));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    used += static_cast<std::size_t>(got);
  }
  bytes.resize(used);
  return bytes;
}

// Returns whether a read of this file waits for no other machine.
bool is_on_own_disk(const io::Fd& fd) {
  struct statfs facts {};
  if (!fd || fstatfs(fd.get(), &facts) != 0) return false;
  // Numbers: linux/magic.h lacks some of these names.
  constexpr unsigned long kOwn[] = {0xEF53 /* ext4 */,        0x58465342 /* xfs */,
                                    0x9123683E /* btrfs */,   0x01021994 /* tmpfs */,
                                    0x794C7630 /* overlay */, 0xF2F52010 /* f2fs */,
                                    0x2FC12FC1 /* zfs */,     0xCA451A4E /* bcachefs */};
  return std::find(std::begin(kOwn), std::end(kOwn), static_cast<unsigned long>(facts.f_type)) !=
         std::end(kOwn);
}

Result<io::Fd> open_null() {
  io::Fd fd(open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!fd) return fail_sys("open /dev/null", errno);
  return fd;
}
}  // namespace

Result<std::unique_ptr<Capture>> Capture::open(io::Loop& loop, Console& console, CapturePlan plan) {
  std::unique_ptr<Capture> capture(new Capture);
  capture->console_err_fd_ = console.fd(Stream::err);
  capture->source_ = plan.source;
  capture->out_.plan = std::move(plan.out);
  capture->err_.plan = std::move(plan.err);
  LOCKSTEP_TRY(capture->open_side(loop, console, Stream::out, plan.prefix));
  LOCKSTEP_TRY(capture->open_side(loop, console, Stream::err, plan.prefix));
  LOCKSTEP_TRY(capture->share_one_way(console));
  return capture;
}

Capture::~Capture() = default;

// If the agent's two streams are one file, send both streams of a worker through the agent. With
// only stderr on the detour, lines would change places.
Status Capture::share_one_way(const Console& console) {
  if (out_.plan.route != Route::inherit || err_.plan.route != Route::passthrough) return {};
  if (!console.one_file()) return {};
  out_.child = io::Fd(fcntl(err_.child.get(), F_DUPFD_CLOEXEC, 3));
  if (!out_.child) return fail_sys("duplicate a worker's stderr", errno);
  shared_ = true;
  return {};
}

Status Capture::open_side(io::Loop& loop, Console& console, Stream stream,
                          const std::string& prefix) {
  Side& side = stream == Stream::out ? out_ : err_;
  switch (side.plan.route) {
    case Route::inherit:
      return {};
    case Route::file: {
      // The worker writes to the file directly: the fastest way. A rotated file needs the agent in
      // between.
      if (side.plan.max_size != 0) break;
      LOCKSTEP_TRY_ASSIGN(side.child, open_log_file(side.plan.path));
      side.is_local_file = is_on_own_disk(side.child);
      return {};
    }
    case Route::discard: {
      LOCKSTEP_TRY_ASSIGN(side.child, open_null());
      return {};
    }
    case Route::tee:
    case Route::passthrough:
    case Route::keep:
      break;
  }
  return open_reader(loop, console, stream, prefix);
}

Status Capture::open_reader(io::Loop& loop, Console& console, Stream stream,
                            const std::string& prefix) {
  Side& side = stream == Stream::out ? out_ : err_;
  StreamReader::Parts parts;
  parts.stream = stream;
  parts.source = source_;
  parts.fold = console.fold(stream);
  parts.keep_tail = stream == Stream::err;
  if (side.plan.route == Route::passthrough && isatty(console.fd(stream)) == 1) {
    // A worker that sees a terminal draws progress bars and colors, as without the agent in
    // between.
    if (auto pty = open_pty(console.fd(stream))) {  // if no pty is available, use a pipe
      parts.input = std::move(pty->master);
      side.child = std::move(pty->slave);
      side.is_pty = true;
    }
  }
  if (!parts.input) {
    LOCKSTEP_TRY_ASSIGN(io::Pipe pipe, io::make_pipe());
    // For a worker whose output goes to the console only, a default pipe is enough.
    if (!side.plan.path.empty()) (void)fcntl(pipe.read.get(), F_SETPIPE_SZ, kPipeSize);
    parts.input = std::move(pipe.read);
    side.child = std::move(pipe.write);
  }
  if (!side.plan.path.empty()) {
    LOCKSTEP_TRY_ASSIGN(parts.file, LogFile::open(side.plan.path, side.plan.max_size));
  }
  if (side.plan.route == Route::tee) {
    parts.prefix = LinePrefix(prefix);
    // All lines opened here start with the same time. stamp() renews it with each read.
    const std::string now = parts.prefix.at(std::chrono::system_clock::now());
    parts.tagger.emplace(now);
    if (side.plan.filtered) parts.filter.emplace(now, side.plan.filters);
    parts.filtered = side.plan.filtered;
    parts.folds = parts.fold != nullptr;
  } else if (side.plan.route == Route::passthrough) {
    parts.tagger.emplace("");
  }
  side.reader = std::make_unique<StreamReader>(loop, console, std::move(parts));
  side.reader->set_on_end([this] { on_end(); });
  return {};
}

// A reader sees the end of a stream only after all write ends are closed, also the agent's own.
void Capture::close_child_ends() {
  out_.child.reset();
  err_.child.reset();
}

bool Capture::drained() const {
  const auto done = [](const Side& side) { return !side.reader || side.reader->ended(); };
  return taken_ || (done(out_) && done(err_));
}

void Capture::on_end() {
  if (!drained()) return;
  // on_drained_ may destroy this object: call it last.
  if (const auto fn = std::exchange(on_drained_, nullptr)) fn();
}

void Capture::drain_now() {
  on_drained_ = nullptr;
  taken_ = true;
  for (Side* side : {&out_, &err_}) {
    if (side->reader) side->reader->take_now();
  }
}

std::string Capture::stderr_tail(std::size_t lines) const {
  if (err_.reader) return err_.reader->tail(lines);
  if (err_.plan.route != Route::file) return {};  // Route::file: the worker writes the file itself
  bool cut = false;
  const std::string bytes = last_of_file(open_to_read(err_.plan.path), TailRing::kSize, cut);
  return tail_text(bytes, lines, cut);
}

bool Capture::stderr_has(std::string_view words) const {
  return err_.reader && err_.reader->tail_has(words);
}

Capture::Printed Capture::printed() const {
  Printed printed;
  for (const Side* side : {&out_, &err_}) {
    if (!side->reader) continue;
    printed.bytes += side->reader->bytes_read();
    printed.last =
        std::max(printed.last.value_or(side->reader->last_read()), side->reader->last_read());
  }
  return printed;
}

Capture::Recent Capture::recent_of(const Side& side, io::TimePoint now) {
  using std::chrono::milliseconds;
  if (side.reader) {
    if (side.reader->bytes_read() == 0) return {};
    const std::string_view newest = side.reader->newest();
    const auto age = std::chrono::duration_cast<milliseconds>(now - side.reader->last_read());
    return {std::string(newest), side.reader->bytes_read() > newest.size(), age};
  }
  if (!side.is_local_file) return {};
  const io::Fd fd = open_to_read(side.plan.path);
  struct stat facts {};
  if (!fd || fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size == 0)
    return {};
  Recent recent;
  recent.bytes = last_of_file(fd, NewestBytes::kMost, recent.cut);
  const auto written =
      std::chrono::seconds(facts.st_mtim.tv_sec) + std::chrono::nanoseconds(facts.st_mtim.tv_nsec);
  const auto age = std::chrono::system_clock::now().time_since_epoch() - written;
  recent.age = std::max(std::chrono::duration_cast<milliseconds>(age), milliseconds(0));
  return recent;
}

std::array<Capture::Recent, 2> Capture::recent(io::TimePoint now) const {
  std::array<Recent, 2> both = {recent_of(out_, now), recent_of(err_, now)};
  auto& [out, err] = both;
  if (!out.age || (err.age && *err.age < *out.age)) std::swap(out, err);
  return both;
}

Capture::Newest Capture::newest(io::TimePoint now) const {
  const auto [newer, older] = recent(now);
  std::string line = newest_line(newer.bytes);
  // A stream without a whole line yet leaves that of the other one.
  return {line.empty() ? newest_line(older.bytes) : std::move(line), newer.age};
}

std::string Capture::last_lines(std::size_t lines, io::TimePoint now) const {
  const auto [newer, older] = recent(now);
  const std::string before = tail_text(older.bytes, lines, older.cut);
  const std::string last = tail_text(newer.bytes, lines, newer.cut);
  return before.empty() || last.empty() ? before + last : before + "\n" + last;
}

void Capture::resize() {
  if (err_.is_pty) copy_window_size(console_err_fd_, err_.reader->input());
}

std::uint64_t Capture::lost_bytes() const {
  std::uint64_t lost = 0;
  for (const Side* side : {&out_, &err_}) {
    if (side->reader) lost += side->reader->lost_bytes();
  }
  return lost;
}

}  // namespace lockstep::logs
