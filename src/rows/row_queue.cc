#include "rows/row_queue.h"

#include "codec/sha256.h"

#include <chrono>
#include <string_view>

namespace lockstep::rows {
namespace {

constexpr std::chrono::milliseconds kLook{100};
constexpr std::size_t kMostMessage = 4096;  // the queue's requests are much shorter
constexpr std::chrono::seconds kAnswer{60};

}  // namespace

RowQueue::RowQueue(io::Loop& loop, std::vector<std::size_t> rows, QueuePlace place, Events events)
    : loop_(loop),
      rows_(std::move(rows)),
      place_(std::move(place)),
      events_(std::move(events)),
      opened_(io::Clock::now()),
      turn_(loop),
      guests_(loop) {}

Result<std::unique_ptr<RowQueue>> RowQueue::open(io::Loop& loop, std::vector<std::size_t> rows,
                                                 QueuePlace place, Events events) {
  std::unique_ptr<RowQueue> queue(
      new RowQueue(loop, std::move(rows), std::move(place), std::move(events)));
  // A single host counts rows in this process: without a server no connection can be lost.
  if (queue->alone()) return queue;
  if (queue->place_.node == 0) {
    store::ServerOptions options;
    options.host = queue->place_.host;
    options.port = queue->place_.port;
    options.limits.max_message_bytes = kMostMessage;
    // Anybody can connect. A stranger must neither fill this host's memory nor list the secret
    // keys.
    options.limits.only_add = true;
    LOCKSTEP_TRY_ASSIGN(queue->server_, store::Server::listen(loop, options));
    for (const char* counter : {"next", "ended", "done", "left"})
      queue->server_->set(queue->key(counter), "0");
  }
  queue->connect(queue->place_.times.coming);
  return queue;
}

std::string RowQueue::key(const char* name) const {
  // The store has no passwords. Only the job's hosts know the secret, and with it a key's name.
  return "lockstep/rows/" + codec::hex(codec::sha256(place_.secret)) + "/" + name;
}

void RowQueue::connect(std::chrono::milliseconds limit) {
  client_ = std::make_unique<store::AsyncClient>(
      loop_,
      store::AsyncClientOptions{
          .host = place_.host, .port = place_.port, .connect_timeout = limit, .timeout = kAnswer});
  client_->on_loss([this](const Error& why) { lose(why); });
  client_->connect([this](const Result<void>& connected) {
    if (!connected) lose(connected.error());
  });
}

void RowQueue::ask(std::size_t slot) {
  if (!alone() && !lost_) {
    // ADD is atomic: no row goes to two hosts. A host that dies loses only the rows that it began.
    client_->add(key("next"), 1, [this, slot](const Result<std::int64_t>& number) {
      if (!number) {
        lose(number.error());
        return give(slot, rows_.size());
      }
      give(slot, *number < 1 ? rows_.size() : static_cast<std::size_t>(*number - 1));
    });
    return;
  }
  // Answer from the loop, as a server would: a caller that asks in a loop must not nest.
  asked_.push_back(slot);
  turn_.start(std::chrono::milliseconds(0), [this] { answer_next(); });
}

void RowQueue::answer_next() {
  const std::size_t slot = asked_.front();
  asked_.pop_front();
  if (!asked_.empty()) turn_.start(std::chrono::milliseconds(0), [this] { answer_next(); });
  give(slot, lost_ ? rows_.size() : next_++);
}

void RowQueue::give(std::size_t slot, std::size_t number) {
  events_.on_row(slot, number < rows_.size() ? std::optional(rows_[number]) : std::nullopt);
}

void RowQueue::lose(const Error& why) {
  // Each pending question reports the same loss. The runner wants to hear of it once.
  if (!std::exchange(lost_, true)) events_.on_lost(why);
}

void RowQueue::note_end(bool done) {
  ++ended_;
  if (alone() || lost_) return;
  client_->add(key("ended"), 1, [](const Result<std::int64_t>&) {});
  // A host whose rows all fail reads this counter: is the host broken, or are the rows?
  if (done) client_->add(key("done"), 1, [](const Result<std::int64_t>&) {});
}

void RowQueue::ask_any_done(std::function<void(bool)> answer) {
  if (alone() || lost_) return answer(false);
  client_->add(key("done"), 0, [answer = std::move(answer)](const Result<std::int64_t>& done) {
    answer(done && *done > 0);
  });
}

void RowQueue::leave(std::function<void(std::optional<std::size_t>)> done) {
  done_ = std::move(done);
  if (alone()) return done_(ended_);
  if (lost_ && (server_ || !place_.stays)) return done_(std::nullopt);
  if (server_) return await_guests();
  // Node 0 may still be there.
  if (lost_) connect(place_.times.gone);
  say_left(1);
}

// The first answer proves that node 0 has heard of all ends. A host that stays then asks again
// until node 0 has ended its queue. A stranger that has taken the port does not know the key.
void RowQueue::say_left(int hosts) {
  client_->add(key("left"), hosts, [this](const Result<std::int64_t>& left) {
    if (!place_.stays || !left || *left < 1) return done_(std::nullopt);
    // Node 0 counts the connections to learn which hosts are lost: see await_guests().
    client_.reset();
    lost_ = true;  // the end of node 0 is nothing to report
    guests_.start(place_.times.look, [this] {
      connect(place_.times.gone);
      say_left(0);
    });
  });
}

// Programs without the secret may connect too, so connections decide only about hosts that are
// lost: these leave without a word.
void RowQueue::await_guests() {
  client_->add(key("left"), 0, [this](const Result<std::int64_t>& left) {
    if (!left) return done_(std::nullopt);
    const bool too_late = io::Clock::now() - opened_ > place_.times.coming;
    // The last connection is this node's own.
    const bool all_gone = too_late && server_->stats().connections <= 1;
    if (*left >= place_.nodes - 1 || all_gone) return count();
    // A host that vanished without a packet keeps its connection: do not wait for it for hours.
    server_->await_departures();
    guests_.start(kLook, [this] { await_guests(); });
  });
}

void RowQueue::count() {
  client_->add(key("ended"), 0, [this](const Result<std::int64_t>& ended) {
    if (!ended || *ended < 0) return done_(std::nullopt);
    done_(static_cast<std::size_t>(*ended));
  });
}

}  // namespace lockstep::rows
