// The shared state in etcd's v2 API.
#include "rendezvous/etcd/etcd_v2.h"

#include "rendezvous/dynamic/state_codec.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::rendezvous::etcd {
namespace {

constexpr std::string_view kPrefix = "/torch/elastic/rendezvous/";
constexpr std::string_view kTtl = "7200";  // seconds; torchrun's value

dynamic::StateStore::Stored stored(const V2Reply& reply, bool written) {
  if (reply.error == kV2NoKey) return {std::string(dynamic::kNoState), "", false};
  return {reply.value, std::to_string(reply.modified), written};
}

}  // namespace

EtcdV2State::EtcdV2State(EtcdTransport& etcd, const std::string& run_id)
    : key_(std::string(kPrefix) + run_id), calls_(etcd) {}

void EtcdV2State::ask(EtcdTransport::Request request, std::function<void(Result<V2Reply>)> done) {
  calls_.ask(std::move(request), [done = std::move(done)](Result<http::Answer> got) {
    done(got ? parse_v2_reply(*got) : tl::make_unexpected(std::move(got).error()));
  });
}

void EtcdV2State::read(Done<Stored> done) {
  EtcdTransport::Request request;
  request.call = v2_get(key_, "quorum=true");
  request.repeatable = true;
  ask(std::move(request), [done = std::move(done)](Result<V2Reply> got) {
    if (!got)
      return done(
          tl::make_unexpected(std::move(got).error().within("read the rendezvous state in etcd")));
    done(stored(*got, false));
  });
}

void EtcdV2State::write(const Stored& before, const std::string& text, Done<Stored> done) {
  EtcdTransport::Request request;
  V2Form form{{"value", text}, {"ttl", std::string(kTtl)}};
  // prevExist=false makes the first write fail if another node was first; prevIndex makes later
  // ones fail.
  if (before.token.empty()) {
    form.emplace_back("prevExist", "false");
  } else {
    form.emplace_back("prevIndex", before.token);
  }
  request.call = v2_put(key_, form);
  ask(std::move(request), [this, text, done = std::move(done)](Result<V2Reply> got) {
    if (got && got->error == 0) return done(stored(*got, true));
    // Refused, or the answer was lost: read to find out what happened.
    read([text, done](Result<Stored> there) {
      // An equal text is this node's write, or an equal one of another node, which is as good.
      if (there) there->written = there->text == text;
      done(std::move(there));
    });
  });
}

}  // namespace lockstep::rendezvous::etcd
