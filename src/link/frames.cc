// The fields of each frame are described once, for both directions.
#include "link/frames.h"

#include "base/text.h"
#include "codec/wire.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <utility>

namespace lockstep::link {
namespace {

// The kernel's limits: an exit code has eight bits, and Linux has 64 signals.
constexpr std::int64_t kMostCode = 255;
constexpr std::int64_t kMostSignal = 64;

// Matches F, the frame's type, which is const when writing.
template <class F, class T>
concept Is = std::same_as<std::remove_const_t<F>, T>;

template <class Io, class Strings>
void texts(Io& io, Strings& values) {
  io.list(values, kMaxArguments, [](auto& each, auto& value) { each.text(value, kMaxArgument); });
}

template <class Io, Is<Hello> F>
void fields(Io& io, F& f) {
  io.number(f.version);
  if constexpr (Io::kReads) {
    // another version may have other fields after the first
    if (f.version != kVersion) return io.skip();
  }
  io.line(f.software, kMaxLine);
  io.line(f.host, kMaxLine);
  io.text(f.home, kMaxPath);
}
template <class Io, Is<Start> F>
void fields(Io& io, F& f) {
  io.number(f.channel);
  texts(io, f.argv);
  texts(io, f.env);
  io.text(f.folder, kMaxPath);
  io.flag(f.input);
  io.flag(f.own);
  io.flag(f.result);
}
template <class Io, Is<Started> F>
void fields(Io& io, F& f) {
  io.number(f.channel);
  io.within(f.pid, 0, INT32_MAX);
}
template <class Io, Is<Refused> F>
void fields(Io& io, F& f) {
  io.number(f.channel);
  io.within(f.code, 1, kMostCode);
  io.line(f.why, kMaxLine);
}
template <class Io, Is<Exit> F>
void fields(Io& io, F& f) {
  io.number(f.channel);
  io.within(f.code, 0, kMostCode);
  io.within(f.signal, 0, kMostSignal);
}
template <class Io, Is<Data> F>
void fields(Io& io, F& f) {
  io.number(f.channel);
  io.choice(f.stream, Stream::result);
  io.text(f.bytes, kMaxData);
}
template <class Io, Is<Eof> F>
void fields(Io& io, F& f) {
  io.number(f.channel);
  io.choice(f.stream, Stream::result);
}
template <class Io, Is<Credit> F>
void fields(Io& io, F& f) {
  io.number(f.channel);
  io.choice(f.stream, Stream::result);
  io.within(f.bytes, 1, static_cast<std::int64_t>(kWindow));
}
template <class Io, Is<Signal> F>
void fields(Io& io, F& f) {
  io.number(f.channel);
  io.within(f.number, 1, kMostSignal);
}
template <class Io, class F>
requires(Is<F, Ping> || Is<F, Pong>) void fields(Io& io, F& f) {
  io.number(f.number);
}

// codec::wire cannot find overloads in an unnamed namespace by itself.
constexpr auto kFields = [](auto& io, auto& frame) { fields(io, frame); };

}  // namespace

std::string_view frame_name(const Frame& frame) {
  static constexpr std::array<std::string_view, std::variant_size_v<Frame>> kNames = {
      "hello", "start",  "started", "refused", "exit", "data",
      "eof",   "credit", "signal",  "ping",    "pong"};
  return kNames[frame.index()];
}

void put_frame(std::string& out, const Frame& frame) {
  codec::wire::put_frame(out, frame, kFields);
}

std::optional<Frame> parse_frame(std::string_view content) {
  return codec::wire::parse_frame<Frame>(content, kFields);
}

FrameReader::Step FrameReader::broken(std::string text) {
  broken_ = true;
  error_ = std::move(text);
  return Step::error;
}

FrameReader::Step FrameReader::find_greeting(std::string_view& chunk) {
  // The new bytes may complete a greeting begun in the old ones.
  const std::size_t from = chatter_.size() - std::min(chatter_.size(), kGreeting.size() - 1);
  const std::size_t had = chatter_.size();
  chatter_.append(chunk);
  const std::size_t at = chatter_.find(kGreeting, from);
  if (at == std::string::npos) {
    // A login shell that prints without end must not fill the memory.
    chunk = {};
    if (chatter_.size() > kMaxChatter)
      return broken(fmt::format("{} bytes came before a greeting: {}", chatter_.size(),
                                printable(chatter_, 100)));
    return Step::more;
  }
  greeted_ = true;
  chunk.remove_prefix(at + kGreeting.size() - had);
  chatter_.resize(at);
  return Step::frame;
}

FrameReader::Step FrameReader::next(std::string_view& chunk, Frame& frame) {
  if (broken_) return Step::error;
  if (!greeted_) {
    const Step step = find_greeting(chunk);
    if (step != Step::frame) return step;
  }
  using Cut = codec::wire::FrameCutter::Step;
  const Cut cut = cutter_.next(chunk, kMaxFrame);
  if (cut == Cut::more) return Step::more;
  if (cut == Cut::bad_length) return broken(fmt::format("a frame of {} bytes", cutter_.length()));
  auto parsed = parse_frame(cutter_.content());
  if (!parsed) return broken(fmt::format("an invalid frame: {}", printable(cutter_.content(), 40)));
  frame = std::move(*parsed);
  return Step::frame;
}

}  // namespace lockstep::link
