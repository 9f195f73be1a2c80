#include "link/frames.h"

#include <gtest/gtest.h>

namespace lockstep::link {
namespace {

using Step = FrameReader::Step;

std::string bytes_of(const Frame& frame) {
  std::string out;
  put_frame(out, frame);
  return out;
}

// Returns the names of the frames in a stream read `piece` bytes at a time, or the error.
std::string read_all(std::string_view stream, std::size_t piece, FrameReader& reader) {
  std::string names;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    std::string_view chunk = stream.substr(at, piece);
    Frame frame;
    Step step = Step::more;
    while ((step = reader.next(chunk, frame)) == Step::frame)
      names += std::string(frame_name(frame)) + " ";
    if (step == Step::error) return names + "error: " + reader.error();
  }
  return names;
}

TEST(LinkFrames, EveryFrameIsReadAsItWasWritten) {
  const Start start{7, {"python3", "-c", "a\nb'\"", "", "-x", "\xff"}, {"A=1", "B="}, "x/y", true};
  const auto read = parse_frame(std::string_view(bytes_of(start)).substr(4));
  ASSERT_TRUE(read);
  const auto& again = std::get<Start>(*read);
  EXPECT_EQ(again.channel, 7U);
  EXPECT_EQ(again.argv, start.argv);
  EXPECT_EQ(again.env, start.env);
  EXPECT_EQ(again.folder, "x/y");
  EXPECT_TRUE(again.input);
  for (const Frame& frame :
       {Frame(Hello{}), Frame(Started{1, 42}), Frame(Refused{1, 127, "not found"}),
        Frame(Exit{1, 0, 9}), Frame(Data{1, Stream::err, std::string(kMaxData, 'x')}),
        Frame(Eof{1, Stream::in}), Frame(Eof{1, Stream::result}),
        Frame(Credit{1, Stream::out, 4096}), Frame(Signal{1, 15}), Frame(Ping{~0ULL}),
        Frame(Pong{3})}) {
    const std::string bytes = bytes_of(frame);
    const auto parsed = parse_frame(std::string_view(bytes).substr(4));
    ASSERT_TRUE(parsed) << frame_name(frame);
    EXPECT_EQ(bytes_of(*parsed), bytes) << frame_name(frame);
  }
}

TEST(LinkFrames, AsManyArgumentsArriveAsTheKernelTakes) {
  const Start start{.channel = 1, .argv = std::vector<std::string>(200'000, "x")};
  const auto read = parse_frame(std::string_view(bytes_of(start)).substr(4));
  ASSERT_TRUE(read);
  EXPECT_EQ(std::get<Start>(*read).argv.size(), 200'000U);
}

TEST(LinkFrames, AGreetingIsFoundBehindWhateverAShellPrints) {
  const std::string said = std::string(kGreeting) + bytes_of(Hello{}) + bytes_of(Ping{1});
  for (const std::string before :
       {"", "Welcome!\n", "\n", "\n\x01lockstep-lin", "\n\n\x01lockstep"})
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{1000}}) {
      FrameReader reader(FrameReader::Wants::greeting);
      EXPECT_EQ(read_all(before + said, piece, reader), "hello ping ");
      EXPECT_EQ(reader.chatter(), before);
    }
}

TEST(LinkFrames, AShellThatNeverEndsToTalkIsAnError) {
  FrameReader reader(FrameReader::Wants::greeting);
  const std::string talk(FrameReader::kMaxChatter + 1, 'y');
  EXPECT_NE(read_all(talk, 4096, reader).find("before a greeting: yyyy"), std::string::npos);
  EXPECT_FALSE(reader.greeted());
}

TEST(LinkFrames, NonsenseEndsTheStream) {
  const auto error_of = [](const std::string& bytes) {
    FrameReader reader(FrameReader::Wants::frames);
    return read_all(bytes, 3, reader);
  };
  EXPECT_EQ(error_of(std::string(4, '\0')), "error: a frame of 0 bytes");
  EXPECT_EQ(error_of("\xff\xff\xff\x7f"), "error: a frame of 2147483647 bytes");
  EXPECT_NE(error_of(std::string("\x01\0\0\0\x63", 5)).find("an invalid frame"), std::string::npos);
  std::string longer = bytes_of(Ping{1});
  longer[0] = static_cast<char>(longer[0] + 1);
  EXPECT_NE(error_of(longer + "x").find("an invalid frame"), std::string::npos);
  EXPECT_NE(error_of(bytes_of(Signal{1, 65})).find("an invalid frame"), std::string::npos);
  EXPECT_NE(error_of(bytes_of(Credit{1, Stream::in, 0})).find("an invalid frame"),
            std::string::npos);
}

TEST(LinkFrames, ANewerHelloIsReadAsFarAsItsVersion) {
  std::string bytes = bytes_of(Hello{}) + "more";
  bytes[0] = static_cast<char>(bytes[0] + 4);
  bytes[5] = 9;
  const auto read = parse_frame(std::string_view(bytes).substr(4));
  ASSERT_TRUE(read);
  EXPECT_EQ(std::get<Hello>(*read).version, 9);
}

}  // namespace
}  // namespace lockstep::link
