#include "hosts/small_command.h"

#include "base/last_line.h"
#include "base/text.h"

#include <fmt/core.h>

#include <utility>
#include <variant>

namespace lockstep::hosts {
namespace {

constexpr std::size_t kMostSmall = 1UL << 20;

}  // namespace

void SmallCommand::begin(std::vector<std::string> argv, std::string input) {
  input_ = std::move(input);
  send_(link::Start{.channel = channel_, .argv = std::move(argv), .input = true, .own = true});
}

void SmallCommand::on_frame(const link::Frame& frame) {
  if (!done_) return;
  if (const auto* data = std::get_if<link::Data>(&frame)) return on_data(*data);
  if (const auto* started = std::get_if<link::Started>(&frame)) {
    if (started->channel != channel_) return;
    if (!input_.empty()) send_(link::Data{channel_, link::Stream::in, std::move(input_)});
    send_(link::Eof{channel_, link::Stream::in});
    return;
  }
  if (const auto* refused = std::get_if<link::Refused>(&frame))
    return refused->channel == channel_ ? finish(fail(Errc::unavailable, refused->why)) : void();
  const auto* exit = std::get_if<link::Exit>(&frame);
  if (exit == nullptr || exit->channel != channel_) return;
  if (exit->code == 0 && exit->signal == 0) return finish(std::move(out_));
  finish(
      fail(Errc::unavailable, fmt::format("its binary failed (code {}, signal {}): {}", exit->code,
                                          exit->signal, printable(last_line(err_)))));
}

void SmallCommand::on_data(const link::Data& data) {
  if (data.channel != channel_ || data.bytes.empty()) return;
  send_(link::Credit{channel_, data.stream, static_cast<std::uint32_t>(data.bytes.size())});
  std::string& text = data.stream == link::Stream::out ? out_ : err_;
  if (text.size() + data.bytes.size() > kMostSmall)
    return finish(fail(Errc::corrupt, "its answer is too long"));
  text += data.bytes;
}

void SmallCommand::finish(Result<std::string> result) {
  const Done done = std::exchange(done_, {});  // may destroy this
  done(std::move(result));
}

}  // namespace lockstep::hosts
