// EtcdV2Store. Short requests run one after another, so that they take effect in order. Each wait
// has its own long poll.
#include "base/callback_scope.h"
#include "base/text.h"
#include "codec/base64.h"
#include "rendezvous/etcd/etcd_v2.h"

#include <fmt/core.h>

#include <algorithm>
#include <random>
#include <utility>

namespace lockstep::rendezvous::etcd {
namespace {

using std::chrono::milliseconds;
using Reply = std::function<void(Result<V2Reply>)>;

// A cluster member that was cut off would never end a long poll.
constexpr milliseconds kPoll(10'000);
constexpr milliseconds kRetry(500);
constexpr milliseconds kSoon(10);

Result<std::string> decoded(const V2Reply& reply) {
  auto value = codec::base64_decode(reply.value);
  if (!value) return tl::make_unexpected(std::move(value).error().within("a value in etcd"));
  return value;
}

// Spreads the retries of two nodes that write at the same time.
milliseconds short_while() {
  static std::minstd_rand random{std::random_device{}()};
  return milliseconds(1 + random() % 20);
}

}  // namespace

struct EtcdV2Store::Core {
  Core(EtcdTransport& transport, std::string before)
      : etcd(transport), prefix(std::move(before)), calls(transport) {
    if (!prefix.ends_with('/')) prefix += '/';
  }

  // Base64 keeps any key a single path segment, as PyTorch's EtcdStore has it.
  std::string path(std::string_view key) const { return prefix + codec::base64_encode(key); }

  std::uint64_t ask(EtcdTransport::Request request, Reply done) {
    return calls.ask(std::move(request), [done = std::move(done)](Result<http::Answer> got) {
      done(got ? parse_v2_reply(*got) : tl::make_unexpected(std::move(got).error()));
    });
  }

  std::uint64_t get(const std::string& path_of, milliseconds timeout, Reply done) {
    EtcdTransport::Request request;
    // Without quorum a member that lags behind answers with old data.
    request.call = v2_get(path_of, "quorum=true");
    request.repeatable = true;
    request.timeout = timeout;
    return ask(std::move(request), std::move(done));
  }
  void put(const std::string& path_of, const V2Form& form, bool repeatable, Reply done) {
    EtcdTransport::Request request;
    request.call = v2_put(path_of, form);
    request.repeatable = repeatable;
    ask(std::move(request), std::move(done));
  }

  // Queues a short request. `job` starts when all earlier requests are done, and calls next() at
  // its end.
  void in_turn(std::function<void()> job) {
    jobs.push_back(std::move(job));
    if (jobs.size() == 1) run_first();
  }
  void next() {
    jobs.pop_front();
    if (!jobs.empty()) run_first();
  }
  void run_first() {
    const auto job = jobs.front();
    job();
  }

  void add(const std::string& path_of, std::int64_t delta, Done<std::int64_t> done);
  void add_to(const std::string& path_of, std::int64_t delta, const Done<std::int64_t>& done);

