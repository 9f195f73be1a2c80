#include "job/follower.h"

#include "io/last_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <vector>

namespace lockstep::job {
namespace {

constexpr std::size_t kPiece = 256UL << 10;
// The pidfd reports the supervisor's end at once. The timeout covers a supervisor without a usable
// pidfd.
constexpr int kLookAgainMs = 1000;

// Copies one output file to a descriptor.
class Output {
 public:
  Output(std::string path, int to, std::int64_t from)
      : path_(std::move(path)), to_(to), at_(from), buffer_(kPiece) {}

  // Copies all bytes that are there. Fails if the reader is gone or the file cannot be read.
  Status pump() {
    if (!file_) file_ = io::Fd(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file_) return {};  // the job has printed nothing yet
    while (true) {
      const ssize_t got = pread(file_.get(), buffer_.data(), buffer_.size(), at_);
      if (got < 0) return fail_sys("read " + path_, errno);
      if (got == 0) return {};
      LOCKSTEP_TRY(
          io::write_all(to_, {buffer_.data(), static_cast<std::size_t>(got)}, "the client"));
      at_ += got;
    }
  }

 private:
  std::string path_;
  int to_;
  std::int64_t at_;
  std::vector<char> buffer_;
  io::Fd file_;
};

}  // namespace

std::int64_t place_of_last(const std::string& path, std::int64_t lines) {
  const io::Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts {};
  if (!file || fstat(file.get(), &facts) != 0) return 0;
  return io::begin_of_last_lines(file.get(), facts.st_size, lines);
}

Places last_lines(const JobFiles& files, std::int64_t lines) {
  return {place_of_last(files.path("out"), lines), place_of_last(files.path("err"), lines)};
}

Status follow(const JobFiles& files, const Places& from, Until until) {
  Output out(files.path("out"), STDOUT_FILENO, from.out);
  Output err(files.path("err"), STDERR_FILENO, from.err);
  // Watch the folder, not the files: an output that does not exist yet is created later. A
  // rewritten state.json wakes the loop, too.
  const io::Fd changes(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (until == Until::end_of_job && changes)
    inotify_add_watch(changes.get(), files.folder().c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO);
  io::Fd supervisor;
  while (true) {
    LOCKSTEP_TRY_ASSIGN(const JobRecord record, files.record());
    // Read the outputs after the state: an ended job writes no more, so nothing is missed.
    LOCKSTEP_TRY(out.pump());
    LOCKSTEP_TRY(err.pump());
    const Stage stage = record.state.stage;
    if (until == Until::now || stage == Stage::ended || stage == Stage::lost) return {};
    if (!supervisor)
      supervisor = io::Fd(static_cast<int>(
          syscall(SYS_pidfd_open, static_cast<pid_t>(record.state.supervisor), 0)));
    std::array<pollfd, 2> waits = {pollfd{changes.get(), POLLIN, 0},
                                   pollfd{supervisor.get(), POLLIN, 0}};
    if (poll(waits.data(), waits.size(), kLookAgainMs) < 0 && errno != EINTR)
      return fail_sys("wait for the job's output", errno);
    std::array<char, 8192> events;
    // Drain the events: only the wake-up matters.
    while (read(changes.get(), events.data(), events.size()) > 0) {
    }
  }
}

}  // namespace lockstep::job
