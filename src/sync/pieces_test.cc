#include "sync/pieces.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

namespace lockstep::sync {
namespace {

constexpr std::uint64_t kMost = kMostPieceBytes;

std::vector<std::vector<Range>> cut(const Manifest& manifest, std::uint64_t most_bytes) {
  std::vector<std::vector<Range>> groups;
  Cutter cutter(manifest, most_bytes);
  for (auto group = cutter.next(); !group.empty(); group = cutter.next())
    groups.push_back(std::move(group));
  return groups;
}

TEST(Pieces, AreCutIntoBoundedGroups) {
  const Manifest manifest = {{.path = "a", .size = 5},
                             {.path = "b", .size = 0},
                             {.path = "c", .size = 2 * kMost},
                             {.path = "d", .kind = Kind::link, .target = "a"},
                             {.path = "e", .size = 1}};
  const auto groups = cut(manifest, kMost);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0], (std::vector<Range>{{0, 0, 5}, {1, 0, 0}, {2, 0, kMost - 5}}));
  EXPECT_EQ(groups[1], (std::vector<Range>{{2, kMost - 5, kMost}}));
  EXPECT_EQ(groups[2], (std::vector<Range>{{2, 2 * kMost - 5, 5}, {3, 0, 0}, {4, 0, 1}}));
  EXPECT_TRUE(cut({}, kMost).empty());
  const Manifest many(kMostPieces + 1, Entry{.path = "x"});
  EXPECT_EQ(cut(many, kMost).size(), 2U);
}

TEST(Pieces, AFileOfAnySizeIsCutOneGroupAtATime) {
  const Manifest manifest = {{.path = "a", .size = 1ULL << 62}, {.path = "b", .size = 1}};
  Cutter cutter(manifest, kMost);
  for (std::uint64_t i = 0; i < 3; ++i)
    EXPECT_EQ(cutter.next(), (std::vector<Range>{{0, i * kMost, kMost}}));
}

TEST(Pieces, DeliveriesComeBackAsTheyWere) {
  const Delivery delivery{.destination = "x",
                          .owner = {"laptop", "/x"},
                          .pieces = {{{.path = "a", .size = 10, .mtime_ns = 3}, 2, "12345678"},
                                     {{.path = "b", .kind = Kind::link, .target = "a"}, 0, ""}}};
  const std::string bytes = encode_delivery(delivery);
  const auto read = decode_delivery(bytes).value();
  EXPECT_EQ(read.pieces, delivery.pieces);
  EXPECT_EQ(read.owner, delivery.owner);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_delivery(bytes.substr(0, size))) << size;
  // More bytes than the file has, and an offset behind its end.
  EXPECT_FALSE(decode_delivery(encode_delivery({.pieces = {{{.path = "a", .size = 1}, 0, "12"}}})));
  EXPECT_FALSE(decode_delivery(encode_delivery({.pieces = {{{.path = "a", .size = 1}, 2, ""}}})));
  EXPECT_FALSE(decode_delivery(encode_delivery({.pieces = {{{.path = "../a"}, 0, ""}}})));
}

TEST(Pieces, AStreamOfDeliveriesMayComeInAnyParts) {
  const Delivery first{.destination = "x", .pieces = {{{.path = "a", .size = 3}, 0, "123"}}};
  const Delivery second{.destination = "x", .pieces = {{{.path = "b", .size = 2}, 0, "45"}}};
  const std::string stream = frame_delivery(first) + frame_delivery(second);
  for (std::size_t part = 1; part <= stream.size(); ++part) {
    DeliveryReader reader;
    std::vector<Delivery> read;
    for (std::size_t at = 0; at < stream.size(); at += part) {
      reader.put(std::string_view(stream).substr(at, part));
      while (auto each = reader.next().value())
        read.push_back(std::move(*each));
    }
    ASSERT_EQ(read.size(), 2U) << part;
    EXPECT_EQ(read[0].pieces, first.pieces);
    EXPECT_EQ(read[1].pieces, second.pieces);
    EXPECT_TRUE(reader.at_border());
    reader.put("x");
    EXPECT_FALSE(reader.at_border());
    EXPECT_FALSE(reader.next().value());
  }
  DeliveryReader reader;
  reader.put("\xff\xff\xff\x7f");
  EXPECT_FALSE(reader.next());  // larger than any delivery
}

TEST(Pieces, WishesComeBackAsTheyWere) {
  const Wish wish{.destination = "x",
                  .path = "out",
                  .pieces = {{{.path = "a", .size = 10}, 4}},
                  .lengths = {6}};
  const std::string bytes = encode_wish(wish);
  const auto read = decode_wish(bytes).value();
  EXPECT_EQ(read.pieces, wish.pieces);
  EXPECT_EQ(read.lengths, wish.lengths);
  EXPECT_EQ(read.path, "out");
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_wish(bytes.substr(0, size))) << size;
  EXPECT_FALSE(decode_wish(encode_wish({.path = "../x"})));
  EXPECT_FALSE(decode_wish(
      encode_wish({.pieces = {{{.path = "a", .size = 10}, 0}}, .lengths = {kMost + 1}})));
}

TEST(Pieces, AnswersAndErrorsComeBackAsTheyWere) {
  const Manifest manifest = {{.path = "a", .size = 1}};
  EXPECT_EQ(decode_listing(encode_listing(manifest)).value(), manifest);
  const auto failed = decode_listing(encode_listing(fail(Errc::denied, "no\nway", "do")));
  EXPECT_EQ(failed.error().message, "no\\x0away");
  EXPECT_EQ(failed.error().hint, "do");
  EXPECT_EQ(code_of(failed), Errc::unavailable);
  EXPECT_EQ(code_of(decode_listing(encode_listing(fail(Errc::not_found, "none")))),
            Errc::not_found);
  const std::vector<std::string> contents = {"", std::string("a\0b", 3)};
  EXPECT_EQ(decode_contents(encode_contents(contents)).value(), contents);
  EXPECT_FALSE(decode_contents(encode_contents(fail(Errc::denied, "no"))));
  EXPECT_FALSE(decode_listing("x"));
  // A host cannot name files outside the tree.
  for (const char* path : {"../x", "/etc/x", "a/../../x", ".git/hooks/x"})
    EXPECT_FALSE(decode_listing(encode_listing(Manifest{{.path = path}}))) << path;
}

}  // namespace
}  // namespace lockstep::sync
