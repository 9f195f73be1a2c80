// The gate of the status page on any request: it opens only to a request that holds the token, and
// every answer is one whole head.
#include "base/error.h"
#include "http/request_parse.h"
#include "page/gate.h"

#include <stddef.h>
#include <stdint.h>

#include <string_view>

using lockstep::http::RequestParser;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  constexpr std::string_view kToken = "0123456789abcdef";
  static const lockstep::page::Gate gate(
      {.token = std::string(kToken), .bound = "10.0.0.7", .names = {"node-7"}});
  RequestParser parser;
  if (parser.feed(bytes) != RequestParser::State::complete) return 0;
  const auto refused = gate.turn_away(parser.request());
  const bool opens = !refused || refused->status < 400;
  LOCKSTEP_CHECK(!opens || bytes.find(kToken) != std::string_view::npos);
  if (!refused) return 0;
  const std::string answer = lockstep::http::print_response(*refused, true);
  LOCKSTEP_CHECK(answer.find("\r\n\r\n") == answer.size() - 4);
  return 0;
}
