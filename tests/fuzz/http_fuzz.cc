// The HTTP request parser on any bytes in any pieces: the same outcome whole and split, and only
// clean values once complete.
#include "base/error.h"
#include "http/request_parse.h"

#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <string_view>

using lockstep::http::RequestParser;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  RequestParser whole;
  whole.feed(bytes);
  RequestParser pieces;
  const size_t step = std::max<size_t>(data[0], 1);
  for (size_t at = 0; at < bytes.size(); at += step)
    pieces.feed(bytes.substr(at, step));
  LOCKSTEP_CHECK(whole.state() == pieces.state());
  LOCKSTEP_CHECK(whole.error_status() == pieces.error_status());
  if (whole.state() != RequestParser::State::complete) return 0;
  LOCKSTEP_CHECK(whole.request().path == pieces.request().path);
  LOCKSTEP_CHECK(whole.request().path.starts_with('/'));
  LOCKSTEP_CHECK(whole.request().query.find('\n') == std::string::npos);
  return 0;
}
