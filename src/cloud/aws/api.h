// Asks AWS: signs calls, follows AWS's clock where ours is wrong, renews keys that expire.
#pragma once

#include "cloud/asker.h"
#include "cloud/aws/error_table.h"
#include "cloud/aws/key_ring.h"
#include "cloud/aws/query.h"
#include "cloud/provider.h"
#include "codec/json.h"
#include "codec/xml.h"

#include <chrono>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cloud::aws {

enum class Service { ec2, sts, ssm, pricing, quotas };

struct ApiCall {
  Service service = Service::ec2;
  std::string region = {};
  std::string action = {};
  std::string body = {};
  std::chrono::milliseconds timeout{10'000};   // of one try
  std::chrono::milliseconds patience{10'000};  // for passing refusals: tries and pauses together
  std::chrono::milliseconds silence{0};        // how long to repeat an unanswered call
  bool soon = false;  // retry "not found": the named object was made just now

  static ApiCall of(const Query& query, std::string region, Service service = Service::ec2);
  // body: JSON.
  static ApiCall of(Service service, std::string region, std::string action, std::string body);
};

// Returns the meaning of a failure by AWS's error codes.
Meaning meaning_of(const ApiFailure& failure);
// Returns whether a policy of the account's organization caused the refusal. No right of the keys
// can override such a policy.
bool denied_by_organization(const ApiFailure& failure);
// A refusal of ours, before AWS is asked: Meaning::ours.
ApiFailure refused_here(std::string code, std::string message, std::string hint);

class Api {
 public:
  explicit Api(Ground ground) : ring_(std::move(ground)) {}

  KeyRing& ring() { return ring_; }
  // Finds keys that stay valid for some minutes. Call ready() before asking on several threads.
  Asked<void> ready(Web& web) { return renew(web, nullptr); }
  // Returns the body of an answer of success. Thread-safe, if each thread has a Web of its own.
  Asked<std::string> ask(Web& web, const ApiCall& call);
  // Ask and parse the answer. A cut or malformed answer counts as unanswered, since AWS may have
  // carried out the call.
  Asked<codec::XmlNode> ask_xml(Web& web, const ApiCall& call);
  Asked<nlohmann::json> ask_json(Web& web, const ApiCall& call);
  // Returns all items of a list, from as many pages as there are.
  Asked<std::vector<codec::XmlNode>> ask_pages(Web& web, const Query& query,
                                               const std::string& region, std::string_view list);
  // Returns whether these keys have worked in any other region.
  bool keys_work_elsewhere(const std::string& region) const;
  std::int64_t clock_offset_ms() const;  // AWS's clock minus ours, once AWS has complained
  Keys keys() const;
  std::string keys_from() const { return keys().from; }
  // Names the account in kept answers. The mark stays the same after a login that gave other
  // temporary keys.
  std::string account_mark() const;

 private:
  class Try;

  Result<Keys> assume(Web& web, const Keys& base, const Profile& role);
  bool mends_clock(Web& web, std::int64_t signed_with, std::string_view date, const ApiCall& call);
  Asked<void> renew(Web& web, const Keys* bad);
  Result<Keys> find_keys(Web& web, bool again);

  KeyRing ring_;
  mutable std::mutex mutex_;  // of all below
  Keys keys_;
  std::int64_t offset_ms_ = 0;
  std::set<std::string> worked_in_;
};

// Runs `job` for each number below `count`, all at once. A single job runs on the caller's thread.
void for_all_at_once(Web& web, std::size_t count,
                     const std::function<void(Web&, std::size_t)>& job);

// Returns whether a name can be a region. Regions become parts of host names, so nothing but
// letters, digits and dashes may pass.
bool is_region(std::string_view name);

}  // namespace lockstep::cloud::aws
