// Tables that CPython made of one function (8 lines below 300 others), with what
// dis.findlinestarts() or co_lines() of the same version say.
#include "stacks/line_table.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace lockstep::stacks {
namespace {

using Bytes = std::vector<std::uint8_t>;
constexpr int kFirst = 302;

struct Range {
  int start;
  int end;
  int line;  // 0: none
};

void expect_lines(LineTable kind, const Bytes& table, const std::vector<Range>& ranges) {
  for (const Range& range : ranges)
    for (int at = range.start; at < range.end; ++at)
      ASSERT_EQ(line_at(kind, table, kFirst, at), range.line) << "at " << at;
  EXPECT_EQ(line_at(kind, table, kFirst, -1), kFirst);
}

TEST(LineTable, OfPython39) {
  const Bytes table = {0, 3,   2, 1, 2, 254, 4, 4, 4, 1,   12, 2, 4,  1,
                       2, 255, 6, 2, 2, 1,   2, 1, 2, 255, 8,  2, 12, 1};
  expect_lines(LineTable::lnotab, table,
               {{0, 2, 305},
                {2, 4, 306},
                {4, 8, 304},
                {8, 12, 308},
                {12, 24, 309},
                {24, 28, 311},
                {28, 30, 312},
                {30, 36, 311},
                {36, 38, 313},
                {38, 40, 314},
                {40, 42, 315},
                {42, 50, 314},
                {50, 62, 316},
                {62, 76, 317}});
}

TEST(LineTable, OfPython310) {
  const Bytes table = {2,   3, 2, 1, 4, 254, 4, 4, 12,  1,  4, 2, 2, 1, 6,
                       255, 2, 2, 2, 1, 2,   1, 4, 255, 12, 2, 8, 1, 2, 255};
  expect_lines(LineTable::line_deltas, table,
               {{0, 2, 305},
                {2, 4, 306},
                {4, 8, 304},
                {8, 12, 308},
                {12, 24, 309},
                {24, 28, 311},
                {28, 30, 312},
                {30, 36, 311},
                {36, 38, 313},
                {38, 40, 314},
                {40, 42, 315},
                {42, 46, 314},
                {46, 58, 316},
                {58, 66, 317},
                {66, 68, 316},
                {68, 70, 0}});
}

TEST(LineTable, OfPython310WithoutALine) {
  expect_lines(LineTable::line_deltas, {4, 1, 2, 128, 2, 1}, {{0, 4, 303}, {4, 6, 0}, {6, 8, 304}});
}

TEST(LineTable, OfPython312) {
  const Bytes table = {128, 0,   240, 6,   0,   9,   10,  216, 8,   9,   240, 5,   3,   9,
                       6,   128, 65,  241, 8,   0,   8,   9,   220, 17,  22,  144, 113, 147,
                       24,  242, 0,   3,   9,   19,  136, 65,  224, 12,  13,  143, 72,  137,
                       72,  216, 16,  17,  245, 3,   1,   13,  19,  240, 5,   3,   9,   19,
                       240, 8,   4,   5,   17,  220, 14,  24,  216, 10,  13,  243, 3,   1,
                       15,  15,  240, 0,   1,   9,   15,  248, 228, 11,  21,  242, 0,   1,
                       5,   17,  216, 15,  16,  138, 8,   240, 3,   1,   5,   17,  250};
  expect_lines(LineTable::locations, table,
               {{0, 2, 302},     {2, 4, 305},     {4, 6, 306},     {6, 10, 304},   {10, 14, 308},
                {14, 42, 309},   {42, 64, 311},   {64, 66, 312},   {66, 78, 311},  {78, 80, 309},
                {80, 82, 313},   {82, 92, 314},   {92, 94, 315},   {94, 104, 314}, {104, 106, 0},
                {106, 122, 316}, {122, 130, 317}, {130, 132, 316}, {132, 138, 0},  {138, 140, 0}});
}

// Each entry is eight units long. The increments: 1 by kind 11, 2 by kind 12, 70 by a number of two
// bytes, -3 by kind 13 (no columns).
TEST(LineTable, KindsOfLocations) {
  const auto entry = [](int kind) { return static_cast<std::uint8_t>(0x80 | kind << 3 | 7); };
  const Bytes table = {entry(11), 0, 0, entry(12), 0,    0,         entry(14), 0x40 | 0x0c, 0x02,
                       0,         0, 0, entry(13), 0x07, entry(15), entry(10), 0,           0};
  expect_lines(
      LineTable::locations, table,
      {{0, 16, 303}, {16, 32, 305}, {32, 48, 375}, {48, 64, 372}, {64, 80, 0}, {80, 96, 372}});
}

TEST(LineTable, TakesAnyBytes) {
  for (const LineTable kind : {LineTable::lnotab, LineTable::line_deltas, LineTable::locations}) {
    EXPECT_EQ(line_at(kind, Bytes{255}, 7, 1 << 20), kind == LineTable::lnotab ? 7 : 0);
    EXPECT_EQ(line_at(kind, {}, -7, -1), 0);
    // Lines below 1 and above the largest int are unknown.
    const Bytes down(400, 0x80);
    EXPECT_GE(line_at(kind, down, 5, 399), 0);
    Bytes up(3000);
    for (std::size_t i = 0; i < up.size(); ++i)
      up[i] = i % 12 == 0 ? 0xf0 : 0x7f;
    EXPECT_GE(line_at(kind, up, 2'000'000'000, 400), 0);
  }
}

}  // namespace
}  // namespace lockstep::stacks
