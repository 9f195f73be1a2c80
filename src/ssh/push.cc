#include "ssh/push.h"

#include "base/last_line.h"
#include "base/text.h"
#include "io/read_now.h"
#include "link/frames.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace lockstep::ssh {
namespace {

constexpr std::size_t kMostOutput = 64UL << 10;

Status told(std::optional<Pushed> pushed, const std::string& errors) {
  const std::string why = errors.empty() ? "" : ": " + printable(last_line(errors));
  if (!pushed)
    return fail(Errc::unavailable, "the connection was lost while the binary was sent" + why);
  switch (*pushed) {
    case Pushed::done:
      return {};
    case Pushed::no_exec:
      return fail(Errc::denied,
                  "programs may not be run from the home there (it is mounted noexec), and the "
                  "binary lies in ~/.cache/lockstep",
                  "make ~/.cache/lockstep a link to a folder where programs may be run");
    case Pushed::cut:
      return fail(Errc::unavailable, "only a part of the binary arrived", "try again");
    case Pushed::corrupt:
      return fail(Errc::corrupt, "the binary was damaged on the way" + why, "try again");
    case Pushed::no_space:
      return fail(Errc::exhausted, "the binary can't be written to ~/.cache/lockstep there" + why);
    case Pushed::no_home:
      return fail(Errc::denied, "~/.cache/lockstep can't be made there" + why);
  }
  return {};
}

}  // namespace

Push::Push(io::Loop& loop, std::string socket, Binary binary, std::uint64_t partial,
           std::function<void(Status)> done)
    : loop_(loop),
      socket_(std::move(socket)),
      binary_(std::move(binary)),
      partial_(partial),
      done_(std::move(done)) {}

Status Push::begin() {
  LOCKSTEP_TRY_ASSIGN(const Pushable what, pushable(binary_));
  file_ = io::Fd(open(what.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file_) return fail_sys("read " + what.path, errno);
  // A part as large as the whole cannot be continued.
  const bool resumes = partial_ > 0 && partial_ < what.size;
  if (resumes && lseek(file_.get(), static_cast<off_t>(partial_), SEEK_SET) < 0)
    return fail_sys("read " + what.path, errno);
  return open_session(push_command({.name = binary_.name,
                                    .sha256 = what.sha256,
                                    .size = what.size,
                                    .compressed = what.compressed,
                                    .resumes = resumes}));
}

Status Push::open_session(const std::string& command) {
  LOCKSTEP_TRY_ASSIGN(io::Pipe in, io::make_pipe());
  LOCKSTEP_TRY_ASSIGN(io::Pipe out, io::make_pipe());
  LOCKSTEP_TRY_ASSIGN(io::Pipe err, io::make_pipe());
  const MuxSession::Streams streams{std::move(in.read), std::move(out.write), std::move(err.write)};
  auto session = MuxSession::open(
      loop_, socket_, command, streams,
      {[] {}, [this](std::optional<int>) { on_end(); },
       [this](Error error) { std::exchange(done_, nullptr)(Failure(std::move(error))); }});
  if (!session) return Failure(session.error());
  session_ = std::move(*session);
  watch(std::move(in.write), std::move(out.read), std::move(err.read));
  return {};
}

void Push::watch(io::Fd in, io::Fd out, io::Fd err) {
  in_ = std::move(in);
  out_ = std::move(out);
  err_ = std::move(err);
  to_host_ = std::make_unique<link::Sink>(
      loop_, in_.get(), true,
      link::Sink::Events{[this](std::size_t bytes) { from_file_->grant(bytes); },
                         [this] {
                           to_host_.reset();
                           in_.reset();
                         }});
  from_file_ = std::make_unique<link::Source>(
      loop_, file_.get(), false,
      link::Source::Events{[this](const std::string& bytes) { to_host_->put(bytes); },
                           [this] { to_host_->finish(); }});
  const auto collect = [this](std::unique_ptr<link::Source>& source, int fd, std::string& text) {
    source = std::make_unique<link::Source>(
        loop_, fd, true,
        link::Source::Events{[&source, &text](const std::string& bytes) {
                               // Read on after the limit: the command would block on a full pipe.
                               if (text.size() < kMostOutput) text += bytes;
                               source->grant(bytes.size());
                             },
                             [] {}});
  };
  collect(from_out_, out_.get(), output_);
  collect(from_err_, err_.get(), errors_);
}

// The master reports the end only after it has written the last output to our pipes, so the rest
// can be read now without waiting.
void Push::on_end() {
  from_out_.reset();
  from_err_.reset();
  io::read_now(out_, output_, kMostOutput);
  io::read_now(err_, errors_, kMostOutput);
  const auto pushed = parse_pushed(output_);
  damaged_ = pushed == Pushed::cut || pushed == Pushed::corrupt;
  std::exchange(done_, nullptr)(told(pushed, errors_));
}

}  // namespace lockstep::ssh
