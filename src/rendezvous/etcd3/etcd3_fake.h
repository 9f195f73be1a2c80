// A fake etcd for tests: the part of the v3 API used by the etcd3 backend, in memory on the test's
// loop, with faults that a real etcd does not produce on demand.
#pragma once

#include "codec/base64.h"
#include "codec/json.h"
#include "http/client_testing.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lockstep::rendezvous::etcd3::testing {

class FakeEtcd {
 public:
  using Json = nlohmann::json;
  using Say = http::testing::ScriptedServer::Say;
  // Returns the answer in place of the request's effect; nullopt: no fault.
  using Fault = std::function<std::optional<Say>(const std::string& path, const Json& body)>;

  explicit FakeEtcd(io::Loop& loop)
      : server_(loop, [this](const std::string& request) { return answer(request); }) {}

  int port() const { return server_.port(); }
  void set_fault(Fault fault) { fault_ = std::move(fault); }
  int lease_ttl = 60;  // granted, whatever was requested

  static Say reply(int status, const std::string& body) {
    return {"HTTP/1.1 " + std::to_string(status) +
                " x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body,
            false};
  }
  static Say silence() { return {"", false}; }
  // Sends a late answer to a waiting request.
  void say(const Say& said, const std::string& asked) { server_.say(said.bytes, asked); }

  std::string value(const std::string& key) const {
    const auto at = keys_.find(key);
    return at == keys_.end() ? std::string() : at->second.value;
  }
  void put(const std::string& key, const std::string& text) { write(key, text, 0); }
  // Expires the lease of the key, whatever its owner believes.
  void expire(const std::string& key) { end_lease(keys_.at(key).lease); }
  // Makes watches hang: they get no more events.
  void mute_watches(bool mute) { muted_ = mute; }
  void watches_say(const std::string& line) { server_.say(chunk(line + "\n"), "POST /v3/watch"); }

 private:
  struct Entry {
    std::string value;
    std::int64_t create = 0;
    std::int64_t mod = 0;
    std::int64_t lease = 0;
  };

  static std::string chunk(const std::string& text) {
    std::string size;
    for (std::size_t rest = text.size(); rest > 0; rest /= 16)
      size.insert(size.begin(), "0123456789abcdef"[rest % 16]);
    return size + "\r\n" + text + "\r\n";
  }
  static std::string decoded(const Json& json, const char* name) {
    return codec::base64_decode(json.value(name, "")).value();
  }
  static std::int64_t number(const Json& json, const char* name) {
    const auto found = json.find(name);
    if (found == json.end()) return 0;
    return found->is_string() ? std::stoll(found->get<std::string>()) : found->get<std::int64_t>();
  }

