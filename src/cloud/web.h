// The network for providers' folders. A call sends a question and blocks until the answer. Only
// at_once() uses threads. Tests use a Web of their own.
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
  std::vector<http::Field> fields;  // may contain secrets: no message shows fields
  std::string body;
  std::chrono::milliseconds timeout{10'000};
  std::size_t body_limit = 16U << 20;
  bool gzip = false;        // accept a compressed answer
  bool repeatable = false;  // a repeat does no harm
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
  // Runs all jobs, each on a thread with its own Web. Returns when all jobs have ended.
  virtual void at_once(const std::vector<std::function<void(Web&)>>& jobs) = 0;
  virtual std::int64_t now_ms() const = 0;  // Unix time
  // Returns the time that the caller may spend on waiting, for example for a program.
  virtual std::chrono::milliseconds time_left() const { return std::chrono::hours(24); }
  // Errc::canceled: the user asked to stop.
  virtual Status pause(std::chrono::milliseconds time) = 0;
};

struct WebSettings {
  // A descriptor that becomes readable when the user asks to stop. Questions then end with
  // Errc::canceled. -1: never.
  int stop_fd = -1;
};

// Opens the network. The environment names proxies and certificate authorities (HTTPS_PROXY,
// NO_PROXY, SSL_CERT_FILE, LOCKSTEP_CA_FILE). Plain http is accepted for loopback addresses and the
// link-local metadata service only. Redirects are not followed. `--verbose` shows questions without
// secrets.
Result<std::unique_ptr<Web>> open_web(const WebSettings& settings);

}  // namespace lockstep::cloud
