#include "codec/kineto.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace lockstep::codec {
namespace {

using Kind = KinetoMessage::Kind;

template <class Number>
void put(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// As libkineto builds a message: memory that it does not set may hold anything behind the type.
std::string datagram(const char* type, const std::string& payload) {
  std::string bytes;
  put(bytes, std::uint64_t{payload.size()});
  std::string name(32, '\0');
  std::memcpy(name.data(), type, std::strlen(type));
  return bytes + name + payload;
}

std::string poll(const std::vector<std::int32_t>& pids, std::int32_t type = 3) {
  std::string payload;
  put(payload, type);
  put(payload, static_cast<std::int32_t>(pids.size()));
  put(payload, std::int64_t{0});
  for (const std::int32_t pid : pids)
    put(payload, pid);
  return payload;
}

std::string hello(std::int32_t pid) {
  std::string payload;
  put(payload, std::int32_t{0});
  put(payload, pid);
  put(payload, std::int64_t{7});
  return payload;
}

TEST(Kineto, ReadsBothKinds) {
  const auto greeting = read_kineto_message(datagram("ctxt", hello(4711)));
  ASSERT_TRUE(greeting);
  EXPECT_EQ(greeting->kind, Kind::hello);
  EXPECT_EQ(greeting->pid, 4711);
  const auto asked = read_kineto_message(datagram("req", poll({4711, 12, 1})));
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->kind, Kind::poll);
  EXPECT_EQ(asked->pid, 4711);
  EXPECT_TRUE(asked->idle);
  EXPECT_FALSE(read_kineto_message(datagram("req", poll({1}, 1)))->idle);
}

TEST(Kineto, RefusesEverythingElse) {
  const std::string good = datagram("req", poll({1, 2}));
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(read_kineto_message(std::string_view(good).substr(0, size))) << size;
  EXPECT_FALSE(read_kineto_message(good + "x"));
  EXPECT_FALSE(read_kineto_message(datagram("reqs", poll({1}))));
  EXPECT_FALSE(read_kineto_message(datagram("", hello(1))));
  EXPECT_FALSE(read_kineto_message(datagram("ctxt", poll({1}))));
  EXPECT_FALSE(read_kineto_message(datagram("req", poll({}))));
  std::string lies = poll({1});
  lies[4] = 100;  // more pids than there are
  EXPECT_FALSE(read_kineto_message(datagram("req", lies)));
  lies[7] = static_cast<char>(0xff);  // fewer than none
  EXPECT_FALSE(read_kineto_message(datagram("req", lies)));
  EXPECT_FALSE(read_kineto_message(datagram("req", poll(std::vector<std::int32_t>(1000)))));
}

TEST(Kineto, AnswersHaveTheHeader) {
  EXPECT_EQ(kineto_poll_answer("A=1\n"), datagram("req", "A=1\n"));
  EXPECT_EQ(kineto_poll_answer(""), datagram("req", ""));
  EXPECT_EQ(kineto_hello_answer(2), datagram("ctxt", std::string("\2\0\0\0", 4)));
}

TEST(Kineto, OrdersStepsOrTime) {
  EXPECT_EQ(kineto_config({.file = "/tmp/p/a.json", .steps = 5, .multiple = 100}),
            "ACTIVITIES_LOG_FILE=/tmp/p/a.json\nPROFILE_START_ITERATION=0\n"
            "PROFILE_START_ITERATION_ROUNDUP=100\nACTIVITIES_ITERATIONS=5\n");
  EXPECT_EQ(kineto_config({.file = "/tmp/p/a.json", .millis = 2500, .start_ms = 1'000}),
            "ACTIVITIES_LOG_FILE=/tmp/p/a.json\nPROFILE_START_TIME=1000\n"
            "ACTIVITIES_WARMUP_PERIOD_SECS=2\nACTIVITIES_DURATION_MSECS=2500\n");
  EXPECT_EQ(kineto_config({.file = "/a.json", .millis = 1}),
            "ACTIVITIES_LOG_FILE=/a.json\nACTIVITIES_DURATION_MSECS=1\n");
}

TEST(Kineto, KnowsTheNamesOfClients) {
  EXPECT_TRUE(is_kineto_client("dynoconfigclient9f3a2b1c-0000-4000-8000-0123456789ab"));
  for (const char* bad :
       {"", "dynolog", "dynoconfigclient", "dynoconfigclient/../x", "dynoconfigclientz",
        "dynoconfigclient9f3a2b1c-0000-4000-8000-0123456789ab0"})
    EXPECT_FALSE(is_kineto_client(bad)) << bad;
}

}  // namespace
}  // namespace lockstep::codec
