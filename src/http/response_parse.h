// Parses HTTP/1 responses for a client. Pure: fed with bytes as they arrive, in any pieces. Passes
// on bodies as they arrive, no matter whether a length, chunks or the end of the connection ends
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::http {

struct Field {
  std::string name;  // in lower case
  std::string value;
};

struct ResponseHead {
  int status = 0;
  std::vector<Field> fields;

  // Returns the first field of that name (in lower case), or "".
  std::string_view field(std::string_view name) const;
};

class ResponseParser {
 public:
  static constexpr std::size_t kHeadLimit = 32 << 10;  // bytes of all heads and trailers
  static constexpr std::size_t kLineLimit = 16 << 10;

  enum class State { head, body, complete, bad };

  explicit ResponseParser(bool to_head_request = false) : bodiless_(to_head_request) {}

  // Takes the bytes of this response and appends its decoded body to `body`. Returns the number of
  // bytes taken: all of them until the response is complete.
  std::size_t feed(std::string_view bytes, std::string& body);
  // The connection has ended. Returns the final state.
  State end();

  State state() const { return state_; }
  const ResponseHead& head() const { return head_; }   // valid from State::body on
  const std::string& error() const { return error_; }  // valid once bad
  // Valid once complete: the connection can be reused.
  bool keep_alive() const { return keep_alive_; }
  bool empty() const { return head_bytes_ == 0; }  // not a single byte has arrived

 private:
  enum class Part { status, fields, length, chunk_size, chunk, chunk_end, trailers, rest };

  void take_line(std::string_view line);
  void take_status(std::string_view line);
  void take_field(std::string_view line);
  void take_chunk_size(std::string_view line);
  void head_done();
  void fail_with(std::string why);

  bool bodiless_;
  State state_ = State::head;
  Part part_ = Part::status;
  ResponseHead head_;
  std::string error_;
  std::string line_;            // an incomplete line
  std::size_t head_bytes_ = 0;  // counts towards kHeadLimit
  std::uint64_t left_ = 0;      // rest of a body with a length, or of a chunk
  bool http_1_0_ = false;
  bool keep_alive_ = true;
};

}  // namespace lockstep::http
