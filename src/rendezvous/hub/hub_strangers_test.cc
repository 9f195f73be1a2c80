// Strangers at the hub, and agents that meet another program instead of a hub.
#include "base/log.h"
#include "io/listen.h"
#include "io/resolve.h"
#include "rendezvous/hub/hub_auth.h"
#include "rendezvous/hub/hub_dial.h"
#include "rendezvous/hub/hub_server.h"
#include "store/server.h"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/socket.h>

#include "coordinator_testing.h"

namespace lockstep::rendezvous::hub {
namespace {
using namespace std::chrono_literals;

class HubStrangersTest : public ::testing::Test {
 protected:
  HubStrangersTest() {
    settings.listen = "127.0.0.1";
    settings.coordinator.run_id = "job";
    log::set_sink([](void* context,
                     std::string_view bytes) { static_cast<std::string*>(context)->append(bytes); },
                  &logged);
  }
  ~HubStrangersTest() override { log::set_sink(nullptr, nullptr); }

  void open() { server = HubServer::open(loop, settings).value(); }
  io::Fd knock(std::string_view bytes) const {
    io::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto to = io::resolve_numeric("127.0.0.1", server->port()).value().addresses.front();
    EXPECT_EQ(connect(fd.get(), to.get(), to.size), 0);
    EXPECT_EQ(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    return fd;
  }
  // Returns the greeting of an agent.
  static std::string greeting(bool has_token = false) {
    std::string bytes(kPreamble);
    Hello hello;
    hello.run_id = "job";
    hello.has_token = has_token;
    put_frame(bytes, hello);
    return bytes;
  }
  static void tell(const io::Fd& fd, const Frame& frame) {
    const std::string bytes = frame_bytes(frame);
    EXPECT_EQ(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // Returns the first frame after the preamble.
  Frame hear(const io::Fd& fd) {
    FrameReader reader;
    Frame frame;
    bool heard = false;
    until([&] {
      char byte = 0;
      while (!heard && recv(fd.get(), &byte, 1, MSG_DONTWAIT) == 1) {
        std::string_view chunk(&byte, 1);
        heard = reader.next(chunk, frame) == FrameReader::Step::frame;
      }
      return heard;
    });
    return frame;
  }
  static bool closed(const io::Fd& fd) {
    char bytes[4096];
    const ssize_t got = recv(fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN);
  }
  // Dials the port like an agent and returns the error.
  Error dial(int port, std::chrono::milliseconds patience = 5s) {
    std::optional<Result<HubDial::Connected>> done;
    HubDialSettings to{.host = "127.0.0.1",
                       .port = port,
                       .run_id = run_id,
                       .token = token,
                       .agent = random_nonce(),
                       .name = "b",
                       .patience = patience,
                       .refused_patience = patience,
                       .other_job_patience = 200ms};
    HubDial attempt(loop, to, [&](auto outcome) { done = std::move(outcome); });
    until([&] { return done.has_value(); });
    if (done->has_value()) return {Errc::internal, "connected", {}, 0};
    return std::move(*done).error();
  }
  // Starts a server with one fixed answer; ends: the server closes afterwards.
  int answering(std::string answer, bool ends = false) {
    listener = io::open_listener("127.0.0.1", 0, 4).value();
    accepting = std::make_unique<io::Watch>(loop, listener->fd.get());
    accepting->start(io::kReadable, [this, ends, answer = std::move(answer)](int) {
      guest = io::Fd(accept4(listener->fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
      (void)!send(guest.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
      if (ends) shutdown(guest.get(), SHUT_WR);
    });
    return listener->port;
  }
  template <class Fact>
  void until(Fact fact) {
    const auto limit = io::Clock::now() + 20s;
    while (!fact() && io::Clock::now() < limit)
      loop.run_once();
    ASSERT_TRUE(fact());
  }

  std::string logged;
  io::Loop loop;
  HubServerSettings settings;
  std::unique_ptr<HubServer> server;
  std::optional<std::string> token;
  std::string run_id = "job";
  std::optional<io::Listener> listener;
  std::unique_ptr<io::Watch> accepting;
  io::Fd guest;
};

TEST_F(HubStrangersTest, ATorchrunAgentIsToldOfOncePerAddress) {
  open();
  for (int i = 0; i < 3; ++i) {
    const io::Fd torchrun = knock(std::string_view("\x00\xCE\xF7\x85\x3C\x0D\x01\0\0\0", 10));
    until([&] { return closed(torchrun); });
  }
  const auto at = logged.find("a c10d client (torchrun, or --rdzv-backend c10d) at 127.0.0.1:");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NE(logged.find("--rdzv-backend c10d"), std::string::npos);
  EXPECT_EQ(logged.find("torchrun", at + 20), std::string::npos);
}

TEST_F(HubStrangersTest, AHostOpenToAllSaysSoOnceAndOnlyWithoutAToken) {
  open();
  EXPECT_EQ(logged, "");
  settings.listen = "";
  open();
  EXPECT_NE(logged.find("no job token is set: any program that reaches port"), std::string::npos);
  logged.clear();
  settings.token = "secret";
  open();
  EXPECT_EQ(logged, "");
}

TEST_F(HubStrangersTest, GarbageOversizeAndSilenceCloseOnlyTheirOwnConnection) {
  settings.time_to_prove = 300ms;
  settings.coordinator.heartbeat = 50ms;
  open();
  const io::Fd web = knock("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const io::Fd large = knock(std::string(kPreamble) + std::string("\xFF\xFF\xFF\x7F", 4));
  const io::Fd nonsense = knock(std::string(kPreamble) + std::string("\x02\0\0\0\x01\x02", 6));
  const io::Fd early = knock(std::string(kPreamble) + frame_bytes(Finish{0}));
  const io::Fd slow = knock(std::string(kPreamble) + std::string("\x40\0\0\0\x01\x01", 6));
  const io::Fd mute = knock("");
  for (const io::Fd* fd : {&web, &large, &nonsense, &early, &slow, &mute})
    until([&] { return closed(*fd); });
  EXPECT_EQ(dial(server->port()).message, "connected");
}

TEST_F(HubStrangersTest, AMemberThatSendsNonsenseIsLost) {
  open();
  const io::Fd member = knock(greeting());
  until([&] { return server->counts().guests == 1; });
  tell(member, Ended{});
  until([&] { return closed(member); });
  EXPECT_EQ(server->counts().guests, 0U);
  EXPECT_EQ(server->coordinator().peers(), 0U);
}

TEST_F(HubStrangersTest, AMemberIsNoStrangerAnyMore) {
  settings.time_to_prove = 300ms;
  settings.coordinator.heartbeat = 50ms;
  open();
  const io::Fd member = knock(greeting());
  EXPECT_TRUE(std::holds_alternative<Welcome>(hear(member)));
  const io::Fd mute = knock("");
  until([&] { return closed(mute); });  // came later, and has timed out by now
  EXPECT_EQ(server->counts().guests, 1U);
}

TEST_F(HubStrangersTest, AProofIsGoodForOneConnection) {
  settings.token = "secret";
  open();
  const io::Fd first = knock(greeting(true));
  const auto challenge = std::get<Challenge>(hear(first));
  const Proof proof{prove("secret", Side::agent, Nonce{}, challenge.nonce, "job")};
  tell(first, proof);
  until([&] { return server->counts().guests == 1; });
  const io::Fd second = knock(greeting(true));
  hear(second);
  tell(second, proof);
  until([&] { return closed(second); });
  EXPECT_EQ(server->counts().guests, 1U);
}

TEST_F(HubStrangersTest, AGreetingHasOneOrder) {
  settings.token = "secret";
  open();
  const io::Fd early = knock(std::string(kPreamble) + frame_bytes(Proof{}));
  until([&] { return closed(early); });
  EXPECT_NE(logged.find("a 'proof' frame before the greeting was done"), std::string::npos);
  const io::Fd twice = knock(greeting(true));
  hear(twice);
  tell(twice, Hello{});
  until([&] { return closed(twice); });
  EXPECT_NE(logged.find("a 'hello' frame before the greeting was done"), std::string::npos);
}

TEST_F(HubStrangersTest, TheOldestUnprovenGoesWhenThereAreTooMany) {
  settings.max_unproven = 2;
  open();
  const io::Fd first = knock("");
  const io::Fd second = knock("");
  until([&] { return server->counts().accepted == 2; });
  const io::Fd third = knock("");
  until([&] { return closed(first); });
  EXPECT_FALSE(closed(second));
  EXPECT_FALSE(closed(third));
}

// Lowers the soft limit of open files while the object lives.
class OpenFiles {
 public:
  explicit OpenFiles(rlim_t limit) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit less{limit, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &less), 0);
  }
  ~OpenFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  OpenFiles(const OpenFiles&) = delete;
  OpenFiles& operator=(const OpenFiles&) = delete;

 private:
  rlimit before_{};
};

TEST_F(HubStrangersTest, StrangersHaveHalfOfTheDescriptors) {
  {
    const OpenFiles few(40);
    open();
  }
  std::vector<io::Fd> strangers;
  strangers.reserve(21);
  for (int i = 0; i < 20; ++i)
    strangers.push_back(knock(""));
  until([&] { return server->counts().accepted == 20; });
  EXPECT_FALSE(closed(strangers.front()));
  strangers.push_back(knock(""));
  until([&] { return closed(strangers.front()); });
}

TEST_F(HubStrangersTest, WithoutDescriptorsTheOldestStrangerGoesAndAnAgentComesIn) {
  open();
  std::vector<io::Fd> strangers;
  strangers.reserve(40);
  for (int i = 0; i < 40; ++i)
    strangers.push_back(knock(""));
  const io::Fd agent = knock(greeting());
  const OpenFiles few(static_cast<rlim_t>(agent.get()) + 8);
  until([&] { return server->counts().guests == 1; });
  until([&] { return closed(strangers.front()); });
  EXPECT_FALSE(closed(agent));
}

TEST_F(HubStrangersTest, AnotherVersionHearsItOnBothSides) {
  open();
  std::string bytes(kPreamble);
  Hello hello;
  hello.version = kVersion + 1;
  put_frame(bytes, hello);
  const io::Fd other = knock(bytes);
  std::string answer;
  until([&] {
    char some[4096];
    const ssize_t got = recv(other.get(), some, sizeof some, MSG_DONTWAIT);
    if (got > 0) answer.append(some, static_cast<std::size_t>(got));
    return got == 0;
  });
  FrameReader reader;
  std::string_view chunk = answer;
  Frame frame;
  ASSERT_EQ(reader.next(chunk, frame), FrameReader::Step::frame);
  const std::string text =
      "version 5 of the lockstep rendezvous protocol meets version 4 of the host";
  EXPECT_EQ(std::get<Refusal>(frame).text, text);
  EXPECT_NE(logged.find(text), std::string::npos);
}

TEST_F(HubStrangersTest, AnAgentKnowsWhatItMeets) {
  auto store = store::Server::listen(loop, {.host = "127.0.0.1"}).value();
  const Error error = dial(store->port());
  EXPECT_NE(error.message.find("a c10d store (TCPStore) answers there"), std::string::npos);
  EXPECT_NE(error.hint.find("--rdzv-backend c10d"), std::string::npos);
  EXPECT_NE(dial(answering("HTTP/1.1 400 Bad Request\r\n\r\n")).message.find("a web server"),
            std::string::npos);
  EXPECT_NE(dial(answering("SSH-2.0-OpenSSH_9.2\r\n")).message.find("an SSH server"),
            std::string::npos);
  EXPECT_NE(dial(answering(""), 200ms).message.find("no answer to the greeting"),
            std::string::npos);
}

TEST_F(HubStrangersTest, AHostThatCannotProveItselfIsNotBelieved) {
  token = "secret";
  std::string lie(kPreamble);
  put_frame(lie, Challenge{{1}});
  put_frame(lie, Welcome{});
  const Error unproven = dial(answering(lie));
  EXPECT_EQ(unproven.code, Errc::denied);
  EXPECT_NE(unproven.message.find("the host does not know the job token"), std::string::npos);
  std::string skip(kPreamble);
  put_frame(skip, Welcome{});
  EXPECT_EQ(dial(answering(skip)).code, Errc::denied);
}

// A program that could ask for many proofs could pass them on to the hub.
TEST_F(HubStrangersTest, AnAgentProvesItselfOncePerConnection) {
  token = "secret";
  std::string twice(kPreamble);
  put_frame(twice, Challenge{{1}});
  put_frame(twice, Challenge{{2}});
  EXPECT_NE(dial(answering(twice)).message.find("unexpected answer 'challenge' to the greeting"),
            std::string::npos);
  std::string once(kPreamble);
  put_frame(once, Challenge{{1}});
  const Error ended = dial(answering(once, true), 300ms);  // several attempts
  EXPECT_NE(ended.message.find("during the greeting"), std::string::npos) << ended.message;
}

TEST_F(HubStrangersTest, EachConnectionOfAnAgentHasANonceOfItsOwn) {
  std::set<Nonce> seen;
  for (int i = 0; i < 2; ++i) {
    dial(answering(std::string(kPreamble) + frame_bytes(Refusal{Why::closed, "over", ""})));
    seen.insert(std::get<Hello>(hear(guest)).nonce);
  }
  EXPECT_EQ(seen.size(), 2U);
}

TEST_F(HubStrangersTest, AnotherJobsPortIsNamedAfterSomePatience) {
  settings.coordinator.run_id = "other";
  open();
  const Error error = dial(server->port(), 60s);  // fails long before the 60 s
  EXPECT_NE(error.message.find("b looks for the rendezvous 'job', but this is another one"),
            std::string::npos);
  EXPECT_EQ((error.message + error.hint).find("'other'"), std::string::npos);
  EXPECT_NE(logged.find("b looks for the rendezvous 'job', but this is 'other'"),
            std::string::npos);
}

TEST_F(HubStrangersTest, ATokenIsRightWhateverTheRunIdLooksLike) {
  token = settings.token = "secret";
  for (const std::string& id : {std::string("job\n1\x7f"), std::string(2000, 'j')}) {
    run_id = settings.coordinator.run_id = id;
    open();
    EXPECT_EQ(dial(server->port()).message, "connected");
  }
  token = "another";
  const auto before = server->counts().accepted;
  EXPECT_EQ(dial(server->port()).code, Errc::denied);
  EXPECT_EQ(server->counts().accepted, before + 1) << "a wrong token is not tried again";
}

TEST(HubCoordinator, MoreWorkersThanThereAreRanksEndTheJob) {
  testing::CoordinatorFixture f(testing::nodes(2, 2));
  f.arrive("b").offer.local_world_size = INT32_MAX;
  f.join_all({"a", "b"});
  for (const char* name : {"a", "b"})
    EXPECT_EQ(f.refused(name),
              "node rank 1 claims 2147483647 workers: the job would have more than "
              "2147483647");
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
