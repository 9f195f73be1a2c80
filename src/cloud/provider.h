// The interface to all providers of machines. Each provider is a folder behind this interface, and
// no code above names a provider. All calls block, and use the network only through the given Web.
#pragma once

#include "base/error.h"
#include "cloud/gpu.h"
#include "cloud/guard_timer.h"
#include "cloud/offer.h"
#include "cloud/web.h"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::cloud {

// The places of a provider's credentials and settings, and the installation that the provider works
// for.
struct Ground {
  std::function<std::optional<std::string>(std::string_view name)> env;
  std::string home;
  std::string cache;       // folder of answers that are kept for a while: prices, images
  std::string state;       // folder of this user's state: locks that limit the rate of an account
  std::string owner = {};  // this installation's id, as in LaunchSpec
};

struct OfferQuery {
  GpuWish gpu;  // no kinds: all GPUs
  bool spot = false;
  std::vector<std::string> regions = {};  // empty: all regions that the account may use
  bool fresh = false;                     // bypass the cache
};

// A launch of a whole gang, or of a single machine if the provider launches only one machine per
// call.
struct LaunchSpec {
  std::string intent;   // 20 of a-z0-9: the rental's id, a tag on its machines
  std::string owner;    // this installation's id: 16 of a-z0-9
  std::string cluster;  // the user's name for the cluster
  int attempt = 1;      // each zone that is tried is a new attempt
  int node = 0;         // number of the first node, where the gang takes several calls
  int count = 1;
  Offer offer;
  int disk_gb = 0;
  std::string image = {};  // empty: the provider's folder chooses
  std::string user_data;   // cloud-init text; for a container (Traits::container) a start script
  std::string public_key;  // the user's side, "ssh-ed25519 AAAA... lockstep"
  // Networks (CIDR) that may reach port 22: "198.51.100.7/32". Commas separate several networks,
  // which only providers with guarded machines get.
  std::string allow_from;
  std::int64_t lifetime_s = 0;          // hard limit, if the provider enforces limits
  std::optional<Micros> max_spot = {};  // per machine and hour; unset: up to the on-demand price
  std::int64_t wanted_ms =
      0;  // Unix time of the wish, for names where a provider keeps no creation time
  std::int64_t ends_ms = 0;  // Unix time of the lease's end, for the tag lockstep:ends
};

// A launch request, complete enough to repeat it byte for byte. The journal keeps the call before
// any byte is sent. User data is the only secret in it.
struct LaunchCall {
  std::string region;
  std::string zone;
  std::string token;   // idempotency token, request id or unique name
  std::string target;  // path, or action
  std::string body;
};

// The reaction of renting to a refusal, by the provider's tables.
enum class Refusal {
  next_zone,
  next_region,   // quota, or the region as a whole
  provider_out,  // credentials, rights, account
  spot_out,      // the account can't have spot machines; on demand may work
  stop,          // our fault or the user's value: refused anywhere
  unknown,       // a code without a row: try the next zone once, then stop
};

struct LaunchOutcome {
  enum class Kind { answered, refused, unknown };  // unknown: no answer, machines may exist

  Kind kind = Kind::unknown;
  std::vector<std::string> ids = {};  // answered
  std::int64_t launched_ms = 0;       // answered: Unix time, where the provider says it
  Refusal refusal = Refusal::unknown;
  std::string code = {};                       // the provider's: "InsufficientInstanceCapacity"
  std::string message = {};                    // one line, printable, without secrets
  std::vector<std::string> zones_to_try = {};  // zones with room that the refusal names
};

struct Machine {
  enum class State {
    pending,
    running,
    unhealthy,  // will never be usable
    ending,
    stopped,  // unusable, and its disk is still billed: our stopped machines are terminated
    gone,
  };

  std::string id;
  std::string name = {};
  std::string region = {};
  std::string zone = {};
  std::string type = {};
  State state = State::pending;
  std::string address = {};  // public; "" while the machine has none
  int port = 22;             // sshd's
  std::string user = {};     // login name
  std::string private_address = {};
  std::int64_t launched_ms = 0;  // Unix time; 0: not known
  std::int64_t ended_ms = 0;     // Unix time of the end, where the provider says it
  std::string why = {};          // reason of the end: "Server.SpotInstanceTermination"
  bool taken = false;            // the provider preempted a spot machine
  bool no_room = false;          // never ran, for lack of capacity: as Refusal::next_zone
  // From our tags; empty where a tag is missing.
  std::string intent = {};
  std::string owner = {};
  std::string cluster = {};
  std::int64_t ends_ms = 0;
  std::string token = {};  // LaunchCall::token of its launch; "": the list does not say
  Micros per_hour = 0;     // the billed rate, where the provider says it; else 0
  int node = -1;           // node number, where the machine's name has it
};

struct ListQuery {
  std::vector<std::string> regions;  // empty: all regions that the account may use
  std::string intent = {};           // only machines of this rental
  std::string owner = {};            // only machines of this installation; empty: of every lockstep
};

