// Asks Google's API, with an access token.
#pragma once

#include "cloud/gcp/api_error.h"
#include "cloud/gcp/token.h"
#include "cloud/web.h"
#include "codec/json.h"

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace lockstep::cloud::gcp {

struct ApiCall {
  enum class Host { compute, billing, resource_manager };

  std::string_view method = "GET";
  std::string target = {};  // path and query, percent-encoded
  std::string body = {};
  std::string_view shown = {};  // "the list of machines"
  std::chrono::milliseconds timeout{10'000};
  std::chrono::milliseconds patience{20'000};  // all tries and pauses together
  std::size_t values = 200'000;                // most JSON values in an answer
  Host host = Host::compute;
};

using ApiAnswer = Asked<nlohmann::json>;

class Api {
 public:
  Api(Credentials credentials, const Ground& ground);

  // Retries a call that changes something after a passing refusal: a launch has a requestId, and
  // every other call leads to the same state. After a lost answer retries only GET, since the
  // caller must first look for machines that the launch made.
  ApiAnswer ask(Web& web, const ApiCall& call);

  // Passes each page of a list to `take`, which returns false to end early.
  Asked<void> ask_pages(Web& web, ApiCall call, int most_pages,
                        const std::function<bool(const nlohmann::json&)>& take);

  // Waits until the operation of an answer is done. Fails with the operation's own error, or as
  // unanswered if the operation is not done in time.
  Asked<void> wait(Web& web, nlohmann::json operation, std::chrono::milliseconds patience);

  // "/compute/v1/projects/P/zones/..."
  std::string path(std::string_view rest) const;
  const std::string& project() const { return tokens_.credentials().project; }
  const Credentials& credentials() const { return tokens_.credentials(); }

 private:
  class Try;

  Tokens tokens_;
  std::string endpoint_;  // replaces all of Google's addresses; "": none
  double pace_;
};

}  // namespace lockstep::cloud::gcp
