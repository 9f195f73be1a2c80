#include "codec/rdzv_endpoint.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

namespace lockstep::codec {
namespace {

TEST(RdzvEndpoint, Reads) {
  const struct {
    const char* text;
    const char* host;
    int port;
  } rows[] = {
      {"", "localhost", 7},
      {"  ", "localhost", 7},
      {"node1", "node1", 7},
      {" node1.example:29400 ", "node1.example", 29400},
      {"localhost:0", "localhost", 0},
      {"h:65535", "h", 65535},
      {"h:00080", "h", 80},
      {"10.0.0.1:1", "10.0.0.1", 1},
      {"[::1]", "::1", 7},
      {"[fe80::1]:29500", "fe80::1", 29500},
      {"::1", ":", 1},  // torchrun's own misreading
      {"my_host-2:5", "my_host-2", 5},
  };
  for (const auto& row : rows) {
    const auto endpoint = parse_rdzv_endpoint(row.text, 7);
    ASSERT_TRUE(endpoint) << row.text << ": " << endpoint.error().message;
    EXPECT_EQ(endpoint->host, row.host) << row.text;
    EXPECT_EQ(endpoint->port, row.port) << row.text;
  }
}

TEST(RdzvEndpoint, Refuses) {
  const struct {
    const char* text;
    const char* words;
  } rows[] = {
      {"h:", "must be an integer between 0 and 65536"},
      {"h:x", "must be an integer between 0 and 65536"},
      {"h:65536", "must be an integer between 0 and 65536"},
      {"h:100000", "must be an integer between 0 and 65536"},
      {"h:-1", "must be an integer between 0 and 65536"},
      {"h: 1", "must be an integer between 0 and 65536"},
      {":80", "must be a dot-separated list of labels"},
      {"a b:80", "must be a dot-separated list of labels"},
      {"http://h:80", "must be a dot-separated list of labels"},
      {"[]", "must be a dot-separated list of labels"},
      {"a\nb", "'a\\x0ab'"},
  };
  for (const auto& row : rows) {
    const auto endpoint = parse_rdzv_endpoint(row.text, 7);
    ASSERT_FALSE(endpoint) << row.text;
    EXPECT_EQ(code_of(endpoint), Errc::invalid_input);
    EXPECT_NE(endpoint.error().message.find(row.words), std::string::npos)
        << endpoint.error().message;
  }
}

}  // namespace
}  // namespace lockstep::codec
