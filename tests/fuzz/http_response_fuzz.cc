// The HTTP response parser on any bytes in any pieces: the same outcome whole and split, and never
// more body than bytes.
#include "base/error.h"
#include "http/response_parse.h"

#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <string>
#include <string_view>

using lockstep::http::ResponseParser;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const bool end = (data[1] & 1) != 0;
  const bool head = (data[1] & 2) != 0;
  ResponseParser whole(head);
  std::string whole_body;
  const size_t taken = whole.feed(bytes, whole_body);
  ResponseParser pieces(head);
  std::string pieces_body;
  size_t pieces_taken = 0;
  const size_t step = std::max<size_t>(data[0], 1);
  for (size_t at = 0; at < bytes.size(); at += step)
    pieces_taken += pieces.feed(bytes.substr(at, step), pieces_body);
  if (end) {
    whole.end();
    pieces.end();
  }
  LOCKSTEP_CHECK(whole.state() == pieces.state());
  LOCKSTEP_CHECK(whole.error() == pieces.error());
  LOCKSTEP_CHECK(whole_body == pieces_body);
  LOCKSTEP_CHECK(taken <= bytes.size() && whole_body.size() <= bytes.size());
  if (whole.state() == ResponseParser::State::complete) {
    LOCKSTEP_CHECK(whole.head().status >= 200 && whole.head().status <= 999);
    LOCKSTEP_CHECK(whole.keep_alive() == pieces.keep_alive());
    LOCKSTEP_CHECK(taken == pieces_taken);
  }
  return 0;
}
