// The network as providers' folders use it: one question, one answer, blocking. Only at_once() uses
// threads. Tests put a Web of their own in its place.
#pragma once

#include "base/error.h"
#include "http/client.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::cloud {

struct Question {
  std::string method = "POST";
  std::string base;                 // "https://ec2.us-east-1.amazonaws.com", with a port if needed
  std::string target = "/";         // path and query, percent-encoded
  std::vector<http::Field> fields;  // may hold secrets, so no message shows them
  std::string body;
  std::chrono::milliseconds timeout{10'000};
  std::size_t body_limit = 16U << 20;
  bool gzip = false;        // accept a compressed answer
  bool repeatable = false;  // sending it twice does no harm
  std::string shown = {};   // for messages: "RunInstances in us-east-1"; empty: method and address
};

struct Reply {
  Result<http::Answer> answer;  // of any status
  bool sent = false;            // the server may have received a byte
};

class Web {
 public:
  virtual ~Web() = default;

  virtual Reply ask(const Question& question) = 0;
  // Runs all jobs, each on a thread with a Web of its own. Returns when all have ended.
  virtual void at_once(const std::vector<std::function<void(Web&)>>& jobs) = 0;
  virtual std::int64_t now_ms() const = 0;  // Unix time
  // How long the caller may wait for something else, for example a program.
  virtual std::chrono::milliseconds time_left() const { return std::chrono::hours(24); }
  // canceled: the user asked to stop.
  virtual Status pause(std::chrono::milliseconds time) = 0;
};

struct WebSettings {
  // Readable once the user asks to stop; questions then end with `canceled`. -1: never.
  int stop_fd = -1;
};

// Opens the network. The environment names proxies and certificate authorities (HTTPS_PROXY,
// NO_PROXY, SSL_CERT_FILE, LOCKSTEP_CA_FILE). Plain http is accepted for loopback addresses and the
// link-local metadata service only. Redirects are not followed. `--verbose` shows questions without
// secrets.
Result<std::unique_ptr<Web>> open_web(const WebSettings& settings);

}  // namespace lockstep::cloud