  EtcdTransport& etcd;
  std::string prefix;
  EtcdCalls calls;
  std::deque<std::function<void()>> jobs;  // the first one is running
  std::unique_ptr<io::Timer> pause;
  struct Waiting;
  std::map<std::uint64_t, std::unique_ptr<Waiting>> waits;
  std::uint64_t next_wait = 0;
  CallbackScope scope;
};

// A wait until all keys of a list exist. Looks for one key after the other.
struct EtcdV2Store::Core::Waiting {
  Waiting(Core& owner, std::uint64_t own, Keys wanted, std::optional<milliseconds> time,
          Done<Keys> then)
      : core(owner),
        id(own),
        keys(std::move(wanted)),
        timeout(time),
        until(time ? io::Clock::now() + *time : io::TimePoint::max()),
        done(std::move(then)),
        end(owner.etcd.loop()),
        retry(owner.etcd.loop()) {
    // One timer for the whole wait, however many requests the wait needs.
    if (time) end.start(*time, [this] { too_late(); });
    retry.start({}, [this] { look(); });
  }
  ~Waiting() {
    if (call != 0) core.calls.forget(call);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  milliseconds left(milliseconds most) const {
    if (!timeout) return most;
    const auto rest = std::chrono::ceil<milliseconds>(until - io::Clock::now());
    return std::clamp(rest, milliseconds(1), most);
  }

  void look() {
    if (values.size() == keys.size()) return finish(std::move(values));
    call = core.get(core.path(keys[values.size()]), left(kPoll), [this](Result<V2Reply> got) {
      call = 0;
      if (!got) return trouble(std::move(got).error());
      // Nothing between the read and the poll is missed: the poll starts at the read's index.
      if (got->error == kV2NoKey) return poll(got->index + 1);
      take(*got);
    });
  }

  void poll(std::uint64_t index) {
    EtcdTransport::Request request;
    request.call =
        v2_get(core.path(keys[values.size()]), fmt::format("wait=true&waitIndex={}", index));
    request.timeout = request.attempt = left(kPoll);
    call = core.ask(std::move(request), [this](Result<V2Reply> got) {
      call = 0;
      // The poll has timed out, was ended by the server, or its index is too old. A server that
      // answers at once must not be polled in a busy loop.
      if (!got || got->error != 0 || got->gone) return look_later(kSoon);
      take(*got);
    });
  }

  void take(const V2Reply& reply) {
    auto value = decoded(reply);
    if (!value) return finish(tl::make_unexpected(std::move(value).error()));
    values.push_back(std::move(*value));
    look();
  }

  void look_later(milliseconds delay) {
    retry.start(delay, [this] { look(); });
  }

  void trouble(Error error) {
    const bool passing = error.code == Errc::unavailable || error.code == Errc::timeout;
    // A watch has no timeout and must outlast any trouble.
    if (!passing && timeout) return finish(tl::make_unexpected(std::move(error)));
    last_error = std::move(error);
    look_later(kRetry);
  }

  void too_late() {
    const std::vector<std::string> missing(
        keys.begin() + static_cast<std::ptrdiff_t>(values.size()), keys.end());
    std::string text = fmt::format("wait timeout after {}ms, keys: {}", timeout->count(),
                                   printable(join(missing, ", ")));
    if (last_error) text += "; " + last_error->message;
    finish(fail(Errc::timeout, std::move(text)));
  }

  void finish(Result<Keys> result) {
    if (call != 0) core.calls.forget(std::exchange(call, 0));
    // Extract first: `done` may start another wait or destroy the store.
    const auto own = core.waits.extract(id);
    done(std::move(result));
  }

  Core& core;
  std::uint64_t id;
  Keys keys;
  Keys values;
  std::optional<milliseconds> timeout;
  io::TimePoint until;
  Done<Keys> done;
  io::Timer end;
  io::Timer retry;
  std::uint64_t call = 0;
  std::optional<Error> last_error;
};

EtcdV2Store::EtcdV2Store(EtcdTransport& etcd, std::string prefix)
    : core_(std::make_unique<Core>(etcd, std::move(prefix))) {}

EtcdV2Store::~EtcdV2Store() = default;

void EtcdV2Store::set(std::string_view key, std::string_view value, Done<void> done) {
  multi_set({{std::string(key), std::string(value)}}, std::move(done));
}

void EtcdV2Store::multi_set(const Entries& entries, Done<void> done) {
  auto failed = std::make_shared<Status>();
  // v2 has no transactions: the entries are separate requests, in order.
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& [key, value] = entries[i];
    const bool last = i + 1 == entries.size();
    core_->in_turn([core = core_.get(), path = core_->path(key),
                    value = codec::base64_encode(value), failed, last, done] {
      // A set is repeatable: twice the same value does no harm.
      core->put(path, {{"value", value}}, true, [core, failed, last, done](Result<V2Reply> got) {
        if (!got) *failed = tl::make_unexpected(std::move(got).error());
        core->next();
        if (last && done) done(std::move(*failed));
      });
    });
  }
  if (entries.empty() && done)
    core_->in_turn([core = core_.get(), done] {
      core->pause = std::make_unique<io::Timer>(core->etcd.loop());
      core->pause->start({}, [core, done] {
        core->next();
        done({});
      });
    });
}

void EtcdV2Store::add(std::string_view key, std::int64_t delta, Done<std::int64_t> done) {
  core_->in_turn([core = core_.get(), path = core_->path(key), delta, done = std::move(done)] {
    core->add(path, delta, [core, done](Result<std::int64_t> sum) {
      core->next();
      if (done) done(std::move(sum));
    });
  });
}

// Adds to the key, or creates the key. v2 has no atomic addition: compare-and-swap and retry, as
// torchrun does.
void EtcdV2Store::Core::add(const std::string& path_of, std::int64_t delta,
                            Done<std::int64_t> done) {
  const V2Form form{{"value", codec::base64_encode(std::to_string(delta))}, {"prevExist", "false"}};
  // Not repeatable: if a lost first attempt has created the key, the second would add once more.
  put(path_of, form, false, [this, path_of, delta, done = std::move(done)](Result<V2Reply> got) {
    if (!got) return done(tl::make_unexpected(std::move(got).error()));
    if (got->error == 0) return done(delta);
    add_to(path_of, delta, done);
  });
}

void EtcdV2Store::Core::add_to(const std::string& path_of, std::int64_t delta,
                               const Done<std::int64_t>& done) {
  get(path_of, milliseconds(0), [this, path_of, delta, done](Result<V2Reply> got) {
    if (!got) return done(tl::make_unexpected(std::move(got).error()));
    if (got->error != 0) return add(path_of, delta, done);  // the key has expired in between
    const auto text = decoded(*got);
    if (!text) return done(tl::make_unexpected(text.error()));
    const auto before = parse_int(*text);
    std::int64_t sum = 0;
    if (!before || __builtin_add_overflow(*before, delta, &sum))
      return done(fail(Errc::corrupt, "no number to add to: '" + printable(*text, 40) + "'"));
    const V2Form form{{"value", codec::base64_encode(std::to_string(sum))},
                      {"prevIndex", std::to_string(got->modified)}};
    put(path_of, form, false, [this, path_of, delta, sum, done](Result<V2Reply> put_reply) {
      if (!put_reply) return done(tl::make_unexpected(std::move(put_reply).error()));
      if (put_reply->error == 0) return done(sum);
      // Two nodes have added at the same time.
      pause = std::make_unique<io::Timer>(etcd.loop());
      pause->start(short_while(), [this, path_of, delta, done] { add_to(path_of, delta, done); });
    });
  });
}

void EtcdV2Store::put_if_absent(std::string_view key, std::string_view value,
                                Done<std::string> done) {
  core_->in_turn([core = core_.get(), path = core_->path(key), value = std::string(value),
                  done = std::move(done)] {
    const auto finish = [core, done](Result<std::string> there) {
      core->next();
      if (done) done(std::move(there));
    };
    const V2Form form{{"value", codec::base64_encode(value)}, {"prevExist", "false"}};
    // Repeatable: the key's value is the answer in any case.
    core->put(path, form, true, [core, path, value, finish](Result<V2Reply> got) {
      if (!got) return finish(tl::make_unexpected(std::move(got).error()));
      if (got->error == 0) return finish(value);
      core->get(path, milliseconds(0), [finish](Result<V2Reply> there) {
        if (!there) return finish(tl::make_unexpected(std::move(there).error()));
        finish(decoded(*there));
      });
    });
  });
}

void EtcdV2Store::probe(std::string_view key, Done<std::optional<std::string>> done) {
  core_->in_turn([core = core_.get(), path = core_->path(key), done = std::move(done)] {
    core->get(path, milliseconds(0), [core, done](Result<V2Reply> got) {
      core->next();
      if (!got) return done(tl::make_unexpected(std::move(got).error()));
      if (got->error != 0) return done(std::optional<std::string>());
      auto value = decoded(*got);
      if (!value) return done(tl::make_unexpected(std::move(value).error()));
      done(std::optional<std::string>(std::move(*value)));
    });
  });
}

void EtcdV2Store::multi_get(const Keys& keys, Ms timeout, Done<Keys> done) {
  const std::uint64_t id = core_->next_wait++;
  core_->waits.emplace(id,
                       std::make_unique<Core::Waiting>(*core_, id, keys, timeout, std::move(done)));
}

void EtcdV2Store::wait(const Keys& keys, Ms timeout, Done<void> done) {
  multi_get(keys, timeout, [done = std::move(done)](Result<Keys> got) {
    if (!done) return;
    if (!got) return done(tl::make_unexpected(std::move(got).error()));
    done({});
  });
}

namespace {

class RealWatch : public KeyValue::Watch {
 public:
  RealWatch(EtcdV2Store::Core& core, std::uint64_t id)
      : core_(core), id_(id), store_(core.scope.witness()) {}
  ~RealWatch() override {
    if (!store_.gone()) core_.waits.erase(id_);
  }

 private:
  EtcdV2Store::Core& core_;
  std::uint64_t id_;
  CallbackScope::Witness store_;
};

}  // namespace

std::unique_ptr<KeyValue::Watch> EtcdV2Store::watch(std::string_view key,
                                                    std::function<void(std::string)> done) {
  const std::uint64_t id = core_->next_wait++;
  auto then = [done = std::move(done)](Result<Keys> got) {
    if (got) done(std::move(got->front()));
  };
  core_->waits.emplace(id, std::make_unique<Core::Waiting>(*core_, id, Keys{std::string(key)},
                                                           std::nullopt, std::move(then)));
  return std::make_unique<RealWatch>(*core_, id);
}

void EtcdV2Store::forget_waits() {
  // Watches stay: only waits with a timeout count as waits here.
  std::erase_if(core_->waits, [](const auto& entry) { return entry.second->timeout.has_value(); });
}

}  // namespace lockstep::rendezvous::etcd
