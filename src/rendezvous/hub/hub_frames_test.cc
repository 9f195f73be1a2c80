// Frames of the hub: each survives a round trip, and malformed ones are refused.
#include "rendezvous/hub/hub_frames.h"

#include "codec/wire.h"
#include "rendezvous/hub/hub_auth.h"
#include "rendezvous/hub/hub_stream.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::hub {
namespace {

std::vector<Frame> samples() {
  Hello hello;
  hello.has_token = true;
  hello.nonce = {1, 2, 3};
  hello.agent = {9};
  hello.run_id = "job";
  hello.name = "trn-1";
  Join join;
  join.role = "trainer";
  join.local_world_size = 8;
  join.host = "trn-1";
  join.address = "10.0.0.1";
  join.node_rank = 3;
  join.max_restarts = 2;
  join.last_round = 4;
  join.last_rank = 7;
  join.last_nodes = 9;
  join.launched = {"train.py", 3, true, "1.0"};
  join.replacement = false;
  Placed placed;
  placed.round.number = 5;
  placed.round.world_size = 64;
  placed.round.max_restarts = 3;
  placed.round.master_addr = "10.0.0.1";
  placed.round.master_port = 29500;
  placed.round.notes = {"one", "two"};
  Charter charter;
  charter.term = 65'537;
  charter.version = 9;
  charter.now = {{1}, {{{1}, 0}, {{2}, 7}}};
  charter.before = {{2}, {{{2}, 7}}};
  charter.round = 4;
  charter.restarts = 2;
  charter.lead = 1;
  charter.finished = {1, 3};
  charter.end = Charter::End::failed;
  charter.why = "rank 3 on trn-7 failed";
  charter.hosts = {{"10.0.0.1", 29400}, {"10.0.0.2", 40000}};
  return {hello,
          Challenge{{5}},
          Proof{{6}},
          Welcome{{7}, 1000, 5000},
          Refusal{Why::token, "no", "do"},
          join,
          StoreWanted{1},
          StoreOffer{1, "10.0.0.1", 1234, ""},
          placed,
          Ended{},
          Failed{5, true, "rank 3 on trn-7 failed"},
          Interrupted{5, true, "why"},
          Finish{5},
          Finished{5},
          TellReport{1000, {"trn-1", 3, "{\n}"}},
          Reports{{{"a", 0, "x"}, {"b", 1, "y"}}},
          Leave{Leave::How::returns},
          Left{},
          Beat{"2 of 4"},
          Call{65'537},
          Testimony{65'537, 1, charter, {"10.0.0.1", 29400}},
          charter,
          Agreed{65'537, 9},
          Moved{{"10.0.0.1", 29400}, true},
          News{7, 3, "any\nbytes\x01"}};
}

std::optional<Frame> again(const Frame& frame) {
  return parse_frame(std::string_view(frame_bytes(frame)).substr(4));
}

TEST(HubFrames, EveryFrameComesBackWholeAndInPieces) {
  ASSERT_EQ(samples().size(), std::variant_size_v<Frame>);
  for (const Frame& frame : samples()) {
    SCOPED_TRACE(frame_name(frame));
    ASSERT_TRUE(again(frame));
    EXPECT_EQ(*again(frame), frame);
  }
  std::string stream(kPreamble);
  for (const Frame& frame : samples())
    put_frame(stream, frame);
  for (const std::size_t size : {std::size_t{1}, std::size_t{7}, stream.size()}) {
    FrameReader reader;
    std::size_t seen = 0;
    for (std::size_t at = 0; at < stream.size(); at += size) {
      std::string_view chunk = std::string_view(stream).substr(at, size);
      for (Frame frame; reader.next(chunk, frame) == FrameReader::Step::frame;)
        EXPECT_EQ(frame, samples().at(seen++));
      EXPECT_TRUE(chunk.empty());
    }
    EXPECT_EQ(seen, samples().size());
  }
}

TEST(HubFrames, NoFrameIsShorterOrLongerThanItSays) {
  for (const Frame& frame : samples()) {
    SCOPED_TRACE(frame_name(frame));
    const std::string bytes = frame_bytes(frame).substr(4);
    // Of another version's hello only the version is read.
    for (std::size_t size = 0; size < bytes.size(); ++size)
      EXPECT_FALSE(parse_frame(bytes.substr(0, size)));
    EXPECT_FALSE(parse_frame(bytes + "x"));
  }
}

TEST(HubFrames, ValuesOutOfRangeAreNonsense) {
  EXPECT_FALSE(parse_frame(std::string("\x00", 1)));
  EXPECT_FALSE(parse_frame(std::string("\x14", 1)));
  EXPECT_FALSE(again(Finish{-1}));
  EXPECT_FALSE(again(StoreOffer{1, "a", 65536, ""}));
  Join join;
  join.local_world_size = kMaxWorkers + 1;
  EXPECT_FALSE(again(join));
  std::string hello = frame_bytes(Hello{}).substr(4);
  hello[3] = 2;  // has_token
  EXPECT_FALSE(parse_frame(hello));
  std::string leave = frame_bytes(Leave{}).substr(4);
  leave.back() = 4;
  EXPECT_FALSE(parse_frame(leave));
}

TEST(HubFrames, LinesForPeopleHaveNoControlBytes) {
  EXPECT_EQ(std::get<Beat>(*again(Beat{"a\x1b[2Jb\nc"})).status, "a [2Jb c");
  std::string bytes = frame_bytes(Beat{"abc"}).substr(4);
  bytes.back() = '\x1b';
  EXPECT_FALSE(parse_frame(bytes));
  const std::string text = "{\n\t}";
  EXPECT_EQ(std::get<TellReport>(*again(TellReport{1, {"h", 0, text}})).report.text, text);
}

TEST(HubFrames, LongTextsAreCutAndLongFramesRefused) {
  EXPECT_EQ(std::get<Beat>(*again(Beat{std::string(10'000, 'x')})).status.size(), kMaxLine);
  FrameReader reader;
  std::string bytes(kPreamble);
  put_frame(bytes, TellReport{1, {"h", 0, std::string(kMaxReport, 'x')}});
  std::string_view chunk = bytes;
  Frame frame;
  EXPECT_EQ(reader.next(chunk, frame), FrameReader::Step::error);
  EXPECT_EQ(reader.error(), "a frame of 1048594 bytes");
  FrameReader roomy;
  roomy.set_limit(FrameReader::kFromAgents);
  chunk = bytes;
  EXPECT_EQ(roomy.next(chunk, frame), FrameReader::Step::frame);
}

// The writer cuts long texts, but other programs may not.
TEST(HubFrames, MoreThanTheBoundsAllowIsNonsense) {
  const auto counted = [](char type, std::size_t count, const std::string& item) {
    std::string bytes(1, type);
    codec::wire::Writer(bytes).number(static_cast<std::uint32_t>(count));
    for (std::size_t i = 0; i < count; ++i)
      bytes += item;
    return bytes;
  };
  const std::string report(12, '\0');
  EXPECT_TRUE(parse_frame(counted('\x10', kMaxNodes, report)));
  EXPECT_FALSE(parse_frame(counted('\x10', kMaxNodes + 1, report)));
  EXPECT_TRUE(parse_frame(counted('\x13', kMaxLine, "x")));
  EXPECT_FALSE(parse_frame(counted('\x13', kMaxLine + 1, "x")));
}

TEST(HubFrames, NothingComesAfterAnError) {
  FrameReader reader;
  const std::string bytes = std::string(kPreamble) + std::string(4, '\0') + frame_bytes(Beat{});
  std::string_view chunk = bytes;
  Frame frame;
  EXPECT_EQ(reader.next(chunk, frame), FrameReader::Step::error);
  EXPECT_EQ(reader.error(), "a frame of 0 bytes");
  EXPECT_EQ(reader.next(chunk, frame), FrameReader::Step::error);
}

TEST(HubFrames, AHelloOfAnotherVersionIsReadAsFarAsItsVersion) {
  const std::string bytes("\x01\x07\x00whatever comes with it", 24);
  const auto frame = parse_frame(bytes);
  ASSERT_TRUE(frame);
  EXPECT_EQ(std::get<Hello>(*frame).version, 7);
}

TEST(HubFrames, StrangersAreRecognised) {
  EXPECT_EQ(recognise(std::string_view("\x00\xCE\xF7\x85\x3C\x0D", 6)), Stranger::tcp_store);
  // ADD "init/" of PyTorch 1.13.
  EXPECT_EQ(recognise(std::string_view("\x03\x05\0\0\0\0\0\0\0init/", 14)), Stranger::tcp_store);
  EXPECT_EQ(recognise("HTTP/1.1 400 Bad"), Stranger::web);
  EXPECT_EQ(recognise("GET / HTTP/1.1\r\n"), Stranger::web);
  EXPECT_EQ(recognise("SSH-2.0-OpenSSH"), Stranger::ssh);
  EXPECT_EQ(recognise(kPreamble), Stranger::other);
  FrameReader reader;
  Frame frame;
  std::string_view chunk = "GET / HTTP/1.1\r\n";
  EXPECT_EQ(reader.next(chunk, frame), FrameReader::Step::error);
  EXPECT_EQ(reader.stranger(), "GET / HTTP/1.1\r\n");
}

TEST(HubAuth, ProofsDifferInEverythingThatTheyProve) {
  const Nonce a{1};
  const Nonce b{2};
  const Mac mac = prove("token", Side::agent, a, b, "job");
  EXPECT_TRUE(same_mac(mac, prove("token", Side::agent, a, b, "job")));
  EXPECT_FALSE(same_mac(mac, prove("tokem", Side::agent, a, b, "job")));
  EXPECT_FALSE(same_mac(mac, prove("token", Side::hub, a, b, "job")));
  EXPECT_FALSE(same_mac(mac, prove("token", Side::agent, b, a, "job")));
  EXPECT_FALSE(same_mac(mac, prove("token", Side::agent, a, b, "joc")));
  for (const std::size_t at : {std::size_t{0}, mac.size() - 1}) {
    Mac other = mac;
    other[at] ^= 1;
    EXPECT_FALSE(same_mac(mac, other));
  }
  EXPECT_NE(random_nonce(), random_nonce());
  // Computed with Python's hmac over label, side, both nonces and run id.
  std::string hex;
  for (const std::uint8_t byte : mac) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  EXPECT_EQ(hex, "040f7a1caa70931eceeaae03d7836150b87ff43eb40cc3ae556c9c0bc7a08bba");
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
