#include "rendezvous/file_store/file_store_codec.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>

namespace lockstep::rendezvous::file_store {
namespace {
using namespace std::string_literals;

static_assert(std::endian::native == std::endian::little, "the vectors below are such files");

// Written by PyTorch 2.6: set k1, add ctr 5, add ctr -7, compare_set cas, delete k1, end.
const std::string kReal =
    "\x09\0\0\0refcount/\x01\0\0\0"
    "1\x03\0\0\0/k1\x02\0\0\0v1\x04\0\0\0/ctr\x01\0\0\0"
    "5\x04\0\0\0/ctr\x02\0\0\0-2\x04\0\0\0/cas\x01\0\0\0"
    "A\x04\0\0\0-/k1\0\0\0\0"
    "\x08\0\0\0cleanup/\x01\0\0\0"
    "1\x09\0\0\0refcount/\x01\0\0\0"
    "0"s;

std::string value(const FileStoreReader& reader, std::string_view key) {
  const std::string* found = reader.find(key);
  return found == nullptr ? "(none)" : *found;
}

TEST(FileStoreCodec, RealFileWholeAndByteByByte) {
  FileStoreReader whole;
  ASSERT_TRUE(whole.feed(kReal));
  FileStoreReader bytes;
  for (const char byte : kReal)
    ASSERT_TRUE(bytes.feed({&byte, 1}));
  for (const FileStoreReader* reader : {&whole, &bytes}) {
    EXPECT_EQ(value(*reader, "ctr"), "-2");
    EXPECT_EQ(value(*reader, "cas"), "A");
    EXPECT_EQ(value(*reader, "k1"), "(none)");
    EXPECT_EQ(value(*reader, "cleanup/"), "(none)");
    EXPECT_EQ(reader->taken(), kReal.size());
    EXPECT_EQ(reader->size(), 4U);
    EXPECT_EQ(reader->rest(), 0U);
  }
}

TEST(FileStoreCodec, WritesWhatPyTorchWrites) {
  std::string out;
  ASSERT_TRUE(put_file_record(out, "k1", "v1"));
  ASSERT_TRUE(put_file_record(out, "", ""));
  EXPECT_EQ(out, "\x03\0\0\0/k1\x02\0\0\0v1\x01\0\0\0/\0\0\0\0"s);
  FileStoreReader reader;
  ASSERT_TRUE(reader.feed(out));
  EXPECT_EQ(value(reader, ""), "");
}

TEST(FileStoreCodec, AnUnfinishedRecordCanBeReadAgain) {
  FileStoreReader reader;
  std::string out;
  ASSERT_TRUE(put_file_record(out, "a", "1"));
  const std::size_t whole = out.size();
  ASSERT_TRUE(put_file_record(out, "b", "2"));
  ASSERT_TRUE(reader.feed(out.substr(0, out.size() - 1)));
  EXPECT_EQ(reader.taken(), whole);
  EXPECT_EQ(reader.rest(), out.size() - 1 - whole);
  EXPECT_EQ(value(reader, "b"), "(none)");
  reader.drop_rest();
  ASSERT_TRUE(reader.feed(out.substr(whole)));
  EXPECT_EQ(value(reader, "b"), "2");
}

void expect_corrupt(const std::string& bytes, const char* why) {
  FileStoreReader reader(
      {.max_key_bytes = 16, .max_value_bytes = 1000, .max_keys = 3, .max_total_bytes = 1500});
  const auto fed = reader.feed(bytes);
  ASSERT_FALSE(fed) << why;
  EXPECT_EQ(code_of(fed), Errc::corrupt);
  EXPECT_NE(fed.error().message.find(why), std::string::npos) << fed.error().message;
}

TEST(FileStoreCodec, RefusesWhatIsNoSuchFile) {
  expect_corrupt("root:x:0:0:root:/root:/bin/bash\n", "a key claims");
  expect_corrupt(std::string(64, '\0'), "a key claims 0 bytes");
  expect_corrupt("\x11\0\0\0"s, "a key claims 17 bytes");
  expect_corrupt("\x03\0\0\0abc"s, "does not begin");
  expect_corrupt("\x08\0\0\0clear"s, "does not begin");
  expect_corrupt("\x09\0\0\0cleanup/"s, "does not begin");
  expect_corrupt("\x01\0\0\0-"s, "no name");
  expect_corrupt("\x02\0\0\0/a\xe9\x03\0\0"s, "a value claims 1001 bytes");
  expect_corrupt("\x02\0\0\0/a\xff\xff\xff\xff"s, "a value claims 4294967295 bytes");
}

TEST(FileStoreCodec, BoundsWhatIsPresentAtOnce) {
  std::string big;
  std::string many;
  for (const char* key : {"a", "b"})
    ASSERT_TRUE(put_file_record(big, key, std::string(900, 'x')));
  for (const char* key : {"a", "b", "c", "d"})
    ASSERT_TRUE(put_file_record(many, key, ""));
  expect_corrupt(big, "too much");
  expect_corrupt(many, "too many keys");
  FileStoreReader reader({.max_key_bytes = 16, .max_value_bytes = 1000, .max_total_bytes = 1500});
  std::string again;
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(put_file_record(again, "a", std::string(900, 'x')));
  EXPECT_TRUE(reader.feed(again));  // replaced values do not count
}

TEST(FileStoreCodec, WritesNothingItWouldNotRead) {
  std::string out;
  EXPECT_FALSE(put_file_record(out, std::string(16, 'k'), "", {.max_key_bytes = 16}));
  EXPECT_FALSE(put_file_record(out, "k", "long", {.max_value_bytes = 3}));
  EXPECT_EQ(out, "");
}

}  // namespace
}  // namespace lockstep::rendezvous::file_store
