// The watch as a stream of lines, and its recovery.
#include "rendezvous/etcd3/etcd3_client.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rendezvous::etcd3 {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kPatience(2000);  // for the head of a stream

}  // namespace

Etcd3Watch::Etcd3Watch(Etcd3Client& client, std::string key, std::string range_end,
                       std::int64_t from_revision, Handlers handlers)
    : client_(client),
      key_(std::move(key)),
      range_end_(std::move(range_end)),
      next_(from_revision),
      handlers_(std::move(handlers)),
      retry_(client.transport().loop()) {
  // For moved(), when the transport changes its endpoint.
  client_.watches_.insert(this);
  // In the next turn: the owner does not have this watch yet.
  retry_.start({}, [this] { open(); });
}

Etcd3Watch::~Etcd3Watch() {
  client_.watches_.erase(this);
}

void Etcd3Watch::open() {
  client_.with_token(calls_([this](const Status& ready) {
    if (!ready) return again(ready.error());
    // The rest of a line that the last break has cut must not be continued.
    line_.clear();
    status_ = 0;
    token_ = client_.token_;
    http::Call call = client_.make_call("/watch", etcd3_watch(key_, range_end_, next_));
    // A member that is cut off from the cluster then ends its watches instead of staying silent.
    call.fields.push_back({"Grpc-Metadata-hasleader", "true"});
    call.timeout = kPatience;
    endpoint_ = &client_.transport().endpoint();
    stream_ = endpoint_->stream(
        std::move(call),
        {[this](const http::ResponseHead& head) { status_ = head.status; },
         [this](std::string_view bytes) { on_bytes(bytes); },
         [this](Status why) {
           if (!why) return again(why.error());
           if (line_.empty())
             return again(Error{Errc::unavailable,
                                fmt::format("etcd at {}: the server has ended a watch",
                                            endpoint_->origin().text()),
                                {},
                                0});
           // A refusal may come without a newline.
           take(line_);
         }});
  }));
}

void Etcd3Watch::moved() {
  if (!stream_ || endpoint_ == &client_.transport().endpoint()) return;
  // A stream at the old endpoint may hang for ever.
  stream_.reset();
  retry_.start({}, [this] { open(); });
}

void Etcd3Watch::on_bytes(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t newline = bytes.find('\n');
    line_ += bytes.substr(0, newline);
    bytes.remove_prefix(std::min(newline, bytes.size() - 1) + 1);
    // A line without an end must not grow without bound.
    if (line_.size() > kEtcd3AnswerLimit)
      return again(Error{Errc::corrupt, "etcd: a watch's line is larger than 1 MiB", {}, 0});
    if (newline == std::string_view::npos) return;
    const std::string line = std::exchange(line_, {});
    if (!take(line)) return;
  }
}

bool Etcd3Watch::take(std::string_view line) {
  const std::string what = fmt::format("etcd at {}: /v3/watch", endpoint_->origin().text());
  auto reply = parse_etcd3_watch(line);
  if (!reply) {
    again(std::move(reply).error().within(what));
    return false;
  }
  const auto here = calls_.witness();
  if (!reply->events.empty()) {
    // After a break the watch goes on behind this event.
    for (const Etcd3Event& event : reply->events)
      next_ = std::max(next_, event.kv.mod_revision + 1);
    if (const auto call = handlers_.events) call(reply->events);
    if (here.gone()) return false;
  }
  if (!reply->canceled) {
    pauses_.reset();
    return true;
  }
  if (reply->compact_revision > 0) {
    // Older revisions are gone for good.
    next_ = std::max(next_, reply->compact_revision);
    stream_.reset();
    retry_.start(kFirstPause, [this] { open(); });
    if (const auto call = handlers_.gap) call(next_);
    return false;
  }
  // The token may be the reason, and a new one costs little.
  client_.token_refused(token_);
  again(Error{
      Errc::unavailable, fmt::format("{}: HTTP {}: {}", what, status_, reply->reason), {}, 0});
  return false;
}

void Etcd3Watch::again(const Error& error) {
  stream_.reset();
  const http::Client* endpoint = std::exchange(endpoint_, nullptr);
  retry_.start(pauses_.next(), [this] { open(); });
  // Calls should avoid the endpoint, too.
  if (endpoint != nullptr) client_.transport().leave(*endpoint);
  if (const auto call = handlers_.trouble) call(error);
}

}  // namespace lockstep::rendezvous::etcd3
