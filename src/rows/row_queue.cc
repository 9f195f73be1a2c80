#include "rows/row_queue.h"

#include <chrono>
#include <string_view>

namespace lockstep::rows {
namespace {

// A host that has not come to the queue within this time after its opening never will.
constexpr std::chrono::seconds kComing{60};
constexpr std::chrono::milliseconds kLook{100};
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
  if (queue->alone()) return queue;
  if (queue->place_.node == 0) {
    store::ServerOptions options;
    options.host = queue->place_.host;
    options.port = queue->place_.port;
    LOCKSTEP_TRY_ASSIGN(queue->server_, store::Server::listen(loop, options));
  }
  queue->connect(queue->place_.host);
  return queue;
}

std::string RowQueue::key(const char* name) const {
  return "lockstep/rows/" + place_.secret + "/" + name;
}

void RowQueue::connect(const std::string& host) {
  client_ = std::make_unique<store::AsyncClient>(
      loop_,
      store::AsyncClientOptions{
          .host = host, .port = place_.port, .connect_timeout = kComing, .timeout = kAnswer});
  client_->on_loss([this](const Error& why) { lose(why); });
  client_->connect([this](const Result<void>& connected) {
    if (!connected) lose(connected.error());
  });
}

void RowQueue::ask(std::size_t slot) {
  if (!alone() && !lost_) {
    client_->add(key("next"), 1, [this, slot](const Result<std::int64_t>& number) {
      if (!number) return lose(number.error()), give(slot, rows_.size());
      give(slot, *number < 1 ? rows_.size() : static_cast<std::size_t>(*number - 1));
    });
    return;
  }
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
  if (std::exchange(lost_, true)) return;
  events_.on_lost(why);
}

void RowQueue::note_end() {
  ++ended_;
  if (!alone() && !lost_) client_->add(key("ended"), 1, [](const Result<std::int64_t>&) {});
}

void RowQueue::leave(std::function<void(std::optional<std::size_t>)> done) {
  done_ = std::move(done);
  if (alone()) return done_(ended_);
  if (lost_) return done_(std::nullopt);
  if (server_) return await_guests();
  // The answer proves that node 0 has heard of all ends.
  client_->ping([this](const Result<void>&) { done_(std::nullopt); });
}

// A strange program that connects may end the wait too early. Then rows are missing in the count.
void RowQueue::await_guests() {
  const store::Stats now = server_->stats();
  const bool all_came = now.connections_total >= static_cast<std::uint64_t>(place_.nodes) ||
                        io::Clock::now() - opened_ > kComing;
  // The last connection is this node's own.
  if (all_came && now.connections <= 1) return count();
  server_->await_departures();
  guests_.start(kLook, [this] { await_guests(); });
}

void RowQueue::count() {
  client_->add(key("ended"), 0, [this](const Result<std::int64_t>& ended) {
    if (!ended || *ended < 0) return done_(std::nullopt);
    done_(static_cast<std::size_t>(*ended));
  });
}

}  // namespace lockstep::rows
