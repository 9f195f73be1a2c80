#include "slurm/output_relay.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace lockstep::slurm {
namespace {

constexpr std::size_t kChunk = 256UL << 10;
// Per stream: output possibly still inside srun when the batch step's node dies.
constexpr std::size_t kKept = 4UL << 20;
// The end of the job's output in which those lines are searched. Larger, because all nodes write
// there.
constexpr std::int64_t kLookedAt = 32L << 20;

// Reads the last kLookedAt bytes of a plain file. O_NONBLOCK: the path may be a FIFO by now, and
// opening one would block.
std::string end_of_file(const std::string& path) {
  const io::Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  std::string bytes(static_cast<std::size_t>(std::min<std::int64_t>(info.st_size, kLookedAt)), 0);
  std::size_t have = 0;
  for (ssize_t got = 1; got > 0 && have < bytes.size(); have += static_cast<std::size_t>(got))
    got = std::max<ssize_t>(0, pread(file.get(), bytes.data() + have, bytes.size() - have,
                                     info.st_size - static_cast<off_t>(bytes.size() - have)));
  bytes.resize(have);
  return bytes;
}

}  // namespace

OutputRelay::OutputRelay(io::Loop& loop, int target)
    : loop_(loop), target_(target), history_(kKept) {}

Result<io::Fd> OutputRelay::open() {
  LOCKSTEP_TRY_ASSIGN(io::Pipe pipe, io::make_pipe());
  from_ = std::move(pipe.read);
  from_ready_.emplace(loop_, from_.get());
  from_ready_->start(io::kReadable, [this](int) { read_some(); });
  target_ready_.emplace(loop_, target_);
  target_ready_->start(0, [this](int) { write_some(); });
  return std::move(pipe.write);
}

void OutputRelay::read_some() {
  // One buffer for both streams: the loop is single-threaded.
  static std::vector<char> chunk(kChunk);
  const ssize_t got = read(from_.get(), chunk.data(), chunk.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return give_up();
  put({chunk.data(), static_cast<std::size_t>(got)});
}

void OutputRelay::put(std::string_view bytes) {
  pending_ += bytes;
  if (file_ >= 0) return write_lines();
  history_.add(bytes);
  write_some();
}

// Writes whole lines, because stdout and stderr share the file.
void OutputRelay::write_lines() {
  constexpr std::size_t kLongestLine = 64UL << 10;
  const std::size_t newline = pending_.rfind('\n');
  std::size_t whole = newline == std::string::npos ? 0 : newline + 1;
  // At the end, and in a very long line, a part must do.
  if (!from_ || pending_.size() - whole > kLongestLine) whole = pending_.size();
  if (whole == 0) return;
  (void)!io::write_all(file_, std::string_view(pending_).substr(0, whole), "the log");
  pending_.erase(0, whole);
}

void OutputRelay::give_up() {
  from_ready_.reset();
  from_.reset();
  if (file_ >= 0) write_lines();
}

void OutputRelay::write_some() {
  std::size_t done = 0;
  while (done < pending_.size()) {
    const ssize_t put = write(target_, pending_.data() + done, pending_.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) break;
    // srun is gone. Drop the bytes here: the history still has them for the file.
    if (put < 0) done = pending_.size();
    if (put > 0) done += static_cast<std::size_t>(put);
  }
  pending_.erase(0, done);
  balance();
}

// Applies backpressure: if srun does not read, the agent must block as it would without this relay.
void OutputRelay::balance() {
  target_ready_->want(pending_.empty() ? 0 : io::kWritable);
  if (from_ready_) from_ready_->want(pending_.size() < kKept ? io::kReadable : 0);
}

void OutputRelay::go_on_in(int file, const std::string& job_output) {
  // First switch: save the lines that srun has lost.
  if (file_ < 0) {
    pending_ = history_.missing_from(end_of_file(job_output));
    target_ready_.reset();
    if (from_ready_) from_ready_->want(io::kReadable);
  }
  file_ = file;
  write_lines();
}

}  // namespace lockstep::slurm
