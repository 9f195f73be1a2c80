// Real sockets over the loopback: the queues of several hosts on one loop.
#include "rows/row_queue.h"

#include "io/listen.h"
#include "io/loop_testing.h"

#include <gtest/gtest.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

namespace lockstep::rows {
namespace {

class RowQueueTest : public ::testing::Test {
 protected:
  // A host of the job. The host takes rows one after another.
  struct Host {
    std::unique_ptr<RowQueue> queue;
    std::vector<std::size_t> rows;
    bool empty = false;
    bool lost = false;
    std::optional<std::size_t> ended;
    bool over = false;
  };

  void SetUp() override {
    auto listener = io::open_listener("127.0.0.1", 0, 1);
    ASSERT_TRUE(listener);
    port = listener->port;
    rows.resize(20);
    std::iota(rows.begin(), rows.end(), 100U);
  }

  std::unique_ptr<Host> host(int node, int nodes, const std::string& secret = "s",
                             bool stays = false) {
    auto made = std::make_unique<Host>();
    Host* host = made.get();
    auto queue = RowQueue::open(loop, rows,
                                {.host = "127.0.0.1",
                                 .port = port,
                                 .secret = secret,
                                 .node = node,
                                 .nodes = nodes,
                                 .stays = stays,
                                 .times = times},
                                {.on_row = [host](std::size_t, auto row) { take(*host, row); },
                                 .on_lost = [host](const Error&) { host->lost = true; }});
    EXPECT_TRUE(queue) << queue.error().message;
    made->queue = std::move(*queue);
    made->queue->ask(0);
    return made;
  }

  static void take(Host& host, std::optional<std::size_t> row) {
    if (!row) {
      host.empty = true;
      return;
    }
    host.rows.push_back(*row);
    host.queue->note_end(true);
    host.queue->ask(0);
  }
  static void leave(Host& host) {
    host.queue->leave([&host](auto ended) {
      host.ended = ended;
      host.over = true;
    });
  }

