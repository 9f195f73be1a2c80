#include "peer/peer_wire.h"

#include "peer/length.h"

#include <gtest/gtest.h>

namespace lockstep::peer {
namespace {

using sync::Entry;
using sync::Kind;
using sync::Manifest;
using Means = Intake::Means;

const Manifest kGroup = {{.path = "a", .size = 10}, {.path = "b", .size = kMostPieceBytes + 1}};

TEST(PeerWire, OnlyFilesWithContentAreAskedFor) {
  const Manifest needed = {{.path = "a", .size = 5},
                           {.path = "b", .size = 0},
                           {.path = "c", .kind = Kind::link, .target = "a"},
                           {.path = "d", .size = 1}};
  const auto groups = groups_of(needed);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0], (Manifest{needed[0], needed[3]}));
  EXPECT_TRUE(groups_of({}).empty());
  EXPECT_EQ(groups_of(Manifest(kMostGroupEntries + 1, needed[0])).size(), 2U);
  const Manifest long_ones(kMostGroupEntries, Entry{.path = std::string(4000, 'x'), .size = 1});
  for (const Manifest& group : groups_of(long_ones))
    EXPECT_LE(encode_wish(group).size(), kMostWishBytes + kLengthBytes);
}

TEST(PeerWire, WishesComeBackAsTheyWere) {
  const std::string bytes = encode_wish(kGroup);
  const std::string body = bytes.substr(kLengthBytes);
  EXPECT_EQ(length_in(bytes.substr(0, kLengthBytes), kMostWishBytes), body.size());
  EXPECT_EQ(decode_wish(body).value(), kGroup);
  for (std::size_t cut = 0; cut < body.size(); ++cut)
    EXPECT_FALSE(decode_wish(body.substr(0, cut))) << cut;
  EXPECT_FALSE(decode_wish(body + "x"));
  EXPECT_FALSE(length_in("\xFF\xFF\xFF\xFF", kMostWishBytes));
  const auto refused = [](const Entry& entry) {
    return !decode_wish(encode_wish({entry}).substr(kLengthBytes));
  };
  EXPECT_TRUE(refused({.path = "../a", .size = 1}));
  EXPECT_TRUE(refused({.path = "a", .size = 0}));
  EXPECT_TRUE(refused({.path = "a", .kind = Kind::link, .target = "b"}));
}

TEST(Intake, FilesComeInAnyOrderEachInOneGo) {
  Intake intake(kGroup);
  EXPECT_EQ(intake.take({})->means, Means::wait);
  auto next = intake.take({1, kMostPieceBytes}).value();
  EXPECT_EQ(next.means, Means::piece);
  EXPECT_EQ(next.entry->path, "b");
  EXPECT_FALSE(next.whole);
  next = intake.take({1, 1}).value();
  EXPECT_EQ(next.offset, kMostPieceBytes);
  EXPECT_TRUE(next.whole);
  EXPECT_FALSE(intake.done());
  next = intake.take({0, 4}).value();
  EXPECT_EQ(next.offset, 0U);
  next = intake.take({0, 0}).value();
  EXPECT_EQ(next.means, Means::gone);
  EXPECT_EQ(next.offset, 4U);
  EXPECT_TRUE(intake.done());
}

TEST(Intake, BelievesNothing) {
  Intake intake(kGroup);
  EXPECT_FALSE(intake.take({2, 1}));                    // no such file
  EXPECT_FALSE(intake.take({0, 11}));                   // longer than the file
  EXPECT_FALSE(intake.take({1, kMostPieceBytes + 1}));  // longer than a piece
  EXPECT_FALSE(intake.take({PieceHead::kAlive, 1}));
  ASSERT_TRUE(intake.take({0, 4}));
  EXPECT_FALSE(intake.take({1, 1}));  // between the pieces of another file
  EXPECT_FALSE(intake.take({0, 7}));  // longer than the rest of the file
  ASSERT_TRUE(intake.take({0, 6}));
  EXPECT_FALSE(intake.take({0, 1}));  // the same file twice
  EXPECT_FALSE(intake.take({0, 0}));
}

TEST(PeerWire, HeadsComeBackAsTheyWere) {
  const std::string bytes = encode_head({7, 9});
  ASSERT_EQ(bytes.size(), kPieceHead);
  EXPECT_EQ(decode_head(bytes).index, 7U);
  EXPECT_EQ(decode_head(bytes).length, 9U);
}

}  // namespace
}  // namespace lockstep::peer
