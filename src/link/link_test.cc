// Endpoints and stream ends over real pipes.
#include "io/loop_testing.h"
#include "link/endpoint.h"
#include "link/stream_ends.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

namespace lockstep::link {
namespace {

class LinkTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { signal(SIGPIPE, SIG_IGN); }

  static io::Pipe pipe() { return std::move(io::make_pipe().value()); }

  template <class Fact>
  void until(Fact fact) {
    ASSERT_TRUE(io::run_until(loop_, fact));
  }

  io::Loop loop_;
};

TEST_F(LinkTest, TwoEndsTalk) {
  io::Pipe to_host = pipe();
  io::Pipe to_client = pipe();
  std::string host_heard;
  std::string client_heard;
  std::optional<Error> ended;
  auto host = std::make_unique<Endpoint>(
      loop_, std::move(to_host.read), std::move(to_client.write), FrameReader::Wants::frames,
      Endpoint::Events{[&](const Frame& f) { host_heard += frame_name(f); }, [](const Error&) {}});
  Endpoint client(loop_, std::move(to_client.read), std::move(to_host.write),
                  FrameReader::Wants::greeting,
                  {[&](const Frame& f) { client_heard += frame_name(f); },
                   [&](const Error& error) { ended = error; }});
  client.send(Hello{});
  client.send(Signal{1, 15});
  host->greet();
  host->send(Hello{});
  until([&] { return host_heard == "hellosignal" && client_heard == "hello"; });
  host.reset();
  until([&] { return ended.has_value(); });
  EXPECT_EQ(ended->code, Errc::canceled);
}

TEST_F(LinkTest, AClientTakesOnlyWhatTheRulesOfAHostAllow) {
  io::Pipe to_host = pipe();
  io::Pipe to_client = pipe();
  std::string heard;
  std::optional<Error> ended;
  Endpoint client(loop_, std::move(to_client.read), std::move(to_host.write),
                  FrameReader::Wants::greeting,
                  {[&](const Frame& f) { heard += frame_name(f); },
                   [&](const Error& error) { ended = error; }});
  Endpoint host(loop_, std::move(to_host.read), std::move(to_client.write),
                FrameReader::Wants::frames, {[](const Frame&) {}, [](const Error&) {}});
  client.send(Start{.channel = 1});
  host.greet();
  for (const Frame& frame : {Frame(Hello{}), Frame(Ping{}), Frame(Started{1, 1}), Frame(Exit{2})})
    host.send(frame);
  until([&] { return ended.has_value(); });
  EXPECT_EQ(heard, "hellostarted");
  EXPECT_EQ(ended->code, Errc::corrupt);
}

TEST_F(LinkTest, AClientDoesNotGrowForAHostThatNeverReads) {
  io::Pipe to_host = pipe();
  io::Pipe to_client = pipe();
  std::optional<Error> ended;
  Endpoint client(loop_, std::move(to_client.read), std::move(to_host.write),
                  FrameReader::Wants::greeting,
                  {[](const Frame&) {}, [&](const Error& error) { ended = error; }});
  for (int i = 0; i < 2000; ++i)
    client.send(Data{1, Stream::in, std::string(kMaxData, 'x')});
  until([&] { return ended.has_value(); });
  EXPECT_EQ(ended->message, "the other end does not read the requested data");
}

TEST_F(LinkTest, AReaderThatRestsHoldsTheSourceBack) {
  io::Pipe data = pipe();
  fcntl(data.write.get(), F_SETFL, O_NONBLOCK);
  std::size_t read = 0;
  bool eof = false;
  Source source(loop_, data.read.get(), true,
                {[&](const std::string& bytes) { read += bytes.size(); }, [&] { eof = true; }});
  const std::string block(kMaxData, 'x');
  const auto pump = [&](std::size_t total) {
    std::size_t put = 0;
    for (int idle = 0; put < total && idle < 10;) {
      const ssize_t n = write(data.write.get(), block.data(), block.size());
      put += n > 0 ? static_cast<std::size_t>(n) : 0;
      idle = n > 0 ? 0 : idle + 1;
      loop_.run_once();
    }
  };
  pump(2 * kWindow);
  EXPECT_EQ(read, kWindow);
  source.grant(1000);
  until([&] { return read == kWindow + 1000; });
  source.grant(3 * kWindow);  // more credit than a window
  pump(3 * kWindow);
  EXPECT_EQ(read, 2 * kWindow + 1000);
  source.grant(kWindow);
  data.write.reset();
  until([&] { return eof; });
  EXPECT_TRUE(source.at_end());
}

TEST_F(LinkTest, AFileIsASourceAndASink) {
  const std::string path = ::testing::TempDir() + "/link_file";
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  std::size_t consumed = 0;
  bool finished = false;
  Sink sink(loop_, file, false, {[&](std::size_t n) { consumed += n; }, [&] { finished = true; }});
  sink.put("hello ");
  sink.put("world");
  sink.finish();
  until([&] { return finished; });
  EXPECT_EQ(consumed, 11U);
  lseek(file, 0, SEEK_SET);
  std::string read;
  bool eof = false;
  Source source(loop_, file, false,
                {[&](const std::string& bytes) { read += bytes; }, [&] { eof = true; }});
  until([&] { return eof; });
  EXPECT_EQ(read, "hello world");
  close(file);
}

TEST_F(LinkTest, AFeedMakesNoMoreThanThereIsRoomFor) {
  constexpr std::size_t kChunk = 1000;
  std::size_t made = 0;
  std::string fed;
  bool eof = false;
  Feed feed(loop_,
            [&]() -> std::optional<std::string> {
              if (made == 3 * kWindow / kChunk) return std::nullopt;
              // An empty text does not end the feed.
              return made++ % 2 == 0 ? std::string()
                                     : std::string(kChunk, static_cast<char>('a' + made % 26));
            },
            {[&](const std::string& bytes) { fed += bytes; }, [&] { eof = true; }});
  for (int i = 0; i < 100; ++i)
    loop_.run_once();
  EXPECT_EQ(fed.size(), kWindow);
  EXPECT_LE(made * kChunk / 2, kWindow + kChunk);
  feed.grant(1);
  until([&] { return fed.size() == kWindow + 1; });
  EXPECT_FALSE(eof);
  feed.grant(kWindow);
  until([&] { return eof; });
  EXPECT_EQ(fed.size(), made / 2 * kChunk);
  for (std::size_t i = 0; i < fed.size(); ++i)
    ASSERT_EQ(fed[i], static_cast<char>('a' + (2 * (i / kChunk) + 2) % 26)) << i;
}

TEST_F(LinkTest, AFeedMayBeGoneBeforeItsTextIs) {
  std::unique_ptr<Feed> feed;
  int heard = 0;
  const auto more = [] { return std::optional(std::string(4 * kMaxData, 'x')); };
  feed = std::make_unique<Feed>(loop_, more,
                                Source::Events{[&](const std::string&) {
                                                 ++heard;
                                                 feed.reset();
                                               },
                                               [] {}});
  for (int i = 0; i < 10; ++i)
    loop_.run_once();
  EXPECT_EQ(heard, 1);
}

TEST_F(LinkTest, AReaderThatIsGoneDoesNotHoldTheStreamUp) {
  io::Pipe data = pipe();
  std::size_t consumed = 0;
  bool finished = false;
  Sink sink(loop_, data.write.get(), true,
            {[&](std::size_t n) { consumed += n; }, [&] { finished = true; }});
  data.read.reset();
  sink.put("lost");
  sink.finish();
  until([&] { return finished; });
  EXPECT_EQ(consumed, 4U);
  EXPECT_TRUE(sink.broken());
}

}  // namespace
}  // namespace lockstep::link
