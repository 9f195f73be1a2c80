// Parses HTTP/1 requests for a server that answers GET and HEAD and then closes. Pure: fed with
// bytes as they arrive. Interprets only the request line. Header fields are checked for form and
// kept for the handlers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::http {

struct Request {
  std::string method;  // as sent: "GET"
  std::string path;    // "/metrics": decoded, without the query
  std::string query;   // the part after '?', not decoded
  std::vector<std::pair<std::string, std::string>> fields = {};  // names in lower case

  // Returns the value of a field, "" without one. Several fields of one name are joined by ", ", so
  // a second Host or Origin cannot hide behind the first.
  std::string field(std::string_view name) const;
};

class RequestParser {
 public:
  static constexpr std::size_t kLimit = 8 << 10;  // bytes up to the empty line

  enum class State { more, complete, bad };

  // Feeds bytes. Ignores bytes after the end of the request, and all bytes once the state is not
  // `more`.
  State feed(std::string_view bytes);
  State state() const { return state_; }
  const Request& request() const { return request_; }  // valid once complete
  // Valid once bad: 400 (not HTTP), 414 (the target alone exceeds the limit), 431 (the fields
  // exceed the limit), 505 (another version).
  int error_status() const { return error_status_; }

 private:
  State fail_with(int status);
  State finish();
  int parse_request_line(std::string_view line);
  bool parse_field(std::string_view line);

  State state_ = State::more;
  int error_status_ = 0;
  std::string bytes_;
  Request request_;
};

struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> fields = {};  // more of them
  // The body goes on: the client becomes a viewer (server.h). The answer has no length.
  bool goes_on = false;
};

// Prints the status line, the headers with Connection: close, and the body unless `head_only`.
std::string print_response(const Response& response, bool head_only);

std::string_view reason_phrase(int status);

}  // namespace lockstep::http
