// One description of each frame's fields serves both reading and writing.
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

// F is the frame's type; const when writing.
template <class F, class T>
concept Is = std::same_as<std::remove_const_t<F>, T>;
constexpr std::int64_t kMost32 = INT32_MAX;
// Half, so that adding to a number of another node cannot overflow.
constexpr std::int64_t kMost64 = INT64_MAX / 2;

template <class Io, Is<Hello> F>
void fields(Io& io, F& f) {
  io.number(f.version);
  if constexpr (Io::kReads) {
    // The rest of another version's hello may have another layout.
    if (f.version != kVersion) return io.skip();
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
  // Leaves room to count later rounds up from this number.
  io.within(f.last_round, -1, kMost64 / 2);
  io.within(f.last_rank, -1, kMost32);
  io.within(f.last_nodes, 0, kMost32);
  io.within(f.restarts, 0, kMost32);
  io.choice(f.holds, Join::Holds::finished);
  io.line(f.launched.name, kMaxName);
  io.within(f.launched.arguments, 0, kMost32);
  io.flag(f.launched.any);
  io.line(f.launched.version, kMaxName);
  io.flag(f.replacement);
  io.flag(f.gives_way);
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
template <class Io, Is<News> F>
void fields(Io& io, F& f) {
  io.within(f.round, 0, kMost64);
  io.within(f.from, 0, kMost32);
  io.text(f.text, kMaxNews);
}
template <class Io, Is<Voters> F>
void fields(Io& io, F& f) {
  io.block(f.first);
  io.list(f.all, kMaxVoters, [](auto& each, auto& voter) {
    each.block(voter.agent);
    each.number(voter.place);
  });
}
template <class Io, Is<codec::RdzvEndpoint> F>
void fields(Io& io, F& f) {
  io.line(f.host, kMaxName);
  io.within(f.port, 0, 65535);
}
template <class Io, Is<Charter> F>
void fields(Io& io, F& f) {
  io.within(f.term, 0, kMost64);
  io.within(f.version, 0, kMost64);
  fields(io, f.now);
  fields(io, f.before);
  io.within(f.round, -1, kMost64 / 2);
  io.within(f.restarts, 0, kMost32);
  io.within(f.lead, -1, kMost32);
  io.list(f.finished, kMaxNodes, [](auto& each, auto& rank) { each.within(rank, 0, kMost32); });
  io.choice(f.end, Charter::End::failed);
  io.line(f.why, kMaxLine);
  io.list(f.hosts, kMaxHosts, [](auto& each, auto& host) { fields(each, host); });
}
template <class Io, Is<Call> F>
void fields(Io& io, F& f) {
  io.within(f.term, 0, kMost64);
}
template <class Io, Is<Testimony> F>
void fields(Io& io, F& f) {
  io.within(f.promised, 0, kMost64);
  io.number(f.place);
  fields(io, f.charter);
  fields(io, f.hub);
}
template <class Io, Is<Agreed> F>
void fields(Io& io, F& f) {
  io.within(f.term, 0, kMost64);
  io.within(f.version, 0, kMost64);
}
template <class Io, Is<Moved> F>
void fields(Io& io, F& f) {
  fields(io, f.place);
  io.flag(f.forget);
}
template <class Io, class F>
requires(Is<F, Ended> || Is<F, Left>) void fields(Io& /*io*/, F& /*f*/) {}

// Wraps fields() for codec::wire, which cannot find overloads local to this file.
constexpr auto kFields = [](auto& io, auto& frame) { fields(io, frame); };

}  // namespace

std::string run_id_on_the_wire(const std::string& run_id) {
  // Encode and decode, so that the cutting and cleaning of the wire format applies.
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
      "hello",   "challenge", "proof", "welcome", "refusal",     "join",   "store wanted",
      "store",   "placed",    "ended", "failed",  "interrupted", "finish", "finished",
      "report",  "reports",   "leave", "left",    "beat",        "call",   "testimony",
      "charter", "agreed",    "news",  "moved"};
  return kNames[frame.index()];
}

void put_frame(std::string& out, const Frame& frame) {
  codec::wire::put_frame(out, frame, kFields);
}

std::string frame_bytes(const Frame& frame) {
  std::string out;
  put_frame(out, frame);
  return out;
}

std::optional<Frame> parse_frame(std::string_view content) {
  return codec::wire::parse_frame<Frame>(content, kFields);
}

// --- the stream ---

FrameReader::Step FrameReader::broken(std::string text) {
  broken_ = true;
  error_ = std::move(text);
  return Step::error;
}

FrameReader::Step FrameReader::read_preamble(std::string_view& chunk) {
  const std::size_t taken = std::min(kPreamble.size() - preamble_.size(), chunk.size());
  preamble_.append(chunk.substr(0, taken));
  chunk.remove_prefix(taken);
  if (!kPreamble.starts_with(preamble_)) {
    stranger_ = preamble_;
    return broken("not the lockstep rendezvous protocol: " + printable(stranger_));
  }
  if (preamble_.size() < kPreamble.size()) return Step::more;
  greeted_ = true;
  return Step::frame;
}

FrameReader::Step FrameReader::next(std::string_view& chunk, Frame& frame) {
  if (broken_) return Step::error;
  if (!greeted_) {
    const Step step = read_preamble(chunk);
    if (step != Step::frame) return step;
  }
  using Cut = codec::wire::FrameCutter::Step;
  const Cut cut = cutter_.next(chunk, limit_);
  if (cut == Cut::more) return Step::more;
  if (cut == Cut::bad_length) return broken(fmt::format("a frame of {} bytes", cutter_.length()));
  auto parsed = parse_frame(cutter_.content());
  if (!parsed)
    return broken(fmt::format("a malformed frame: {}", printable(cutter_.content(), 40)));
  frame = std::move(*parsed);
  return Step::frame;
}

}  // namespace lockstep::rendezvous::hub