struct Listing {
  std::vector<Machine> machines;  // with our tags or names; `gone` ones while still listed
  std::vector<NoAnswer> unheard;  // places that gave no list: their machines are unknown, not none
};

// One finding of `lockstep cloud check`.
struct Finding {
  enum class Kind { good, note, bad };
  Kind kind = Kind::good;
  std::string what;       // one line
  std::string hint = {};  // what to do; a policy takes several lines
};

// The machines that share a firewall rule for port 22. none: the provider opens the port to all
// addresses.
enum class PortRule { none, of_rental, of_region, of_account };

// The properties of a provider: its row. Code above branches on these properties, never on a name.
struct Traits {
  std::string_view name;   // "aws"
  std::string_view title;  // "AWS EC2"
  bool gang_in_one_call = false;
  bool has_spot = false;
  bool resends_token = false;  // a repeated call with the same token launches nothing new
  bool private_network = false;
  bool knows_host_keys = false;  // machines publish their host key: see Provider::host_key
  bool takes_turns = false;      // the provider limits an account's rate: calls wait
  bool has_sudo = true;          // the login user is not root; sudo asks for no password
  Ending ending = Ending::by_itself;
  bool container = false;  // set up by a start script (user_data.h) instead of cloud-init
  MachineEnding machine_ending = kPoweroff;
  NoticeSource notice = NoticeSource::none;
  PortRule port_rule = PortRule::of_rental;
  // The provider terminates a machine after LaunchSpec::lifetime_s (Machine::ends_ms), and no
  // documented call moves that time for a running machine.
  bool fixed_end = false;
  std::int64_t most_lifetime_s = 0;  // longest that a launch may ask for; 0: no limit
  std::int64_t minimum_billing_s = 60;
  int notice_s = 120;               // from the notice of preemption to the end
  std::string_view keys_hint = {};  // places of credentials, one line
  // The page on which a person terminates a machine. {id}, {region} and {zone} are replaced.
  std::string_view console = {};
  std::string_view fake_hint = {};  // the parts tested against fakes only, one line
  std::array<std::string_view, 2> file_variables = {};  // variables that name files of credentials
};

// Returns the lifetime that the provider grants, in seconds; 0: no limit.
constexpr std::int64_t lifetime_at(const Traits& traits, std::int64_t lifetime_s) {
  if (traits.most_lifetime_s == 0 || lifetime_s == 0) return lifetime_s;
  return lifetime_s < traits.most_lifetime_s ? lifetime_s : traits.most_lifetime_s;
}

class Provider {
 public:
  virtual ~Provider() = default;
  virtual const Traits& traits() const = 0;

  // Succeeds if credentials are found. Errc::not_found names the places searched. No network.
  virtual Status keys() = 0;
  // Returns a one-line warning about credentials that expire before `until_ms` (Unix time). Empty:
  // no credentials expire. No network.
  virtual std::string keys_note(Web& /*web*/, std::int64_t /*until_ms*/) { return {}; }
  // Proves that the credentials work. Returns the account for messages: "account 1234, user ann".
  virtual Result<std::string> account(Web& web) = 0;
  virtual Catalog offers(Web& web, const OfferQuery& query) = 0;

  // Finds or makes the image, network and keys for a launch, all free of charge. Returns the call
  // to make. A refusal here counts as a refusal of the launch.
  virtual tl::expected<LaunchCall, LaunchOutcome> prepare(Web& web, const LaunchSpec& spec) = 0;
  virtual LaunchOutcome launch(Web& web, const LaunchSpec& spec, const LaunchCall& call) = 0;
  // Settles an unanswered launch, by the same token or by listing machines. `unknown`: still open,
  // ask later. `refused` with an empty code: no machine exists, and none will appear.
  virtual LaunchOutcome resolve(Web& web, const LaunchSpec& spec, const LaunchCall& call,
                                std::int64_t asked_ms) = 0;

  virtual Result<Listing> list(Web& web, const ListQuery& query) = 0;
  // Terminates machines. A machine that is already gone is not an error. A machine counts as gone
  // only once `list` says so.
  virtual Status end(Web& web, const std::vector<Machine>& machines) = 0;
  // Opens port 22 to these networks and closes it to all others, after this client's address has
  // changed. cidrs: separated by commas, for all rentals under the rule (Traits::port_rule).
  virtual Status allow(Web& web, const std::string& region, const std::string& cidrs) = 0;

  // Returns the ed25519 host key that the machine itself has published, "ssh-ed25519 AAAA...". This
  // key replaces the key in our user data, since some images make a new key. "": unknown, perhaps
  // only for now.
  virtual Result<std::string> host_key(Web& /*web*/, const Machine& /*machine*/) {
    return std::string();
  }

  // Returns whether the account has this public key, as after prepare(). A guard on another machine
  // asks this, since its credentials may be of another account.
  virtual Result<bool> has_key(Web& /*web*/, const std::string& /*public_key*/) { return true; }

  virtual std::vector<Finding> check(Web& web) = 0;
  // Removes the objects that prepare() made. Call only while no machine of ours runs there.
  virtual Status clean(Web& /*web*/) { return {}; }
};

}  // namespace lockstep::cloud