  // Returns the answers to a greeting, the request and a PING, until the server closes the
  // connection.
  std::string stranger_gets(const store::Request& request) {
    auto stranger = io::Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(stranger.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    std::string bytes = store::greeting(store::Dialect::d, 'g');
    EXPECT_TRUE(store::put_request(bytes, store::Dialect::d, request));
    EXPECT_TRUE(store::put_request(bytes, store::Dialect::d, {.number = 'p'}));
    EXPECT_EQ(write(stranger.get(), bytes.data(), bytes.size()), std::ssize(bytes));
    shutdown(stranger.get(), SHUT_WR);
    EXPECT_EQ(fcntl(stranger.get(), F_SETFL, O_NONBLOCK), 0);
    std::string answer;
    EXPECT_TRUE(io::run_until(loop, [&] {
      char room[512];
      const ssize_t got = read(stranger.get(), room, sizeof room);
      if (got > 0) answer.append(room, static_cast<std::size_t>(got));
      return got == 0 || (got < 0 && errno != EAGAIN);
    }));
    return answer;
  }

  io::Loop loop;
  int port = 0;
  std::vector<std::size_t> rows;
  QueueTimes times{.look = std::chrono::milliseconds(5), .gone = std::chrono::milliseconds(500)};
};

TEST_F(RowQueueTest, OneHostTakesAllRowsInOrder) {
  const auto alone = host(0, 1);
  ASSERT_TRUE(io::run_until(loop, [&] { return alone->empty; }));
  EXPECT_EQ(alone->rows, rows);
  leave(*alone);
  EXPECT_EQ(alone->ended, rows.size());
}

TEST_F(RowQueueTest, HostsTakeEachRowOnce) {
  std::vector<std::unique_ptr<Host>> hosts;
  hosts.reserve(3);
  for (int node = 0; node < 3; ++node)
    hosts.push_back(host(node, 3));
  ASSERT_TRUE(io::run_until(loop, [&] {
    return std::all_of(hosts.begin(), hosts.end(), [](const auto& each) { return each->empty; });
  }));
  std::vector<std::size_t> all;
  for (const auto& each : hosts)
    all.insert(all.end(), each->rows.begin(), each->rows.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, rows);
  // Node 0 waits for the others, and knows then how many rows have ended.
  leave(*hosts[0]);
  for (int node = 1; node < 3; ++node) {
    Host& guest = *hosts[static_cast<std::size_t>(node)];
    leave(guest);
    ASSERT_TRUE(io::run_until(loop, [&] { return guest.over; }));
    EXPECT_FALSE(hosts[0]->over);
    guest.queue.reset();
  }
  ASSERT_TRUE(io::run_until(loop, [&] { return hosts[0]->over; }));
  EXPECT_EQ(hosts[0]->ended, rows.size());
}

// A rented machine without a job terminates itself, while node 0 still runs a long row.
TEST_F(RowQueueTest, ARentedHostStaysUntilNodeZeroHasEnded) {
  auto zero = host(0, 2, "s", true);
  auto guest = host(1, 2, "s", true);
  ASSERT_TRUE(io::run_until(loop, [&] { return zero->empty && guest->empty; }));
  leave(*guest);
  // Node 0 ends only if it has heard that the guest has left.
  leave(*zero);
  ASSERT_TRUE(io::run_until(loop, [&] { return zero->over; }));
  EXPECT_EQ(zero->ended, rows.size());
  EXPECT_FALSE(guest->over);
  zero->queue.reset();
  ASSERT_TRUE(io::run_until(loop, [&] { return guest->over; }));
  EXPECT_FALSE(guest->lost) << "the end of the queue is no loss";
}

// A spot notice or the kernel ends a host without a word.
TEST_F(RowQueueTest, AHostThatStaysDoesNotHideOneThatIsLost) {
  times.coming = std::chrono::milliseconds(1000);
  auto zero = host(0, 3, "s", true);
  auto stays = host(1, 3, "s", true);
  auto dies = host(2, 3, "s", true);
  ASSERT_TRUE(io::run_until(loop, [&] { return zero->empty && stays->empty && dies->empty; }));
  leave(*stays);
  leave(*zero);
  dies->queue.reset();
  ASSERT_TRUE(io::run_until(loop, [&] { return zero->over; }));
  EXPECT_EQ(zero->ended, rows.size());
  EXPECT_FALSE(stays->over);
  zero->queue.reset();
  ASSERT_TRUE(io::run_until(loop, [&] { return stays->over; }));
}

TEST_F(RowQueueTest, ARentedHostWithoutTheQueueStaysToo) {
  auto zero = host(0, 2, "s", true);
  auto guest = host(1, 2, "s", true);
  ASSERT_TRUE(io::run_until(loop, [&] { return zero->empty && guest->empty; }));
  zero->queue.reset();
  guest->queue->ask(0);
  ASSERT_TRUE(io::run_until(loop, [&] { return guest->lost; }));
  // The connection was cut, but node 0 goes on.
  zero = host(0, 2, "s", true);
  leave(*guest);
  leave(*zero);
  ASSERT_TRUE(io::run_until(loop, [&] { return zero->over; }));
  EXPECT_FALSE(guest->over);
  zero->queue.reset();
  ASSERT_TRUE(io::run_until(loop, [&] { return guest->over; }));
}

TEST_F(RowQueueTest, AHostThatIsLostKeepsItsRows) {
  auto zero = host(0, 2);
  auto one = host(1, 2);
  ASSERT_TRUE(io::run_until(loop, [&] { return zero->empty && one->empty; }));
  one->queue->ask(0);
  zero->queue.reset();
  ASSERT_TRUE(io::run_until(loop, [&] { return one->lost; }));
  one->empty = false;
  one->queue->ask(0);
  ASSERT_TRUE(io::run_until(loop, [&] { return one->empty; }));
  leave(*one);
  EXPECT_TRUE(one->over);
  EXPECT_FALSE(one->ended);
}

TEST_F(RowQueueTest, AStrangerNeitherListsKeysNorMakesAny) {
  auto zero = host(0, 2);
  ASSERT_TRUE(io::run_until(loop, [&] { return zero->empty; }));
  const std::string greeted("g\0\0\0", 4);
  EXPECT_EQ(stranger_gets({.op = store::Op::list_keys}), greeted);
  EXPECT_EQ(stranger_gets({.op = store::Op::set, .key = "new", .value = "x"}), greeted);
  EXPECT_EQ(stranger_gets({.op = store::Op::add, .key = "new", .number = 1}), greeted);
}

TEST_F(RowQueueTest, WithoutTheSecretNobodyTakesRowsAway) {
  auto zero = host(0, 2);
  auto stranger = host(1, 2, "guess");
  ASSERT_TRUE(io::run_until(loop, [&] { return zero->empty && stranger->empty; }));
  EXPECT_EQ(zero->rows, rows);
}

}  // namespace
}  // namespace lockstep::rows
