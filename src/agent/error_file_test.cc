#include "agent/error_file.h"

#include "io/fd.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace lockstep::agent {
namespace {

constexpr std::string_view kStructured =
    R"({"message": {"message": "ValueError: x", "extraInfo": {"py_callstack": "Traceback:\n  File\nValueError: x", "timestamp": "1790000000"}}})";

class ErrorFile : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lockstep_error_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    dir_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  std::string path(const char* name) const { return dir_ + "/" + name; }

  std::string dir_;
};

TEST(ErrorRecord, StructuredRecordShowsTheTraceback) {
  const auto record = parse_error_record(kStructured);
  EXPECT_EQ(record.form, ErrorRecord::Form::structured);
  EXPECT_EQ(record.text, "Traceback:\n  File\nValueError: x");
  EXPECT_EQ(record.message, "ValueError: x");
  EXPECT_EQ(record.time_ms, 1790000000000);
  EXPECT_EQ(record.bytes, kStructured);
}

TEST(ErrorRecord, StructuredRecordWithoutTracebackShowsTheMessage) {
  EXPECT_EQ(parse_error_record(R"({"message": {"message": "m"}})").text, "m");
  EXPECT_EQ(parse_error_record(R"({"message": {}})").text, "<N/A>");
  EXPECT_EQ(parse_error_record(R"({"message": {"extraInfo": 3, "message": [1]}})").text, "[1]");
}

TEST(ErrorRecord, PlainMessage) {
  const auto record = parse_error_record(R"({"message": "text", "timestamp": 12})");
  EXPECT_EQ(record.form, ErrorRecord::Form::plain);
  EXPECT_EQ(record.text, "text");
  EXPECT_EQ(record.time_ms, 12000);
  EXPECT_EQ(parse_error_record(R"({"message": "text", "timestamp": "x"})").time_ms, std::nullopt);
  EXPECT_EQ(parse_error_record(R"({"message": "text", "timestamp": 1e300})").time_ms, std::nullopt);
}

TEST(ErrorRecord, AnythingElseIsShownRaw) {
  for (const char* bytes :
       {"Segfault at 3", "[1, 2]", "{\"message\": 7}", "{\"other\": \"x\"}", "null"}) {
    const auto record = parse_error_record(bytes);
    EXPECT_EQ(record.form, ErrorRecord::Form::raw) << bytes;
    EXPECT_EQ(record.text, bytes);
  }
}

TEST(ErrorRecord, DeepNestingIsNotFollowed) {
  const std::string deep =
      R"({"message": {"message": )" + std::string(200000, '[') + std::string(200000, ']') + "}}";
  const auto record = parse_error_record(deep);
  EXPECT_EQ(record.form, ErrorRecord::Form::raw);
  EXPECT_LE(record.text.size(), kErrorTextLimit);
  EXPECT_FALSE(with_error_code(record, 1).empty());
  EXPECT_EQ(parse_error_record("{\"message\": \"" + std::string(100, '[') + "\"}").form,
            ErrorRecord::Form::plain);
}

// The agent parses this on its loop. An earlier version took half a minute.
TEST(ErrorRecord, ManyMembersAreReadAndKeepTheirOrder) {
  std::string text = R"({"message":{"message":"x")";
  for (int i = 110'000; i > 0; --i)
    text += ",\"" + std::to_string(i) + "\":0";
  text += "}}";
  ASSERT_LE(text.size(), kErrorFileLimit * 2);
  text.resize(std::min(text.size(), kErrorFileLimit));
  text.resize(text.rfind(','));
  text += "}}";
  const auto record = parse_error_record(text);
  EXPECT_EQ(record.form, ErrorRecord::Form::structured);
  EXPECT_EQ(record.message, "x");
  EXPECT_EQ(with_error_code(record, 3), text.substr(0, text.size() - 2) + R"(,"errorCode":3}})");
}

TEST(ErrorRecord, LongTextKeepsBothEnds) {
  const std::string text = "first" + std::string(300000, 'x') + "last";
  const auto record = parse_error_record(text);
  EXPECT_LE(record.text.size(), kErrorTextLimit);
  EXPECT_TRUE(record.text.starts_with("firstxx"));
  EXPECT_TRUE(record.text.ends_with("xxlast"));
  EXPECT_NE(record.text.find("bytes left out"), std::string::npos);
}

TEST(ErrorRecord, ErrorCodeIsAddedToObjects) {
  EXPECT_EQ(with_error_code(parse_error_record(R"({"message": {"message": "m"}})"), 3),
            R"({"message":{"message":"m","errorCode":3}})");
  EXPECT_EQ(with_error_code(parse_error_record(R"({"message": {"message": "m"}})"), 0),
            R"({"message":{"message":"m"}})");
  EXPECT_EQ(with_error_code(parse_error_record(R"({"message": "m"})"), 3), R"({"message":"m"})");
  EXPECT_EQ(with_error_code(parse_error_record("boom\xff"), -9),
            "{\"message\":{\"message\":\"boom\\ufffd\",\"errorCode\":-9}}");
}

TEST_F(ErrorFile, MissingEmptyAndSpecialFilesAreNone) {
  EXPECT_FALSE(read_error_file(path("none")));
  ASSERT_TRUE(io::write_file(path("empty"), ""));
  EXPECT_FALSE(read_error_file(path("empty")));
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_FALSE(read_error_file(path("fifo")));
  EXPECT_FALSE(read_error_file("/dev/null"));
}

TEST_F(ErrorFile, FileTimeRefinesTheRecord) {
  ASSERT_TRUE(io::write_file(path("e"), kStructured));
  timespec times[2] = {{1790000000, 0}, {1790000001, 250000000}};
  ASSERT_EQ(utimensat(AT_FDCWD, path("e").c_str(), times, 0), 0);
  EXPECT_EQ(read_error_file(path("e"))->time_ms, 1790000001250);
  times[1].tv_sec = 1790000100;  // copied later: the time in the record is better
  ASSERT_EQ(utimensat(AT_FDCWD, path("e").c_str(), times, 0), 0);
  EXPECT_EQ(read_error_file(path("e"))->time_ms, 1790000000000);
}

TEST_F(ErrorFile, ALinkPlantedWhereADraftCouldBeIsNotWrittenThrough) {
  ASSERT_TRUE(io::write_file(path("victim"), "precious"));
  const std::string guess = path("e") + "." + std::to_string(getpid()) + ".tmp";
  ASSERT_EQ(symlink("victim", guess.c_str()), 0);
  ASSERT_TRUE(write_error_file(path("e"), "new"));
  EXPECT_EQ(*io::read_file(path("victim")), "precious");
}

TEST_F(ErrorFile, WritingReplacesAndLeavesNoDraft) {
  ASSERT_TRUE(io::write_file(path("e"), "old and longer"));
  ASSERT_TRUE(write_error_file(path("e"), "new"));
  EXPECT_EQ(*io::read_file(path("e")), "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_), {}), 1);
  EXPECT_TRUE(write_error_file("/dev/null", "x"));
  EXPECT_FALSE(write_error_file(path("no/such"), "x"));
}

}  // namespace
}  // namespace lockstep::agent
