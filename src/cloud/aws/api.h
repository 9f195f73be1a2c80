// Asks AWS: signs, compares clocks, repeats what may be repeated, reads errors.
#pragma once

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
  std::chrono::milliseconds patience{10'000};  // with refusals that pass, tries and pauses
  std::chrono::milliseconds silence{0};        // as long without an answer it is asked again
  bool soon = false;  // "not found" may only mean that it was made just now

  static ApiCall of(const Query& query, std::string region, Service service = Service::ec2);
  // body: JSON.
  static ApiCall of(Service service, std::string region, std::string action, std::string body);
};

// Why there is no good answer.
struct Trouble {
  enum class Kind {
    refused,   // AWS said no
    silent,    // no whole answer
    no_keys,   // it was not even asked
    canceled,  // by the user
  };

  Kind kind = Kind::silent;
  Meaning meaning = Meaning::unknown;
  std::string code = {};
  std::string message = {};  // with what was asked: "RunInstances in us-east-1: ..."
  std::string said = {};     // AWS's own words
  std::string hint = {};
  bool maybe_done = false;       // no try was surely refused, and one may have been understood
  bool again = false;            // for Api: the clock or the keys were wrong, and no longer are
  std::string retry_after = {};  // as the answer has it

  // In one place: it is passed on in a hundred.
  Trouble();
  Trouble(Trouble&& other) noexcept;
  Trouble(const Trouble& other);
  Trouble& operator=(Trouble&& other) noexcept;
  Trouble& operator=(const Trouble& other);
  ~Trouble();

  Error error() const;
  // A policy of the account's organization refuses it, whatever rights the keys have.
  bool denied_by_organization() const;
};

// As AWS would refuse what it isn't asked.
Trouble refused_here(std::string code, std::string message, std::string hint);

template <class T>
using Asked = tl::expected<T, Trouble>;

class Api {
 public:
  explicit Api(Ground ground) : ring_(std::move(ground)) {}

  KeyRing& ring() { return ring_; }
  // Keys are at hand and hold for some minutes. Call it before asking on several threads.
  Asked<void> ready(Web& web) { return renew(web, nullptr); }
  // The body of a good answer. May be called on several threads at once, each with its own Web.
  Asked<std::string> ask(Web& web, const ApiCall& call);
  // An answer that is cut or makes no sense is none.
  Asked<codec::XmlNode> ask_xml(Web& web, const ApiCall& call);
  Asked<nlohmann::json> ask_json(Web& web, const ApiCall& call);
  // All items of that list, on as many pages as there are.
  Asked<std::vector<codec::XmlNode>> ask_pages(Web& web, const Query& query,
                                               const std::string& region, std::string_view list);
  // Whether these keys have worked in any other region.
  bool keys_work_elsewhere(const std::string& region) const;
  std::int64_t clock_offset_ms() const;  // AWS's clock less ours, once it mattered
  Keys keys() const;
  std::string keys_from() const { return keys().from; }
  // Names the account in kept answers, also after a login that gave other temporary keys.
  std::string account_mark() const;

 private:
  Asked<std::string> once(Web& web, const ApiCall& call);
  Asked<std::string> signed_ask(Web& web, const ApiCall& call, const Keys& keys);
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

// Runs `job` for each number below `count` at once; a single one just so.
void for_all_at_once(Web& web, std::size_t count,
                     const std::function<void(Web&, std::size_t)>& job);

// Regions become parts of host names, so nothing else may be in them.
bool is_region(std::string_view name);

}  // namespace lockstep::cloud::aws
