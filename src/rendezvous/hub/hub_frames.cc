// One description of each frame's fields serves both directions; see the header.
#include "rendezvous/hub/hub_frames.h"

#include "base/text.h"
#include "codec/wire.h"

#include <fmt/core.h>

#include <algorithm>
#include <concepts>
#include <type_traits>
#include <utility>

namespace lockstep::rendezvous::hub {

bool Placed::operator==(const Placed& other) const {
  return frame_bytes(*this) == frame_bytes(other);
}

namespace {

using codec::wire::Reader;
using codec::wire::Writer;
constexpr std::size_t kHeader = 4;  // u32: bytes that follow

// F is the frame's type, const when it is written.
template <class F, class T>
concept Is = std::same_as<std::remove_const_t<F>, T>;
constexpr std::int64_t kMost32 = INT32_MAX;
constexpr std::int64_t kMost64 = INT64_MAX / 2;

template <class Io, Is<Hello> F>
void fields(Io& io, F& f) {
  io.number(f.version);
  if constexpr (Io::kReads) {
    if (f.version != kVersion) return io.skip();  // the rest may look different
  }
  io.flag(f.has_token);
  io.block(f.nonce);
  io.block(f.agent);
  io.line(f.run_id, kMaxRunId);
  io.line(f.name, kMaxName);
}
template <class Io, Is<Challenge> F>
void fields(Io& io, F& f) {
  io.block(f.nonce);
}
template <class Io, Is<Proof> F>
void fields(Io& io, F& f) {
  io.block(f.mac);
}
template <class Io, Is<Welcome> F>
void fields(Io& io, F& f) {
  io.block(f.mac);
  io.within(f.heartbeat_ms, 1, kMost32);
  io.within(f.dead_ms, 1, kMost32);
}
template <class Io, Is<Refusal> F>
void fields(Io& io, F& f) {
  io.choice(f.why, Why::malformed);
  io.line(f.text, kMaxLine);
  io.line(f.hint, kMaxLine);
}
template <class Io, Is<Join> F>
void fields(Io& io, F& f) {
  io.line(f.role, kMaxName);
  io.within(f.local_world_size, 0, kMaxWorkers);
  io.line(f.host, kMaxName);
  io.line(f.address, kMaxName);
  io.within(f.node_rank, -1, kMost32);
  io.within(f.max_restarts, 0, kMost32);
  io.within(f.min_nodes, 1, kMost32);
  io.within(f.max_nodes, 1, kMost32);
  io.number(f.join_timeout_ms);
  io.within(f.last_round, -1, kMost64 / 2);  // numbers of later rounds are counted up from it
  io.within(f.last_rank, -1, kMost32);
  io.within(f.last_nodes, 0, kMost32);
  io.within(f.restarts, 0, kMost32);
  io.choice(f.holds, Join::Holds::finished);
  io.line(f.launched.name, kMaxName);
  io.within(f.launched.arguments, 0, kMost32);
  io.flag(f.launched.any);
  io.line(f.launched.version, kMaxName);
  io.flag(f.replacement);
}
template <class Io, Is<StoreWanted> F>
void fields(Io& io, F& f) {
  io.within(f.round, 0, kMost64);
}
template <class Io, Is<StoreOffer> F>
void fields(Io& io, F& f) {
  io.within(f.round, 0, kMost64);
  io.line(f.addr, kMaxName);
  io.within(f.port, 0, 65535);
  io.line(f.error, kMaxLine);
}
template <class Io, Is<Placed> F>
void fields(Io& io, F& f) {
  auto& round = f.round;
  io.within(round.number, 0, kMost64);
  io.within(round.restarts, 0, kMost32);
  io.within(round.group_rank, 0, kMost32);
  io.within(round.group_world_size, 1, kMost32);
  io.within(round.base_rank, 0, kMost32);
  io.within(round.world_size, 0, kMost32);
  io.within(round.role_base_rank, 0, kMost32);
  io.within(round.role_world_size, 0, kMost32);
  io.line(round.master_addr, kMaxName);
  io.within(round.master_port, 0, 65535);
  io.flag(round.use_agent_store);
  io.within(round.max_restarts, 0, kMost32);
  io.list(round.notes, kMostNotes, [](auto& each, auto& note) { each.line(note, kMaxLine); });
}
template <class Io, Is<Failed> F>
void fields(Io& io, F& f) {
  io.within(f.round, 0, kMost64);
  io.flag(f.final);
  io.line(f.line, kMaxLine);
}
template <class Io, Is<Interrupted> F>
void fields(Io& io, F& f) {
  io.within(f.round, 0, kMost64);
  io.flag(f.end);
  io.line(f.why, kMaxLine);
}
template <class Io, class F>
requires(Is<F, Finish> || Is<F, Finished>) void fields(Io& io, F& f) {
  io.within(f.round, 0, kMost64);
}
template <class Io, Is<Report> F>
void fields(Io& io, F& f) {
  io.line(f.host, kMaxName);
  io.within(f.group_rank, 0, kMost32);
  io.text(f.text, kMaxReport);
}
template <class Io, Is<TellReport> F>
void fields(Io& io, F& f) {
  io.number(f.timeout_ms);
  fields(io, f.report);
}
template <class Io, Is<Reports> F>
void fields(Io& io, F& f) {
  io.list(f.reports, kMaxNodes, [](auto& each, auto& report) { fields(each, report); });
}
template <class Io, Is<Leave> F>
void fields(Io& io, F& f) {
  io.choice(f.how, Leave::How::returns);
}
template <class Io, Is<Beat> F>
void fields(Io& io, F& f) {
  io.line(f.status, kMaxLine);
}
template <class Io, class F>
requires(Is<F, Ended> || Is<F, Left>) void fields(Io& /*io*/, F& /*f*/) {}

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

std::string run_id_on_the_wire(const std::string& run_id) {
  Hello hello;
  hello.run_id = run_id;
  const auto read = parse_frame(std::string_view(frame_bytes(hello)).substr(4));
  return std::get<Hello>(*read).run_id;
}

NodeFacts facts_of(const Join& join) {
  return {.called = join.host,
          .role = join.role,
          .launched = join.launched,
          .local_world_size = join.local_world_size,
          .max_restarts = join.max_restarts};
}

std::string_view frame_name(const Frame& frame) {
  static constexpr std::array<std::string_view, std::variant_size_v<Frame>> kNames = {
      "hello",  "challenge", "proof", "welcome", "refusal",     "join",   "store wanted",
      "store",  "placed",    "ended", "failed",  "interrupted", "finish", "finished",
      "report", "reports",   "leave", "left",    "beat"};
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

std::string frame_bytes(const Frame& frame) {
  std::string out;
  put_frame(out, frame);
  return out;
}

std::optional<Frame> parse_frame(std::string_view content) {
  if (content.empty()) return std::nullopt;
  const auto type = static_cast<std::uint8_t>(content.front());
  return parse_as(type, Reader(content.substr(1)));
}

// --- the stream ---

FrameReader::Step FrameReader::broken(std::string text) {
  broken_ = true;
  error_ = std::move(text);
  pending_ = {};
  return Step::error;
}

FrameReader::Step FrameReader::read_preamble(std::string_view& chunk) {
  const std::size_t taken = std::min(kPreamble.size() - pending_.size(), chunk.size());
  pending_.append(chunk.substr(0, taken));
  chunk.remove_prefix(taken);
  if (!kPreamble.starts_with(pending_)) {
    stranger_ = pending_;
    return broken("it does not speak the lockstep rendezvous protocol: " + printable(stranger_));
  }
  if (pending_.size() < kPreamble.size()) return Step::more;
  greeted_ = true;
  pending_.clear();
  return Step::frame;
}

FrameReader::Step FrameReader::next(std::string_view& chunk, Frame& frame) {
  if (broken_) return Step::error;
  if (!greeted_) {
    const Step step = read_preamble(chunk);
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
  if (size == 0 || size > limit_) return broken(fmt::format("a frame of {} bytes", size));
  if (!want(kHeader + size)) return Step::more;
  auto parsed = parse_frame(std::string_view(pending_).substr(kHeader));
  if (!parsed)
    return broken(fmt::format("a frame that makes no sense: {}",
                              printable(std::string_view(pending_).substr(kHeader), 40)));
  frame = std::move(*parsed);
  pending_.clear();
  return Step::frame;
}

}  // namespace lockstep::rendezvous::hub
