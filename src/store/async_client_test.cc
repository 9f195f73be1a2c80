// Real sockets over the loopback: server and clients on one loop, and servers that misbehave.
#include "store/async_client.h"

#include "base/error_testing.h"
#include "io/listen.h"
#include "store/server.h"

#include <gtest/gtest.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <deque>

namespace lockstep::store {
namespace {
using std::chrono::milliseconds;

class AsyncClientTest : public ::testing::Test {
 protected:
  void SetUp() override { serve(0); }
  void serve(int port) {
    auto made = Server::listen(loop, {.host = "127.0.0.1", .port = port});
    ASSERT_TRUE(made) << made.error().message;
    server = std::move(*made);
  }
  std::unique_ptr<AsyncClient> client(int port = 0, milliseconds patience = milliseconds(10'000)) {
    return std::make_unique<AsyncClient>(
        loop, AsyncClientOptions{.port = port > 0 ? port : server->port(),
                                 .connect_timeout = patience,
                                 .timeout = milliseconds(10'000)});
  }
  std::unique_ptr<AsyncClient> connected() {
    auto made = client();
    made->connect([](Result<void> done) { EXPECT_TRUE(done) << done.error().message; });
    return made;
  }
  // Runs the loop until `fact` holds.
  template <class Fact>
  void until(Fact fact) {
    bool late = false;
    io::Timer limit(loop);
    limit.start(std::chrono::seconds(20), [&] { late = true; });
    while (!fact() && !late)
      loop.run_once();
    ASSERT_FALSE(late) << "not within 20 s";
  }
  // A callback that stores its result.
  template <class T>
  AsyncClient::Done<T> into(std::optional<Result<T>>& kept) {
    return [&kept](Result<T> answer) {
      EXPECT_FALSE(kept) << "called twice";
      kept = std::move(answer);
    };
  }

  io::Loop loop;
  std::unique_ptr<Server> server;
};

using Text = std::optional<Result<std::string>>;
using Done = std::optional<Result<void>>;
using Number = std::optional<Result<std::int64_t>>;

TEST_F(AsyncClientTest, EveryOperationPipelinedBeforeTheConnectionIsThere) {
  auto a = connected();
  Done set;
  Done multi_set;
  Done ping;
  Done waited;
  Text got;
  Text swapped;
  Number sum;
  std::optional<Result<bool>> gone;
  std::optional<Result<AsyncClient::Keys>> many;
  a->set("/k", std::string("v\0w", 3), into<void>(set));
  a->multi_set({{"/m1", "1"}, {"/m2", ""}}, into<void>(multi_set));
  a->get("/k", into<std::string>(got));
  a->compare_set("/c", "", "x", into<std::string>(swapped));
  a->add("/n", -5, into<std::int64_t>(sum));
  a->wait({"/k", "/c"}, into<void>(waited));
  a->multi_get({"/m2", "/m1"}, into<AsyncClient::Keys>(many));
  a->delete_key("/m1", into<bool>(gone));
  a->ping(into<void>(ping));
  EXPECT_FALSE(set) << "no callback inside the call";
  until([&] { return ping.has_value(); });
  EXPECT_TRUE(set.value());
  EXPECT_TRUE(multi_set.value());
  EXPECT_EQ(got.value().value(), std::string("v\0w", 3));
  EXPECT_EQ(swapped.value().value(), "x");
  EXPECT_EQ(sum.value().value(), -5);
  EXPECT_TRUE(waited.value());
  EXPECT_EQ(many.value().value(), (AsyncClient::Keys{"", "1"}));
  EXPECT_TRUE(gone.value().value());
  EXPECT_TRUE(ping.value());
  EXPECT_EQ(a->pending(), 0U);
  EXPECT_EQ(a->local_address(), "127.0.0.1");
}

TEST_F(AsyncClientTest, NothingOvertakesAWaitAndItsGetComesNext) {
  auto waiter = connected();
  auto other = connected();
  std::vector<std::string> order;
  Text got;
  waiter->get("/late", [&](Result<std::string> value) { order.push_back("get " + value.value()); });
  waiter->compare_set("/c", "", "1",
                      [&](const Result<std::string>&) { order.emplace_back("cas"); });
  Done ping;
  other->ping(into<void>(ping));
  until([&] { return ping.has_value() && server->stats().parked == 1; });
  EXPECT_TRUE(order.empty());
  EXPECT_FALSE(server->engine().contains("/c"));
  other->set("/late", "v", nullptr);
  until([&] { return order.size() == 2; });
  EXPECT_EQ(order, (std::vector<std::string>{"get v", "cas"}));
}

TEST_F(AsyncClientTest, ATimedOutWaitIsTakenBack) {
  auto a = connected();
  Done waited;
  Text got;
  Number sum;
  a->wait({"/never1", "/never2"}, into<void>(waited), milliseconds(30));
  a->get("/never3", into<std::string>(got), milliseconds(60));
  a->add("/n", 1, into<std::int64_t>(sum));
  until([&] { return sum.has_value(); });
  EXPECT_EQ(code_of(waited.value()), Errc::timeout);
  EXPECT_EQ(waited.value().error().message, "wait timeout after 30ms, keys: /never1, /never2");
  EXPECT_EQ(got.value().error().message, "wait timeout after 60ms, keys: /never3");
  EXPECT_EQ(sum.value().value(), 1);
  EXPECT_TRUE(a->connected());
  EXPECT_EQ(server->stats().parked, 0U);
}

// The answer and the cancel cross on the wire. Whichever comes first, the stream stays in step.
TEST_F(AsyncClientTest, CancelAndAnswerMayCross) {
  auto a = connected();
  for (int i = 0; i < 40; ++i) {
    const std::string key = "/k" + std::to_string(i);
    Done waited;
    Text got;
    io::Timer setter(loop);
    setter.start(milliseconds(2), [&] { server->set(key, key); });
    a->wait({key}, into<void>(waited), milliseconds(2));
    a->get(key, into<std::string>(got));
    until([&] { return got.has_value(); });
    EXPECT_TRUE(waited.has_value());
    EXPECT_EQ(got.value().value(), key);
  }
}

TEST_F(AsyncClientTest, LossIsToldOnceToEachWithTheReason) {
  auto a = connected();
  Done waited;
  Text got;
  Done early;
  std::vector<std::string> losses;
  a->on_loss([&](const Error& error) {
    EXPECT_TRUE(got.has_value());
    losses.push_back(error.message);
  });
  a->wait({"/never"}, into<void>(waited));
  a->get("/k", into<std::string>(got));
  until([&] { return server->stats().parked == 1; });
  const std::string place = a->place();
  server.reset();
  until([&] { return !losses.empty(); });
  ASSERT_EQ(losses.size(), 1U);
  EXPECT_NE(losses[0].find("store at " + place), std::string::npos);
  EXPECT_EQ(waited.value().error().message, losses[0]);
  EXPECT_EQ(got.value().error().message, losses[0]);
  a->set("/k", "v", into<void>(early));
  EXPECT_FALSE(early);
  until([&] { return early.has_value(); });
  EXPECT_EQ(early.value().error().message, losses[0]);
}

TEST_F(AsyncClientTest, TheServerMayStartLater) {
  const int port = server->port();
  server.reset();
  auto a = client(port);
  Done ready;
  Text got;
  a->connect(into<void>(ready));
  a->get("/k", into<std::string>(got));
  until([&] { return a->attempt_text().find("Connection refused") != std::string::npos; });
  serve(port);
  server->set("/k", "v");
  until([&] { return got.has_value(); });
  EXPECT_TRUE(ready.value());
  EXPECT_EQ(got.value().value(), "v");
}

TEST_F(AsyncClientTest, NobodyThere) {
  const int port = server->port();
  server.reset();
  auto a = client(port, milliseconds(150));
  Done ready;
  Text got;
  Text short_one;
  a->connect(into<void>(ready));
  a->get("/k", into<std::string>(short_one), milliseconds(40));
  a->get("/k", into<std::string>(got));
  until([&] { return got.has_value(); });
  const Error& error = ready.value().error();
  EXPECT_EQ(error.sys, ECONNREFUSED);
  EXPECT_TRUE(error.message.starts_with("connect to the store at 127.0.0.1:" +
                                        std::to_string(port) + ": Connection refused, gave up"))
      << error.message;
  EXPECT_EQ(got.value().error().message, error.message);
  EXPECT_NE(short_one.value().error().message.find("not connected to 127.0.0.1:"),
            std::string::npos);
}

// Accepts connections, calls `act` for each after its greeting, and keeps them open.
struct Stranger {
  using Act = std::function<void(io::Fd& peer, const char* hello)>;
  Stranger(io::Loop& loop, const Act& act)
      : listener(io::open_listener("127.0.0.1", 0, 5).value()), watch(loop, listener.fd.get()) {
    watch.start(io::kReadable, [this, &loop, act](int) {
      peers.emplace_back(accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
      auto& greeted = watches.emplace_back(std::make_unique<io::Watch>(loop, peers.back().get()));
      greeted->start(io::kReadable, [this, act, at = peers.size() - 1](int) {
        char hello[10];
        if (recv(peers[at].get(), hello, sizeof hello, 0) != 10) return;
        watches[at].reset();
        act(peers[at], hello);
      });
    });
  }
  io::Listener listener;
  std::deque<io::Fd> peers;
  std::deque<std::unique_ptr<io::Watch>> watches;
  io::Watch watch;
};

TEST_F(AsyncClientTest, ResetCarriesItsErrno) {
  Stranger stranger(loop, [](io::Fd& peer, const char* hello) {
    EXPECT_EQ(send(peer.get(), hello + 6, 4, 0), 4);
  });
  auto a = client(stranger.listener.port);
  Done ready;
  Text got;
  a->connect(into<void>(ready));
  a->get("/k", into<std::string>(got));
  until([&] { return ready.has_value(); });
  EXPECT_TRUE(ready.value());
  const linger now{1, 0};
  setsockopt(stranger.peers[0].get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  stranger.peers[0].reset();
  until([&] { return got.has_value(); });
  EXPECT_EQ(got.value().error().sys, ECONNRESET);
  EXPECT_NE(got.value().error().message.find("Connection reset by peer"), std::string::npos);
}

TEST_F(AsyncClientTest, WrongEchoIsNoStore) {
  Stranger stranger(
      loop, [](io::Fd& peer, const char*) { EXPECT_EQ(send(peer.get(), "SSH-2.0-x", 9, 0), 9); });
  auto a = client(stranger.listener.port);
  Done ready;
  a->connect(into<void>(ready));
  until([&] { return ready.has_value(); });
  EXPECT_EQ(code_of(ready.value()), Errc::corrupt);
  EXPECT_NE(ready.value().error().message.find("is not a TCPStore"), std::string::npos);
}

TEST_F(AsyncClientTest, ClosedDuringTheGreetingIsTriedAgain) {
  Stranger stranger(loop, [](io::Fd& peer, const char*) { peer.reset(); });
  auto a = client(stranger.listener.port, milliseconds(150));
  Done ready;
  a->connect(into<void>(ready));
  until([&] { return ready.has_value(); });
  EXPECT_EQ(code_of(ready.value()), Errc::unavailable);
  EXPECT_NE(ready.value().error().message.find("during the greeting"), std::string::npos);
}

TEST_F(AsyncClientTest, ASilentServerIsGivenUpInTime) {
  Stranger stranger(loop, [](io::Fd&, const char*) {});
  auto a = client(stranger.listener.port, milliseconds(100));
  Done ready;
  a->connect(into<void>(ready));
  until([&] { return ready.has_value(); });
  EXPECT_EQ(code_of(ready.value()), Errc::timeout);
  EXPECT_NE(ready.value().error().message.find("no answer to the greeting"), std::string::npos);
}

TEST_F(AsyncClientTest, NamesAreLookedUpBesideTheLoop) {
  AsyncClient a(loop, {.host = "ip6-no-such-host.invalid",
                       .port = server->port(),
                       .connect_timeout = milliseconds(300)});
  AsyncClient b(loop, {.host = "localhost", .port = server->port()});
  Done bad;
  Done good;
  a.connect(into<void>(bad));
  b.connect(into<void>(good));
  until([&] { return bad.has_value() && good.has_value(); });
  EXPECT_TRUE(good.value());
  EXPECT_NE(bad.value().error().message.find("ip6-no-such-host.invalid"), std::string::npos)
      << bad.value().error().message;
}

TEST_F(AsyncClientTest, DestroyedInEveryCallback) {
  std::unique_ptr<AsyncClient> a;
  int calls = 0;
  const auto end = [&](const auto&) {
    ++calls;
    a.reset();
  };
  a = client();
  a->connect(end);
  a->set("/k", "v", end);
  until([&] { return !a; });
  a = connected();
  a->set("/k", "v", end);
  a->set("/k", "w", end);
  until([&] { return !a; });
  a = connected();
  a->get("/k", end);
  a->add("/n", 1, end);
  until([&] { return !a; });
  a = connected();
  a->wait({"/never"}, end, milliseconds(10));
  a->wait({"/never"}, end, milliseconds(10));
  until([&] { return !a; });
  a = client(1, milliseconds(10));
  a->get("/k", end);
  a->connect(end);
  until([&] { return !a; });
  EXPECT_EQ(calls, 5);
  a = connected();
  a->wait({"/never"}, end);
  a->wait({"/never"}, end);
  a->on_loss(end);
  until([&] { return server->stats().parked == 1; });
  server.reset();
  until([&] { return !a; });
  EXPECT_EQ(calls, 6);
}

TEST_F(AsyncClientTest, LargeValuesBothWays) {
  auto a = connected();
  const std::string large(20U << 20, 'x');
  Text got;
  Done set;
  a->set("/large", large, into<void>(set));
  a->get("/large", into<std::string>(got));
  until([&] { return got.has_value(); });
  EXPECT_TRUE(set.value());
  EXPECT_EQ(got.value().value(), large);
}

TEST_F(AsyncClientTest, AThousandRequestsInOneGo) {
  auto a = connected();
  std::int64_t last = 0;
  for (int i = 1; i <= 1000; ++i) {
    a->add("/n", 1, [&, i](Result<std::int64_t> sum) {
      EXPECT_EQ(sum.value(), i);
      last = *sum;
    });
  }
  until([&] { return last == 1000; });
}

}  // namespace
}  // namespace lockstep::store
