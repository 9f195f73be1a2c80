#include "host/kernel_log.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>

namespace lockstep::host {
namespace {

// A record is at most so long, and the kernel refuses a shorter buffer.
constexpr std::size_t kMostRecord = 8192;
// A machine in trouble may log faster than one reads.
constexpr int kMostReads = 256;

}  // namespace

KernelLog::KernelLog(const std::string& path)
    : fd_(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {
  lines_.emplace(kMostRecord);
  if (fd_ && lseek(fd_.get(), 0, SEEK_END) < 0) fd_.reset();
}

void KernelLog::read(const std::function<void(std::string_view)>& on_line) {
  std::array<char, kMostRecord> bytes;
  for (int reads = 0; fd_ && reads < kMostReads; ++reads) {
    const ssize_t got = ::read(fd_.get(), bytes.data(), bytes.size());
    // EPIPE: the kernel has overwritten records that were not read yet.
    if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (got <= 0) return;
    lines_->put({bytes.data(), static_cast<std::size_t>(got)});
    while (const auto line = lines_->next())
      on_line(*line);
    if (lines_->too_long()) lines_.emplace(kMostRecord);
  }
}

}  // namespace lockstep::host
