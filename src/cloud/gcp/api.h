// Questions to Google's API: with a token, again after a pause where that does no harm, and with
// one kind of error.
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
  std::string target = {};  // path and query, coded
  std::string body = {};
  std::string_view shown = {};  // "the list of machines"
  std::chrono::milliseconds timeout{10'000};
  std::chrono::milliseconds patience{20'000};  // of all tries together
  std::size_t values = 200'000;                // of JSON, in one answer
  Host host = Host::compute;
};

using ApiAnswer = tl::expected<nlohmann::json, ApiError>;

class Api {
 public:
  Api(Credentials credentials, const Ground& ground);

  // All that is asked may be asked twice: launches have a requestId, and the rest ends in the same
  // state.
  ApiAnswer ask(Web& web, const ApiCall& call);

  // Takes all pages of a list. take: false ends it.
  tl::expected<void, ApiError> ask_pages(Web& web, ApiCall call, int most_pages,
                                         const std::function<bool(const nlohmann::json&)>& take);

  // Of an answer that is an operation: until it is done. Errors are those that it ended with.
  tl::expected<void, ApiError> wait(Web& web, nlohmann::json operation,
                                    std::chrono::milliseconds patience);

  // "/compute/v1/projects/P/zones/..."
  std::string path(std::string_view rest) const;
  const std::string& project() const { return tokens_.credentials().project; }
  const Credentials& credentials() const { return tokens_.credentials(); }

 private:
  ApiAnswer ask_once(Web& web, const ApiCall& call, std::string& retry_after);

  Tokens tokens_;
  std::string endpoint_;  // in place of all of Google's; "" usually
  double pace_;
};

}  // namespace lockstep::cloud::gcp
