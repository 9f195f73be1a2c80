// AWS Signature Version 4 in the Authorization header: pure, the clock and the keys are given.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::codec {

using HeaderFields = std::vector<std::pair<std::string, std::string>>;

struct SigV4Key {
  std::string id;
  std::string secret;
  std::string session_token = {};  // signed as well where there is one
};

struct SigV4Request {
  // Services other than S3 take "/a/./b//" for "/a/b/".
  enum class Path { normalized, as_is };

  std::string region;
  std::string service;
  std::int64_t unix_time = 0;
  std::string method = "POST";
  std::string host;        // as the Host header has it
  std::string path = "/";  // as it goes over the wire
  std::string query = {};  // likewise, without '?'
  // All that are to be signed, besides those that sigv4_sign() gives back.
  HeaderFields headers = {};
  std::string body = {};
  Path normalize = Path::normalized;
};

// The headers to add: x-amz-date, x-amz-security-token where there is a session token,
// authorization.
HeaderFields sigv4_sign(const SigV4Key& key, const SigV4Request& request);

// "20150830T123600Z"; a time before 1970 or after 9999 counts as 1970.
std::string sigv4_time(std::int64_t unix_time);
// What is signed, for tests and for finding out why a server refuses.
std::string sigv4_canonical(const SigV4Key& key, const SigV4Request& request);

}  // namespace lockstep::codec
