// Real sockets over the loopback: the server on this thread's loop, clients on another thread.
#include "store/server.h"

#include "base/error_testing.h"
#include "store/blocking_client_testing.h"

#include <gtest/gtest.h>

#include <errno.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

namespace lockstep::store {
namespace {
using std::chrono::milliseconds;

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override { start({}); }
  void start(ServerOptions options) {
    server.reset();
    options.host = "127.0.0.1";
    auto made = Server::listen(loop, options);
    ASSERT_TRUE(made) << made.error().message;
    server = std::move(*made);
  }
  // Runs `fn` beside the loop until it returns.
  void beside(const std::function<void()>& fn) {
    bool done = false;
    std::thread thread([&] {
      fn();
      loop.post([&] {
        done = true;
        loop.stop();
      });
    });
    while (!done)
      loop.run();
    thread.join();
  }
  Client client(std::string prefix = {}, Dialect dialect = Dialect::d) const {
    auto made = Client::connect({.port = server->port(),
                                 .timeout = milliseconds(20'000),
                                 .dialect = dialect,
                                 .prefix = std::move(prefix)});
    LOCKSTEP_CHECK(made.has_value());
    return std::move(*made);
  }
  // Connects and stays silent.
  io::Fd knock() const {
    io::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<in_port_t>(server->port()));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    return fd;
  }
  // Reads the statistics on the loop's thread, while the loop runs.
  Stats stats() {
    Stats seen;
    bool done = false;
    std::mutex mutex;
    std::condition_variable ready;
    loop.post([&] {
      const std::lock_guard lock(mutex);
      seen = server->stats();
      done = true;
      ready.notify_one();
    });
    std::unique_lock lock(mutex);
    ready.wait(lock, [&] { return done; });
    return seen;
  }

