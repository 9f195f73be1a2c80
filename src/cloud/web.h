// How the providers' folders ask the network: one question, one answer, in plain blocking words.
// Only what is asked at once runs on threads. Tests put a Web of their own in its place.
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
  std::string base;                 // "https://ec2.us-east-1.amazonaws.com", with a port if need be
  std::string target = "/";         // path and query, coded
  std::vector<http::Field> fields;  // secrets may be here, and are never shown
  std::string body;
  std::chrono::milliseconds timeout{10'000};
  std::size_t body_limit = 16U << 20;
  bool gzip = false;        // the answer may come packed
  bool repeatable = false;  // twice does no harm
  std::string shown = {};   // for messages: "RunInstances in us-east-1"; empty: method and address
};

struct Reply {
  Result<http::Answer> answer;  // of any status
  bool sent = false;            // a byte of the question may have arrived
};

class Web {
 public:
  virtual ~Web() = default;

  virtual Reply ask(const Question& question) = 0;
  // Runs all, each with a Web of its own on a thread of its own, and returns when all have ended.
  virtual void at_once(const std::vector<std::function<void(Web&)>>& jobs) = 0;
  virtual std::int64_t now_ms() const = 0;  // Unix time
  // For what is waited for beside the net: a program, say.
  virtual std::chrono::milliseconds time_left() const { return std::chrono::hours(24); }
  // canceled: the user asked to stop.
  virtual Status pause(std::chrono::milliseconds time) = 0;
};

struct WebSettings {
  // Readable when the user asks to stop: what is asked then ends with `canceled`. -1: never.
  int stop_fd = -1;
};

// The network. Proxies and authorities are as the environment has them (HTTPS_PROXY, NO_PROXY,
// SSL_CERT_FILE, LOCKSTEP_CA_FILE). Plain http is taken for loopback addresses only. Redirects are
// not followed. `--verbose` shows questions without what is secret.
Result<std::unique_ptr<Web>> open_web(const WebSettings& settings);

}  // namespace lockstep::cloud
