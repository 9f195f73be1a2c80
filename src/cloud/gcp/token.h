// Access tokens: fetched with the credentials, and kept until five minutes before they expire.
#pragma once

#include "base/error.h"
#include "cloud/gcp/credentials.h"
#include "cloud/web.h"

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace lockstep::cloud::gcp {

class Tokens {
 public:
  explicit Tokens(Credentials credentials) : credentials_(std::move(credentials)) {}

  // Returns a token that is valid for some minutes. Thread-safe.
  Result<std::string> get(Web& web);
  // Drops a token that Google has refused: the next get() fetches another.
  void refused(std::string_view token);
  // Returns the text without keys and tokens.
  std::string clean(std::string text) const;

  const Credentials& credentials() const { return credentials_; }

 private:
  Status renew(Web& web);
  Result<std::string> ask_body(std::int64_t now_ms) const;

  const Credentials credentials_;
  mutable std::timed_mutex mutex_;
  std::string token_;
  std::int64_t until_ms_ = 0;
  std::int64_t skew_ms_ = 0;  // Google's clock minus ours
  Error failure_;             // the last renewal's, for threads that wait for the token
  std::int64_t failed_until_ms_ = 0;
};

}  // namespace lockstep::cloud::gcp
