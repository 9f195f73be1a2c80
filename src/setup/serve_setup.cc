// The process `lockstep host-setup`: takes a request and wheels from stdin, has them installed, and
// answers on stdout.

#include "base/text.h"
#include "io/digest.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "setup/host_setup.h"

#include <fmt/core.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

namespace lockstep::setup {
namespace {

constexpr int kBadInput = 2;
// How long a wheel stays in the cache after an install brought it.
constexpr std::chrono::hours kWheelsStay{7 * 24};
constexpr std::size_t kChunk = 256UL << 10;

// stdin: the first line is the request, the rest are the wheels' bytes.
class Input {
 public:
  Result<std::string> line() {
    std::string text;
    while (true) {
      const std::size_t end = ahead_.find('\n');
      text += ahead_.substr(0, end);
      if (text.size() > kLongestRequest) return fail(Errc::corrupt, "the request is too long");
      if (end != std::string::npos) {
        ahead_.erase(0, end + 1);
        return text;
      }
      ahead_.clear();
      LOCKSTEP_TRY(more());
    }
  }

  Status copy(int to, std::uint64_t size, const std::string& path) {
    while (size > 0) {
      if (ahead_.empty()) LOCKSTEP_TRY(more());
      const std::size_t part = std::min<std::uint64_t>(ahead_.size(), size);
      LOCKSTEP_TRY(io::write_all(to, std::string_view(ahead_).substr(0, part), path));
      ahead_.erase(0, part);
      size -= part;
    }
    return {};
  }

 private:
  Status more() {
    ahead_.resize(kChunk);
    ssize_t got = -1;
    do {
      got = read(STDIN_FILENO, ahead_.data(), ahead_.size());
    } while (got < 0 && errno == EINTR);
    ahead_.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    if (got < 0) return fail_sys("read the request", errno);
    if (got == 0) return fail(Errc::corrupt, "the request ends too early");
    return {};
  }

  std::string ahead_;
};

// Removes wheels and drafts older than a week. Every install sends its wheels again, so older ones
// are useless.
void remove_old_wheels(const std::string& top) {
  namespace fs = std::filesystem;
  std::error_code trouble;
  std::vector<fs::path> old;
  for (fs::directory_iterator at(top, trouble), end; !trouble && at != end; at.increment(trouble)) {
    std::error_code unknown;
    const auto came = fs::last_write_time(at->path(), unknown);
    if (!unknown && came < fs::file_time_type::clock::now() - kWheelsStay)
      old.push_back(at->path());
  }
  for (const fs::path& each : old)
    fs::remove_all(each, trouble);
}

// Copies a wheel into the cache under its digest: the same file name may come with other content
// later.
Result<std::string> take_wheel(Input& input, const SetupRequest::File& wheel) {
  namespace fs = std::filesystem;
  const std::string top = io::cache_folder() + "/wheels";
  LOCKSTEP_TRY(io::make_folders(top));
  remove_old_wheels(top);
  // Write a draft, then rename: the connection may break in the middle.
  std::string draft = top + "/.draft-XXXXXX";
  const io::Fd fd(mkostemp(draft.data(), O_CLOEXEC));
  if (!fd) return fail_sys("make " + draft, errno);
  // io::Digest what was written, not what the client announced.
  Status written = input.copy(fd.get(), wheel.size, draft);
  io::Digest digest;
  if (written) written = digest.add_file(draft);
  std::error_code trouble;
  if (!written) {
    fs::remove(draft, trouble);
    return Failure(written.error());
  }
  const std::string folder = top + "/" + digest.hex();
  LOCKSTEP_TRY(io::make_folders(folder));
  const std::string path = folder + "/" + wheel.name;
  fs::rename(draft, path, trouble);
  if (trouble) return fail_sys("make " + path, trouble.value());
  return path;
}

struct Taken {
  SetupRequest request;
  std::vector<std::string> wheels;
};
Result<Taken> take_request() {
  Input input;
  LOCKSTEP_TRY_ASSIGN(const std::string line, input.line());
  LOCKSTEP_TRY_ASSIGN(SetupRequest request, read_request(line));
  Taken taken{std::move(request), {}};
  for (const SetupRequest::File& each : taken.request.wheels) {
    LOCKSTEP_TRY_ASSIGN(std::string path, take_wheel(input, each));
    taken.wheels.push_back(std::move(path));
  }
  return taken;
}

}  // namespace

int serve_setup() {
  auto taken = take_request();
  SetupAnswer answer;
  if (taken) {
    answer = set_up(taken->request, taken->wheels);
  } else {
    answer.code = taken.error().code == Errc::corrupt ? kBadInput : 1;
    answer.error = taken.error().message;
  }
  // The lines of the steps must arrive before the answer, which ends the request.
  std::fflush(stderr);
  const std::string text = print_answer(answer) + "\n";
  // If the client is gone there is no one to tell.
  (void)io::write_all(STDOUT_FILENO, text, "the answer");
  return answer.code;
}

}  // namespace lockstep::setup
