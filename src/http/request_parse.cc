// Parses requests strictly and prints responses.
#include "http/request_parse.h"

#include "base/text.h"
#include "codec/url.h"
#include "http/token.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::http {
namespace {

// Removes one line from `text`, and drops its '\n' or "\r\n".
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Returns the end of the head (after the empty line), or npos.
std::size_t head_end(std::string_view bytes) {
  const std::size_t strict = bytes.find("\n\r\n");
  const std::size_t lax = bytes.find("\n\n");
  if (lax < strict) return lax + 2;
  return strict == std::string_view::npos ? strict : strict + 3;
}

}  // namespace

RequestParser::State RequestParser::feed(std::string_view bytes) {
  if (state_ != State::more) return state_;
  // Empty lines before the request line are allowed (RFC 9112).
  if (bytes_.empty()) bytes.remove_prefix(std::min(bytes.find_first_not_of("\r\n"), bytes.size()));
  bytes_ += bytes.substr(0, kLimit + 1 - bytes_.size());
  const std::size_t end = head_end(bytes_);
  if (end != std::string::npos && end <= kLimit) {
    bytes_.resize(end);
    return finish();
  }
  if (bytes_.size() <= kLimit) return state_;
  // Without a line break it is the target that is too long, not the fields.
  return fail_with(bytes_.find('\n') == std::string::npos ? 414 : 431);
}

RequestParser::State RequestParser::fail_with(int status) {
  error_status_ = status;
  bytes_.clear();
  return state_ = State::bad;
}

RequestParser::State RequestParser::finish() {
  std::string_view rest = bytes_;
  if (const int error = parse_request_line(take_line(rest)); error != 0) return fail_with(error);
  while (true) {
    const std::string_view line = take_line(rest);
    if (line.empty()) break;
    if (!parse_field(line)) return fail_with(400);
  }
  bytes_.clear();
  return state_ = State::complete;
}

// Returns 0, or the status of the refusal.
int RequestParser::parse_request_line(std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return 400;
  const std::string_view method = line.substr(0, first);
  std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(method)) return 400;
  if (!version.starts_with("HTTP/") || version.size() != 8 || version[6] != '.') return 400;
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return 505;
  // Proxies send the absolute form.
  if (target.starts_with("http://")) {
    const std::size_t slash = target.find('/', 7);
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  const bool clean = std::none_of(target.begin(), target.end(),
                                  [](char c) { return is_control(c) || c == ' ' || c == '#'; });
  if (!target.starts_with('/') || !clean) return 400;
  const std::size_t mark = target.find('?');
  const auto path = codec::percent_decode(target.substr(0, mark));
  if (!path) return 400;
  request_.method = method;
  request_.path = *path;
  request_.query = mark == std::string_view::npos ? "" : target.substr(mark + 1);
  return 0;
}

// A field has a name, a colon, and no control bytes except tabs. Obsolete folded lines are refused.
bool RequestParser::parse_field(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return false;
  const std::string_view value = line.substr(colon + 1);
  if (std::any_of(value.begin(), value.end(), [](char c) { return is_control(c) && c != '\t'; }))
    return false;
  request_.fields.emplace_back(to_lower(line.substr(0, colon)), strip(value));
  return true;
}

std::string Request::field(std::string_view name) const {
  std::string value;
  for (const auto& [known, text] : fields) {
    if (known != name) continue;
    if (!value.empty()) value += ", ";
    value += text;
  }
  return value;
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 303:
      return "See Other";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 414:
      return "URI Too Long";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

std::string print_response(const Response& response, bool head_only) {
  std::string text = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\n", response.status,
                                 reason_phrase(response.status), response.content_type);
  if (!response.goes_on) text += fmt::format("Content-Length: {}\r\n", response.body.size());
  text += "Cache-Control: no-store\r\nConnection: close\r\n";
  if (response.status == 405) text += "Allow: GET, HEAD\r\n";
  for (const auto& [name, value] : response.fields)
    text += fmt::format("{}: {}\r\n", name, value);
  text += "\r\n";
  if (!head_only) text += response.body;
  return text;
}

}  // namespace lockstep::http