  io::Loop loop;
  std::unique_ptr<Server> server;
};

TEST_F(ServerTest, AWitnessKnowsClientsWaitsAndCreators) {
  Witness waiting;
  beside([&] {
    Client one = client();
    Client two = client();
    LOCKSTEP_CHECK(one.set("/default_pg/0//cpu//0/1", "x").has_value());
    const std::vector<std::string> keys{"/default_pg/0//cpu//0/0"};
    std::thread waiter([&] { (void)two.wait(keys); });
    for (bool parked = false; !parked;) {
      std::promise<Witness> taken;
      loop.post([&] { taken.set_value(server->witness()); });
      waiting = taken.get_future().get();
      for (const auto& session : waiting.sessions)
        parked = parked || !session.waits.empty();
    }
    LOCKSTEP_CHECK(one.set("/default_pg/0//cpu//0/0", "x").has_value());
    waiter.join();
  });
  ASSERT_EQ(waiting.sessions.size(), 2U);
  EXPECT_EQ(waiting.sessions[0].number, 1U);
  EXPECT_TRUE(waiting.sessions[0].waits.empty());
  EXPECT_TRUE(waiting.sessions[0].peer.starts_with("127.0.0.1:"));
  EXPECT_LE(waiting.sessions[0].connected, waiting.sessions[0].heard);
  ASSERT_EQ(waiting.sessions[1].waits.size(), 1U);
  EXPECT_EQ(waiting.sessions[1].waits[0].keys, std::vector<std::string>{"/default_pg/0//cpu//0/0"});
  EXPECT_GE(waiting.sessions[1].waits[0].since, waiting.sessions[1].connected);
  ASSERT_EQ(waiting.keys.size(), 1U);
  EXPECT_EQ(waiting.keys[0].creator, 1U);
  const Witness later = server->witness();
  EXPECT_TRUE(later.sessions.empty() || later.departed.empty());
  server->purge();
  EXPECT_TRUE(server->witness().departed.empty());
}

TEST_F(ServerTest, EveryOperationOfTheClient) {
  beside([&] {
    Client a = client("/");
    Client b = client("/");
    ASSERT_TRUE(a.set("k", "v"));
    EXPECT_EQ(b.get("k").value(), "v");
    EXPECT_EQ(b.get_now("none").value(), "");
    EXPECT_EQ(a.add("n", 5).value(), 5);
    EXPECT_EQ(a.compare_set("c", "", "x").value(), "x");
    const std::vector<std::string> keys = {"k", "n"};
    EXPECT_TRUE(a.check(keys).value());
    EXPECT_EQ(a.multi_get(keys).value(), (std::vector<std::string>{"v", "5"}));
    const std::vector<std::pair<std::string, std::string>> entries = {{"m1", "1"}, {"m2", "2"}};
    ASSERT_TRUE(a.multi_set(entries));
    ASSERT_TRUE(a.append("m1", "1"));
    EXPECT_EQ(a.get("m1").value(), "11");
    EXPECT_EQ(a.num_keys().value(), 5);
    EXPECT_TRUE(a.delete_key("m1").value());
    ASSERT_TRUE(a.queue_push("q", "item"));
    EXPECT_EQ(a.queue_len("q").value(), 1);
    EXPECT_EQ(b.queue_pop("q", true).value(), "item");
    EXPECT_EQ(b.queue_pop("q", false).value(), std::nullopt);
    EXPECT_EQ(a.announce().value(), 1);
    EXPECT_EQ(a.list_keys().value().size(), 5U);
    EXPECT_TRUE(a.barrier("b", 1));
    EXPECT_TRUE(a.ping());
  });
}

TEST_F(ServerTest, WaitTimesOutAndTheConnectionLivesOn) {
  beside([&] {
    Client a = client();
    const std::vector<std::string> keys = {"/never", "/cas"};
    const auto waited = a.wait(keys, milliseconds(30));
    ASSERT_FALSE(waited);
    EXPECT_EQ(code_of(waited), Errc::timeout);
    EXPECT_EQ(waited.error().message, "wait timeout after 30ms, keys: /never, /cas");
    EXPECT_EQ(a.barrier("b", 2, milliseconds(30)).error().message,
              "barrier timeout after 30ms, key: b");
    EXPECT_TRUE(a.set("k", "v"));
    EXPECT_EQ(a.get("k").value(), "v");
    EXPECT_EQ(stats().parked, 0U);
  });
}

TEST_F(ServerTest, OneConnectionsErrorIsItsOwn) {
  beside([&] {
    Client good = client();
    Client old_peer = client("", Dialect::a);
    EXPECT_TRUE(old_peer.set("text", "abc"));
    EXPECT_EQ(good.get("text").value(), "abc");
    EXPECT_FALSE(old_peer.add("text", 1));
    EXPECT_TRUE(good.ping());
    const Stats seen = stats();
    EXPECT_EQ(seen.closed_for_error, 1U);
    EXPECT_NE(seen.last_error.find("not a number"), std::string::npos) << seen.last_error;
    EXPECT_EQ(seen.connections, 1U);
  });
}

TEST_F(ServerTest, LargeValuesAndAReaderThatLags) {
  start({.max_unsent_bytes = 64 << 10});
  beside([&] {
    Client a = client();
    const std::string value(3 << 20, 'x');
    ASSERT_TRUE(a.set("big", value));
    // 40 replies of 3 MiB requested at once: the server must neither hold them all nor stall other
    // clients.
    std::string asks;
    for (int i = 0; i < 40; ++i)
      ASSERT_TRUE(put_request(asks, Dialect::d, {.op = Op::get, .key = "big"}));
    ASSERT_EQ(send(a.fd(), asks.data(), asks.size(), 0), static_cast<ssize_t>(asks.size()));
    Client b = client();
    EXPECT_TRUE(b.ping());
    EXPECT_LT(stats().requests[static_cast<std::size_t>(Op::get)], 10U);
    std::size_t got = 0;
    std::vector<char> chunk(1 << 20);
    while (got < 40 * (value.size() + 8)) {
      const ssize_t n = recv(a.fd(), chunk.data(), chunk.size(), 0);
      if (n > 0) {
        got += static_cast<std::size_t>(n);
      } else {
        ASSERT_TRUE(n < 0 && errno == EAGAIN);
        std::this_thread::sleep_for(milliseconds(1));
      }
    }
    EXPECT_TRUE(a.ping());
  });
}

TEST_F(ServerTest, HalfCloseIsAnsweredThenClosed) {
  beside([&] {
    Client a = client();
    std::string asks;
    ASSERT_TRUE(put_request(asks, Dialect::d, {.op = Op::num_keys}));
    ASSERT_EQ(send(a.fd(), asks.data(), asks.size(), 0), static_cast<ssize_t>(asks.size()));
    shutdown(a.fd(), SHUT_WR);
    std::string got;
    char chunk[64];
    for (ssize_t n = -1; n != 0;) {
      n = recv(a.fd(), chunk, sizeof chunk, 0);
      if (n > 0) got.append(chunk, static_cast<std::size_t>(n));
      std::this_thread::sleep_for(milliseconds(1));
    }
    EXPECT_EQ(got, std::string(8, '\0'));
  });
}

TEST_F(ServerTest, AResetDropsItsWaits) {
  beside([&] {
    {
      Client a = client();
      std::string asks;
      const std::vector<std::string_view> keys = {"k"};
      ASSERT_TRUE(put_request(asks, Dialect::d, {.op = Op::wait, .items = keys}));
      ASSERT_EQ(send(a.fd(), asks.data(), asks.size(), 0), static_cast<ssize_t>(asks.size()));
      while (stats().parked == 0)
        std::this_thread::sleep_for(milliseconds(1));
      const linger hard{1, 0};
      setsockopt(a.fd(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    }
    while (stats().connections > 0)
      std::this_thread::sleep_for(milliseconds(1));
    EXPECT_EQ(stats().parked, 0U);
  });
}

TEST_F(ServerTest, ManyClientsWaitForOne) {
  beside([&] {
    std::vector<Client> clients;
    std::string ask;
    const std::vector<std::string_view> keys = {"go"};
    ASSERT_TRUE(put_request(ask, Dialect::d, {.op = Op::wait, .items = keys}));
    for (int i = 0; i < 300; ++i) {
      clients.push_back(client());
      ASSERT_EQ(send(clients.back().fd(), ask.data(), ask.size(), 0),
                static_cast<ssize_t>(ask.size()));
    }
    while (stats().parked < 300)
      std::this_thread::sleep_for(milliseconds(1));
    ASSERT_TRUE(client().set("go", ""));
    for (Client& c : clients) {
      char answer = 1;
      while (recv(c.fd(), &answer, 1, 0) != 1)
        std::this_thread::sleep_for(milliseconds(1));
      EXPECT_EQ(answer, 0);
    }
  });
}

TEST_F(ServerTest, TheHostingProcessWritesToo) {
  beside([&] {
    Client a = client();
    std::thread writer([&] {
      while (stats().parked == 0)
        std::this_thread::sleep_for(milliseconds(1));
      loop.post([&] { server->set("k", "from inside"); });
    });
    EXPECT_EQ(a.get("k").value(), "from inside");
    writer.join();
  });
}

TEST_F(ServerTest, SurvivesRunningOutOfDescriptors) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  beside([&] {
    Client a = client();
    const int next = dup(a.fd());
    ::close(next);
    rlimit tight = before;
    tight.rlim_cur = static_cast<rlim_t>(next) + 1;  // room for the client's end only
    setrlimit(RLIMIT_NOFILE, &tight);
    EXPECT_FALSE(Client::connect({.port = server->port(), .timeout = milliseconds(100)}));
    setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_TRUE(a.ping());
    EXPECT_GT(stats().refused, 0U);
    EXPECT_TRUE(client().ping());
  });
}

TEST_F(ServerTest, WithoutDescriptorsSilentStrangersMakeRoom) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  beside([&] {
    Client a = client();
    std::vector<io::Fd> strangers;
    strangers.reserve(40);
    for (int i = 0; i < 40; ++i)
      strangers.push_back(knock());
    while (stats().connections < 41)
      std::this_thread::sleep_for(milliseconds(1));
    const int next = dup(a.fd());
    ::close(next);
    rlimit tight = before;
    tight.rlim_cur = static_cast<rlim_t>(next) + 1;  // room for the client's end only
    setrlimit(RLIMIT_NOFILE, &tight);
    EXPECT_TRUE(Client::connect({.port = server->port(), .timeout = std::chrono::seconds(10)}));
    setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_TRUE(a.ping());
    EXPECT_EQ(stats().refused, 0U);
  });
}

TEST(ServerListen, PortTakenAndBadHost) {
  io::Loop loop;
  auto first = Server::listen(loop, {});
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_GT((*first)->port(), 0);
  const auto second = Server::listen(loop, {.port = (*first)->port()});
  ASSERT_FALSE(second);
  EXPECT_EQ(code_of(second), Errc::already_exists);
  EXPECT_FALSE(Server::listen(loop, {.host = "no.such.host.invalid"}));
  EXPECT_FALSE(Server::listen(loop, {.port = 70000}));
}

TEST(ClientConnect, SaysWhereWhyAndHowLong) {
  io::Loop loop;
  int port = 0;
  {
    auto server = Server::listen(loop, {.host = "127.0.0.1"});
    ASSERT_TRUE(server);
    port = (*server)->port();
  }
  const auto client = Client::connect({.port = port, .timeout = milliseconds(60)});
  ASSERT_FALSE(client);
  EXPECT_NE(client.error().message.find("127.0.0.1:" + std::to_string(port)), std::string::npos);
  EXPECT_NE(client.error().message.find("Connection refused, gave up after 0."), std::string::npos)
      << client.error().message;
}

// Requests of a dead attempt's workers must not be served after the purge: neither bytes beyond one
// read, nor a connection that was not accepted yet.
TEST_F(ServerTest, PurgeDropsWhatIsStillToBeRead) {
  bool done = false;
  std::thread writer([&] {
    Client dying = client();
    (void)dying.set("/long", std::string(400'000, 'x'));
    (void)dying.set("/stale", "1");
    loop.post([&] { done = true; });
  });
  while (server->stats().bytes_in < 100'000 && !done)
    loop.run_once();
  server->purge();
  while (!done)
    loop.run_once();
  writer.join();
  for (int turn = 0; turn < 100; ++turn)
    loop.run_once();
  EXPECT_EQ(server->stats().keys, 0U);
  EXPECT_EQ(server->stats().connections, 0U);
}

// A peer with a single send, whose requests are served turn by turn.
class TurnTest : public ServerTest {
 protected:
  void speak(const std::string& bytes, const ServerOptions& options = {.max_effort_per_turn = 50}) {
    start(options);
    peer = io::Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(static_cast<std::uint16_t>(server->port()));
    ASSERT_EQ(connect(peer.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    ASSERT_EQ(send(peer.get(), bytes.data(), bytes.size(), 0), std::ssize(bytes));
  }
  // Returns the most requests served in one turn, until `total` have been served.
  std::uint64_t most_in_a_turn(std::uint64_t total) {
    std::uint64_t most = 0;
    for (std::uint64_t seen = 0; seen < total;) {
      loop.run_once();
      const std::uint64_t now = server->stats().requests_total;
      most = std::max(most, now - std::exchange(seen, now));
    }
    return most;
  }
  static std::string adds(int count) {
    std::string bytes = greeting(Dialect::d, 1);
    for (int i = 0; i < count; ++i)
      LOCKSTEP_CHECK(put_request(bytes, Dialect::d, {.op = Op::add, .key = "n", .number = 1}));
    return bytes;
  }
  // Requests without replies.
  static std::string sets(int count) {
    std::string bytes = greeting(Dialect::d, 1).substr(0, 5);
    for (int i = 0; i < count; ++i)
      LOCKSTEP_CHECK(
          put_request(bytes, Dialect::d, {.op = Op::set, .key = "n", .value = std::to_string(i)}));
    return bytes;
  }
  // Resets the connection once the server has read something.
  void reset_later() {
    while (server->stats().requests_total == 0)
      loop.run_once();
    const linger hard{1, 0};
    setsockopt(peer.get(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    peer.reset();
  }
  io::Fd peer;
};

TEST_F(TurnTest, OneConnectionDoesNotTakeThemAll) {
  speak(adds(1000));
  EXPECT_LE(most_in_a_turn(1002), 50U);
  EXPECT_EQ(server->engine().get("n"), "1000");
  std::string replies(4 + 1000 * 8, '\0');
  EXPECT_EQ(recv(peer.get(), replies.data(), replies.size(), MSG_WAITALL), std::ssize(replies));
}

TEST_F(TurnTest, WhatCameBeforeAnEndIsServed) {
  speak(adds(1000));
  shutdown(peer.get(), SHUT_WR);
  EXPECT_LE(most_in_a_turn(1002), 50U);
  while (server->stats().connections > 0)
    loop.run_once();
  EXPECT_EQ(server->engine().get("n"), "1000");
}

// A peer may reset the connection when nothing is owed to it: everything sent before is served.
TEST_F(TurnTest, WhatCameBeforeAResetIsServed) {
  speak(sets(1000));
  reset_later();
  EXPECT_LE(most_in_a_turn(1001), 100U);
  EXPECT_EQ(server->engine().get("n"), "999");
  while (server->stats().connections > 0)
    loop.run_once();
}

// The kernel reports the reset once, in front of bytes that one read does not take.
TEST_F(TurnTest, WhatCameBeforeAResetIsReadToTheEnd) {
  speak(sets(1000), {.read_buffer_bytes = 1000});
  reset_later();
  while (server->stats().connections > 0)
    loop.run_once();
  EXPECT_EQ(server->engine().get("n"), "999");
}

// The callback runs in a later turn of the loop, when its receiver may be gone.
TEST_F(ServerTest, ADepartureThatNobodyWantsToHearOfAnyMore) {
  int told = 0;
  server->on_departure([&] { ++told; });
  io::Fd guest = knock();
  while (server->stats().connections == 0)
    loop.run_once();
  guest.reset();
  while (server->stats().connections == 1)
    loop.run_once();
  server->on_departure(nullptr);
  server->on_departure([&] { ++told; });
  server->on_departure(nullptr);
  loop.run_once();
  EXPECT_EQ(told, 0);
}

TEST_F(ServerTest, PurgeDropsWhoIsStillToBeAccepted) {
  const io::Fd peer(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<in_port_t>(server->port()));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(peer.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  const std::string set("\0\1\0\0\0\0\0\0\0k\1\0\0\0\0\0\0\0v", 19);  // dialect A: SET k=v
  ASSERT_EQ(send(peer.get(), set.data(), set.size(), 0), static_cast<ssize_t>(set.size()));
  server->purge();
  for (int turn = 0; turn < 100; ++turn)
    loop.run_once();
  EXPECT_EQ(server->stats().keys, 0U);
  EXPECT_EQ(server->stats().connections, 0U);
}

}  // namespace
}  // namespace lockstep::store
