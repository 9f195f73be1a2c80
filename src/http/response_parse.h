// HTTP/1 responses as a client gets them: pure, fed with bytes as they come, in any pieces. Bodies
// are passed on as they arrive, whether their end is known by length, by chunks or by the end of
// the connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::http {

struct Field {
  std::string name;  // in small letters
  std::string value;
};

struct ResponseHead {
  int status = 0;
  std::vector<Field> fields;

  // The first field of that name (small letters), "" where there is none.
  std::string_view field(std::string_view name) const;
};

class ResponseParser {
 public:
  static constexpr std::size_t kHeadLimit = 32 << 10;  // bytes of all heads and trailers
  static constexpr std::size_t kLineLimit = 16 << 10;

  enum class State { head, body, complete, bad };

  explicit ResponseParser(bool to_head_request = false) : bodiless_(to_head_request) {}

  // Takes what belongs to this response and appends its body, decoded, to `body`. Returns how many
  // bytes it took: all of them until the response is complete.
  std::size_t feed(std::string_view bytes, std::string& body);
  // The connection has ended.
  State end();

  State state() const { return state_; }
  const ResponseHead& head() const { return head_; }   // from State::body on
  const std::string& error() const { return error_; }  // once bad
  bool keep_alive() const { return keep_alive_; }      // once complete: another may follow
  bool empty() const { return head_bytes_ == 0; }      // not a byte has come

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
  std::string line_;            // a line whose end has not come yet
  std::size_t head_bytes_ = 0;  // counts towards kHeadLimit
  std::uint64_t left_ = 0;      // of a body with a length, or of a chunk
  bool http_1_0_ = false;
  bool keep_alive_ = true;
};

}  // namespace lockstep::http