  Say answer(const std::string& request) {
    const std::size_t from = request.find(' ') + 1;
    const std::string path = request.substr(from, request.find(' ', from) - from);
    const Json body = codec::parse_json(request.substr(request.find("\r\n\r\n") + 4));
    if (fault_) {
      if (auto said = fault_(path, body)) return *said;
    }
    if (path == "/v3/watch") return {watch(body), false};
    Json said = act(path, body);
    said["header"]["revision"] = std::to_string(revision_);
    return reply(200, codec::print_json(said));
  }
  // Includes the events since the requested revision.
  std::string watch(const Json& body) const {
    std::string said = "HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n";
    said += chunk("{\"result\":{\"created\":true}}\n");
    const std::int64_t from =
        number(body.value("create_request", Json::object()), "start_revision");
    for (const auto& [revision, line] : history_) {
      if (revision >= from && !muted_) said += chunk(line + "\n");
    }
    return said;
  }
  Json act(const std::string& path, const Json& body) {
    if (path == "/v3/lease/grant") {
      leases_.insert(++last_lease_);
      return {{"ID", std::to_string(last_lease_)}, {"TTL", std::to_string(lease_ttl)}};
    }
    if (path == "/v3/lease/keepalive") {
      const bool known = leases_.contains(number(body, "ID"));
      Json said;
      said["result"]["ID"] = body["ID"];
      said["result"]["TTL"] = std::to_string(known ? lease_ttl : 0);
      return said;
    }
    if (path == "/v3/lease/revoke") end_lease(number(body, "ID"));
    if (path == "/v3/kv/range") return range(body);
    if (path == "/v3/kv/put") write(decoded(body, "key"), decoded(body, "value"), 0);
    if (path == "/v3/kv/txn") return txn(body);
    return Json::object();
  }
  Json range(const Json& body) const {
    Json kvs = Json::array();
    const std::string key = decoded(body, "key");
    if (keys_.contains(key)) kvs.push_back(shown(key, keys_.at(key)));
    Json said;
    said["kvs"] = kvs;
    return said;
  }
  static Json shown(const std::string& key, const Entry& entry) {
    return {{"key", codec::base64_encode(key)},
            {"value", codec::base64_encode(entry.value)},
            {"create_revision", std::to_string(entry.create)},
            {"mod_revision", std::to_string(entry.mod)},
            {"lease", std::to_string(entry.lease)}};
  }
  bool holds(const Json& compare) const {
    const auto at = keys_.find(decoded(compare, "key"));
    const Entry entry = at == keys_.end() ? Entry() : at->second;
    if (compare.contains("create_revision"))
      return entry.create == number(compare, "create_revision");
    return entry.mod == number(compare, "mod_revision");
  }
  Json txn(const Json& body) {
    bool good = true;
    for (const Json& compare : body.value("compare", Json::array()))
      good = good && holds(compare);
    Json responses = Json::array();
    for (const Json& op : body.value(good ? "success" : "failure", Json::array())) {
      if (op.contains("request_put")) {
        const Json& put = op["request_put"];
        write(decoded(put, "key"), decoded(put, "value"), number(put, "lease"));
        responses.push_back(Json::object());
        responses.back()["response_put"] = Json::object();
      } else {
        responses.push_back(Json::object());
        responses.back()["response_range"] = range(op["request_range"]);
      }
    }
    Json said;
    said["succeeded"] = good;
    said["responses"] = responses;
    return said;
  }
  void write(const std::string& key, const std::string& text, std::int64_t lease) {
    Entry& entry = keys_[key];
    entry.value = text;
    entry.mod = ++revision_;
    if (entry.create == 0) entry.create = revision_;
    entry.lease = lease;
    Json event;
    event["kv"] = shown(key, entry);
    tell(event, key);
  }
  void end_lease(std::int64_t lease) {
    leases_.erase(lease);
    for (auto at = keys_.begin(); at != keys_.end();) {
      if (lease == 0 || at->second.lease != lease) {
        ++at;
        continue;
      }
      const std::string key = at->first;
      at = keys_.erase(at);
      Json event;
      event["type"] = "DELETE";
      event["kv"]["key"] = codec::base64_encode(key);
      event["kv"]["mod_revision"] = std::to_string(++revision_);
      tell(event, key);
    }
  }
  // Only the leader's key is watched.
  void tell(const Json& event, const std::string& key) {
    if (!key.ends_with("/leader")) return;
    Json said;
    said["result"]["header"]["revision"] = std::to_string(revision_);
    said["result"]["events"] = Json::array({event});
    history_.emplace_back(revision_, codec::print_json(said));
    if (!muted_) watches_say(codec::print_json(said));
  }

  http::testing::ScriptedServer server_;
  Fault fault_;
  std::map<std::string, Entry> keys_;
  std::set<std::int64_t> leases_;
  std::vector<std::pair<std::int64_t, std::string>> history_;  // of the leader's key
  std::int64_t revision_ = 1;
  std::int64_t last_lease_ = 0;
  bool muted_ = false;
};

}  // namespace lockstep::rendezvous::etcd3::testing
