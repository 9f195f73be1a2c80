// One description of each frame's fields serves both directions; see the header.
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

using codec::wire::Reader;
using codec::wire::Writer;
constexpr std::size_t kHeader = 4;  // u32: bytes that follow
constexpr std::int64_t kMostCode = 255;
constexpr std::int64_t kMostSignal = 64;

// F is the frame's type, const when it is written.
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
    if (f.version != kVersion) return io.skip();  // the rest may look different
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
  io.choice(f.stream, Stream::err);
  io.text(f.bytes, kMaxData);
}
template <class Io, Is<Eof> F>
void fields(Io& io, F& f) {
  io.number(f.channel);
  io.choice(f.stream, Stream::err);
}
template <class Io, Is<Credit> F>
void fields(Io& io, F& f) {
  io.number(f.channel);
  io.choice(f.stream, Stream::err);
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

template <std::size_t I = 0>
std::optional<Frame> parse_as(std::size_t type, Reader reader) {
  if constexpr (I < std::variant_size_v<Frame>) {
    if (type != I + 1) return parse_as<I + 1>(type, reader);
    std::variant_alternative_t<I, Frame> frame;
    fields(reader, frame);
    if (!reader.good()) return std::nullopt;
    return Frame(std::move(frame));
  } else {
    return std::nullopt;
  }
}

}  // namespace

std::string_view frame_name(const Frame& frame) {
  static constexpr std::array<std::string_view, std::variant_size_v<Frame>> kNames = {
      "hello", "start",  "started", "refused", "exit", "data",
      "eof",   "credit", "signal",  "ping",    "pong"};
  return kNames[frame.index()];
}

void put_frame(std::string& out, const Frame& frame) {
  const std::size_t start = out.size();
  out.append(kHeader, '\0');
  out.push_back(static_cast<char>(frame.index() + 1));
  Writer writer(out);
  std::visit([&](const auto& content) { fields(writer, content); }, frame);
  std::string header;
  Writer(header).number(static_cast<std::uint32_t>(out.size() - start - kHeader));
  out.replace(start, kHeader, header);
}

std::optional<Frame> parse_frame(std::string_view content) {
  if (content.empty()) return std::nullopt;
  const auto type = static_cast<std::uint8_t>(content.front());
  return parse_as(type, Reader(content.substr(1)));
}

FrameReader::Step FrameReader::broken(std::string text) {
  broken_ = true;
  error_ = std::move(text);
  pending_ = {};
  return Step::error;
}

FrameReader::Step FrameReader::find_greeting(std::string_view& chunk) {
  // Where the new bytes may complete a greeting that began in the old ones.
  const std::size_t from = chatter_.size() - std::min(chatter_.size(), kGreeting.size() - 1);
  const std::size_t had = chatter_.size();
  chatter_.append(chunk);
  const std::size_t at = chatter_.find(kGreeting, from);
  if (at == std::string::npos) {
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
  const auto want = [&](std::size_t size) {
    const std::size_t taken = std::min(size - std::min(size, pending_.size()), chunk.size());
    pending_.append(chunk.substr(0, taken));
    chunk.remove_prefix(taken);
    return pending_.size() >= size;
  };
  if (!want(kHeader)) return Step::more;
  std::uint32_t size = 0;
  Reader(std::string_view(pending_).substr(0, kHeader)).number(size);
  if (size == 0 || size > kMaxFrame) return broken(fmt::format("a frame of {} bytes", size));
  if (!want(kHeader + size)) return Step::more;
  auto parsed = parse_frame(std::string_view(pending_).substr(kHeader));
  if (!parsed)
    return broken(fmt::format("a frame that makes no sense: {}",
                              printable(std::string_view(pending_).substr(kHeader), 40)));
  frame = std::move(*parsed);
  pending_.clear();
  return Step::frame;
}

}  // namespace lockstep::link
