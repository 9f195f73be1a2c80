#include "hosts/small_command.h"

#include "base/last_line.h"
#include "base/text.h"
#include "hosts/end_words.h"

#include <utility>

namespace lockstep::hosts {
namespace {

// The limit for each of stdout and stderr. A broken or hostile host must not fill the memory.
constexpr std::size_t kMostSmall = 1UL << 20;

}  // namespace

SmallCommand::SmallCommand(std::uint32_t channel, Send send, Done done)
    : done_(std::move(done)),
      channel_(channel, std::move(send),
               {.started =
                    [this] {
                      channel_.write(std::move(input_));
                      channel_.end_input();
                    },
                .output = [this](link::Stream stream,
                                 std::string_view bytes) { on_output(stream, bytes); },
                .ended = [this](const link::ChannelEnd& end) { on_end(end); }}) {}

void SmallCommand::begin(std::vector<std::string> argv, std::string input) {
  input_ = std::move(input);
  channel_.start({.argv = std::move(argv), .input = true, .own = true});
}

void SmallCommand::on_output(link::Stream stream, std::string_view bytes) {
  // The answer was too long, so `done_` has been called. The command may go on printing.
  if (!done_) return;
  std::string& text = stream == link::Stream::out ? out_ : err_;
  if (text.size() + bytes.size() > kMostSmall)
    return finish(fail(Errc::corrupt, "its answer is too long"));
  text += bytes;
}

void SmallCommand::on_end(const link::ChannelEnd& end) {
  if (!done_) return;
  if (end.succeeded()) return finish(std::move(out_));
  std::string why = end_words("its lockstep", end);
  // The last line tells the cause. Earlier lines may be warnings.
  if (!err_.empty()) why += ": " + printable(last_line(err_));
  finish(fail(Errc::unavailable, std::move(why)));
}

void SmallCommand::finish(Result<std::string> result) {
  // `done` may destroy this object, so the function must not be a member during the call.
  const Done done = std::exchange(done_, {});
  done(std::move(result));
}

}  // namespace lockstep::hosts
