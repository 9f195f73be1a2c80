// For tests of this folder: a user's keys, and a Web that answers by method and path.
#pragma once

#include "base/text.h"
#include "cloud/gcp/api.h"
#include "cloud/scripted_web_testing.h"

#include <fmt/core.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::cloud::gcp::testing {

inline Credentials user_keys() {
  Credentials keys;
  keys.kind = Credentials::Kind::authorized_user;
  keys.where = "adc.json";
  keys.project = "proj";
  keys.token_uri = "http://127.0.0.1:1/token";
  keys.client_id = "id";
  keys.client_secret = "client-secret";
  keys.refresh_token = "refresh-secret";
  return keys;
}

inline Ground bare_ground() {
  Ground ground;
  ground.env = [](std::string_view) { return std::nullopt; };
  ground.home = "/nonexistent";
  ground.owner = "owner00000000001";
  return ground;
}

inline LaunchSpec sample_spec() {
  LaunchSpec spec;
  spec.intent = "abcdefghij0123456789";
  spec.owner = "owner00000000001";
  spec.cluster = "My Cluster";
  spec.attempt = 2;
  spec.offer.provider = "gcp";
  spec.offer.region = "us-central1";
  spec.offer.zone = "us-central1-a";
  spec.offer.type = "g2-standard-4";
  spec.offer.gpu = "L4";
  spec.offer.gpus = 1;
  spec.disk_gb = 200;
  spec.user_data = "#cloud-config\n\"x\"\n";
  spec.public_key = "ssh-ed25519 AAAA lockstep\n";
  spec.allow_from = "198.51.100.7/32";
  spec.lifetime_s = 3600;
  spec.ends_ms = 1'795'413'600'000;
  return spec;
}

// Gives tokens for any key. Each answer is used once: the first that matches "METHOD
// start-of-target".
class Google {
 public:
  Google() : web([this](const Question& question) { return answer(question); }) {}

  void says(std::string what, int status, std::string body, std::vector<http::Field> fields = {}) {
    script_.emplace_back(std::move(what),
                         cloud::testing::answered(status, std::move(body), std::move(fields)));
  }
  void loses(std::string what, bool sent) {
    script_.emplace_back(std::move(what), cloud::testing::unanswered(sent));
  }
  bool used_up() const { return script_.empty(); }

  cloud::testing::ScriptedWeb web;
  int tokens = 0;

 private:
  Reply answer(const Question& question) {
    if (question.target == "/token")
      return cloud::testing::answered(
          200, fmt::format(R"({{"access_token":"token-{}","expires_in":3599}})", ++tokens));
    const std::string what = question.method + " " + question.target;
    for (auto at = script_.begin(); at != script_.end(); ++at) {
      if (!what.starts_with(at->first)) continue;
      Reply reply = std::move(at->second);
      script_.erase(at);
      return reply;
    }
    return cloud::testing::answered(404, R"({"error":{"code":404,"message":"not scripted: )" +
                                             what + R"(","errors":[{"reason":"notFound"}]}})");
  }

  std::vector<std::pair<std::string, Reply>> script_;
};

inline std::string operation(std::string_view status, std::string_view error = "") {
  return fmt::format(
      R"({{"name":"operation-1","zone":"https://x/zones/us-central1-a","status":"{}"{}}})", status,
      error.empty() ? "" : fmt::format(R"(,"error":{{"errors":[{}]}})", error));
}

}  // namespace lockstep::cloud::gcp::testing
