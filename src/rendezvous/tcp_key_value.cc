// Requests of KeyValue as requests of the TCPStore's clients.
#include "rendezvous/tcp_key_value.h"

#include <utility>

namespace lockstep::rendezvous {
namespace {

// Expected and desired value of a probe. A TCPStore answers a compare_set of a missing key with the
// expected value and stores nothing, so a probe needs no blocking GET.
constexpr std::string_view kProbe = "lockstep:probe";
constexpr std::chrono::hours kNoEnd{24 * 365};

std::string wire(std::string_view key) {
  return std::string("/").append(key);
}

KeyValue::Keys wire(const KeyValue::Keys& keys) {
  KeyValue::Keys out;
  out.reserve(keys.size());
  for (const std::string& key : keys)
    out.push_back(wire(std::string_view(key)));
  return out;
}

template <class T>
KeyValue::Done<T> or_nothing(KeyValue::Done<T> done) {
  if (done) return done;
  return [](const Result<T>&) {};
}

// A wait on a connection of its own, without a timeout.
class TcpWatch : public KeyValue::Watch {
 public:
  TcpWatch(io::Loop& loop, const store::AsyncClientOptions& options, const std::string& key,
           std::function<void(std::string)> done)
      : client_(loop, options), done_(std::move(done)) {
    // A watch waits without an end, so it needs a connection of its own.
    client_.connect(nullptr);
    client_.wait(
        {key},
        [this, key](const Result<void>& exists) {
          there_ = exists.has_value();
          if (there_) read(key);
        },
        kNoEnd);
  }
  bool there() const override { return there_; }

 private:
  void read(const std::string& key) {
    client_.compare_set(
        key, kProbe, kProbe,
        [this](Result<std::string> value) {
          if (value) std::exchange(done_, nullptr)(std::move(*value));
        },
        kNoEnd);
  }

  store::AsyncClient client_;
  bool there_ = false;
  std::function<void(std::string)> done_;
};

}  // namespace

TcpKeyValue::TcpKeyValue(io::Loop& loop, store::AsyncClientOptions options)
    : loop_(loop),
      options_(std::move(options)),
      quick_(loop, options_),
      waits_(std::make_unique<store::AsyncClient>(loop, options_)) {}

void TcpKeyValue::connect(Done<void> done) {
  connect_done_ = std::move(done);
  // Ready when both connections are. A blocking WAIT on one leaves the other free for requests.
  for (auto* client : {&quick_, waits_.get()}) {
    client->on_loss([this](const Error& error) { lost(error); });
    client->connect([this](const Result<void>& outcome) { connected(outcome); });
  }
}

void TcpKeyValue::connected(const Result<void>& outcome) {
  // The other connection has failed already.
  if (!connect_done_) return;
  if (outcome && ++connections_ < 2) return;
  // Later connections need less patience: the store exists.
  options_.connect_timeout = options_.timeout;
  std::exchange(connect_done_, nullptr)(outcome);
}

void TcpKeyValue::lost(const Error& error) {
  // Both connections report the loss.
  if (std::exchange(lost_, true)) return;
  if (const auto tell = on_lost_) tell(error);
}

void TcpKeyValue::set(std::string_view key, std::string_view value, Done<void> done) {
  quick_.set(wire(key), value, std::move(done));
}

void TcpKeyValue::multi_set(const Entries& entries, Done<void> done) {
  Entries out;
  out.reserve(entries.size());
  for (const auto& [key, value] : entries)
    out.emplace_back(wire(key), value);
  quick_.multi_set(out, std::move(done));
}

void TcpKeyValue::add(std::string_view key, std::int64_t delta, Done<std::int64_t> done) {
  quick_.add(wire(key), delta, or_nothing(std::move(done)));
}

void TcpKeyValue::put_if_absent(std::string_view key, std::string_view value,
                                Done<std::string> done) {
  // An empty expected value stands for a missing key.
  quick_.compare_set(wire(key), "", value, or_nothing(std::move(done)));
}

void TcpKeyValue::probe(std::string_view key, Done<std::optional<std::string>> done) {
  quick_.compare_set(wire(key), kProbe, kProbe,
                     [done = std::move(done)](Result<std::string> value) {
                       if (!value) return done(tl::make_unexpected(std::move(value).error()));
                       if (*value == kProbe) return done(std::nullopt);
                       done(std::move(*value));
                     });
}

void TcpKeyValue::multi_get(const Keys& keys, Ms timeout, Done<Keys> done) {
  waits_->multi_get(wire(keys), std::move(done), timeout);
}

void TcpKeyValue::wait(const Keys& keys, Ms timeout, Done<void> done) {
  waits_->wait(wire(keys), std::move(done), timeout);
}

// Opens a new connection for waits: on the old one the server owes answers, and later answers queue
// behind them.
void TcpKeyValue::forget_waits() {
  // Nothing to cancel, or nothing left to connect to.
  if (waits_->pending() == 0 || lost_) return;
  waits_ = std::make_unique<store::AsyncClient>(loop_, options_);
  waits_->on_loss([this](const Error& error) { lost(error); });
  waits_->connect([](const Result<void>&) {});
}

std::unique_ptr<KeyValue::Watch> TcpKeyValue::watch(std::string_view key,
                                                    std::function<void(std::string)> done) {
  return std::make_unique<TcpWatch>(loop_, options_, wire(key), std::move(done));
}

void TcpKeyValue::compare_set(std::string_view key, std::string_view expected,
                              std::string_view desired, Done<std::string> done) {
  quick_.compare_set(wire(key), expected, desired, std::move(done));
}

void TcpKeyValue::add_bare(std::string_view key, std::int64_t delta) {
  quick_.add(key, delta, [](const Result<std::int64_t>&) {});
}

}  // namespace lockstep::rendezvous
