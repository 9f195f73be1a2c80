// AWS Signature Version 4 in the Authorization header. Pure: the caller gives time and keys.
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
  std::string session_token = {};  // also signed, if any
};

struct SigV4Request {
  // Services other than S3 treat "/a/./b//" as "/a/b/".
  enum class Path { normalized, as_is };

  std::string region;
  std::string service;
  std::int64_t unix_time = 0;
  std::string method = "POST";
  std::string host;        // as in the Host header
  std::string path = "/";  // as sent
  std::string query = {};  // as sent, without '?'
  // Further headers to be signed. sigv4_sign() adds its own.
  HeaderFields headers = {};
  std::string body = {};
  Path normalize = Path::normalized;
};

// Returns the headers to add: x-amz-date, x-amz-security-token with a session token, and
// authorization.
HeaderFields sigv4_sign(const SigV4Key& key, const SigV4Request& request);

// Formats "20150830T123600Z". A time before 1970 or after 9999 becomes 1970.
std::string sigv4_time(std::int64_t unix_time);
// Returns the text that is signed, for tests and for finding out why a server refuses.
std::string sigv4_canonical(const SigV4Key& key, const SigV4Request& request);

}  // namespace lockstep::codec
