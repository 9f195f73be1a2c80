// The one interface behind which each provider is a folder. Nothing above names a provider. All
// calls block; what goes over the network goes through the Web that is handed in.
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

// Where keys and settings are looked for, and for whom.
struct Ground {
  std::function<std::optional<std::string>(std::string_view name)> env;
  std::string home;
  std::string cache;       // folder for answers that are kept a while: prices, images
  std::string state;       // folder of this user's state: locks of what an account may do at once
  std::string owner = {};  // this installation, as in LaunchSpec
};

struct OfferQuery {
  GpuWish gpu;  // no kinds: all
  bool spot = false;
  std::vector<std::string> regions = {};  // empty: all that the account may use
  bool fresh = false;                     // nothing from a cache
};

// One gang to be rented, or one machine of it where the provider takes one a call.
struct LaunchSpec {
  std::string intent;   // 20 of a-z0-9: unique, and the machines' tag
  std::string owner;    // this installation: 16 of a-z0-9
  std::string cluster;  // the user's name for it
  int attempt = 1;      // a new zone is a new attempt
  int node = 0;         // the first node's number, where the gang takes several calls
  int count = 1;
  Offer offer;
  int disk_gb = 0;
  std::string image = {};  // empty: the provider folder's own choice
  std::string user_data;   // cloud-init text; RunPod: a start script
  std::string public_key;  // the user's side, "ssh-ed25519 AAAA... lockstep"
  // CIDR that may reach port 22: "198.51.100.7/32". With commas where there are several, which only
  // providers get whose machines need a guard.
  std::string allow_from;
  std::int64_t lifetime_s = 0;          // hard cap, for providers that have one
  std::optional<Micros> max_spot = {};  // per machine and hour; unset: up to on demand
  std::int64_t wanted_ms = 0;  // Unix time, for names where a provider keeps no creation time
  std::int64_t ends_ms = 0;    // Unix time, for the tag lockstep:ends
};

// All that is needed to launch, and to launch again with the same words: goes into the journal as
// it is, before a byte is sent. No secret of ours is in it but user data.
struct LaunchCall {
  std::string region;
  std::string zone;
  std::string token;   // idempotency token, request id or unique name
  std::string target;  // path, or action
  std::string body;
};

// What to do about a refusal, by the provider's own tables.
enum class Refusal {
  next_zone,
  next_region,   // quota, or the region as a whole
  provider_out,  // keys, rights, account
  spot_out,      // the account can't have spot there, and may have the same on demand
  stop,          // our fault or the user's value: it would be refused anywhere
  unknown,       // a code that nobody knows: the next zone once, then stop
};

struct LaunchOutcome {
  enum class Kind { answered, refused, unknown };  // unknown: no answer, it may exist

  Kind kind = Kind::unknown;
  std::vector<std::string> ids = {};  // answered
  std::int64_t launched_ms = 0;       // answered: when, where the provider says so
  Refusal refusal = Refusal::unknown;
  std::string code = {};                       // the provider's: "InsufficientInstanceCapacity"
  std::string message = {};                    // one line, printable, without secrets
  std::vector<std::string> zones_to_try = {};  // that the refusal names
};

struct Machine {
  enum class State {
    pending,
    running,
    unhealthy,  // will never be of use
    ending,
    stopped,  // of no use, and still billed for something: ours are ended
    gone,
  };

  std::string id;
  std::string name = {};
  std::string region = {};
  std::string zone = {};
  std::string type = {};
  State state = State::pending;
  std::string address = {};  // public; "" while there is none
  int port = 22;             // of sshd
  std::string user = {};     // to log in as
  std::string private_address = {};
  std::int64_t launched_ms = 0;  // 0: not known
  std::int64_t ended_ms = 0;     // when it ended, where the provider says so
  std::string why = {};          // it ended: "Server.SpotInstanceTermination"
  bool taken = false;            // by the provider: spot
  bool no_room = false;          // it never ran, for want of room: as Refusal::next_zone
  // What our tags say; empty where a tag is missing.
  std::string intent = {};
  std::string owner = {};
  std::string cluster = {};
  std::int64_t ends_ms = 0;
  std::string token = {};  // LaunchCall::token of its launch; "": the list does not say
  Micros per_hour = 0;     // what the provider bills, where it says so; else 0
  int node = -1;           // where the name says it
};

struct ListQuery {
  std::vector<std::string> regions;  // empty: all that the account may use
  std::string intent = {};           // only this one's
  std::string owner = {};            // only this installation's; empty: whoever's lockstep
};

struct Listing {
  std::vector<Machine> machines;  // those with our tags or names, `gone` ones while they are listed
  std::vector<Silence> unheard;   // places whose machines are unknown, not none
};

// One thing that `lockstep cloud check` found.
struct Finding {
  enum class Kind { good, note, bad };
  Kind kind = Kind::good;
  std::string what;       // one line
  std::string hint = {};  // what to do; may have several lines: a policy
};

// Which machines share one rule for port 22. none: the provider opens the port to everybody.
enum class PortRule { none, of_rental, of_region, of_account };

// What a provider is like.
struct Traits {
  std::string_view name;   // "aws"
  std::string_view title;  // "AWS EC2"
  bool gang_in_one_call = false;
  bool has_spot = false;
  bool resends_token = false;  // a repeated call with the same token makes nothing new
  bool private_network = false;
  bool knows_host_keys = false;  // machines tell it theirs: see Provider::host_key
  bool takes_turns = false;      // one question after another, with pauses, however many ask
  bool has_sudo = true;          // the user is not root, and sudo asks for no password
  Ending ending = Ending::by_itself;
  bool container = false;  // told by a start script (user_data.h), not by cloud-init
  MachineEnding machine_ending = MachineEnding::poweroff;
  NoticeSource notice = NoticeSource::none;
  PortRule port_rule = PortRule::of_rental;
  // The provider itself ends machines after LaunchSpec::lifetime_s (Machine::ends_ms), and none of
  // its documented calls moves that end of a running machine.
  bool fixed_end = false;
  std::int64_t most_lifetime_s = 0;  // that can be asked for; 0: any
  std::int64_t minimum_billing_s = 60;
  int notice_s = 120;               // between spot's notice and the end
  std::string_view keys_hint = {};  // where keys are looked for, one line
  // Where a person ends a machine without us: {id}, {region} and {zone} are the machine's.
  std::string_view console = {};
  std::string_view fake_hint = {};                      // what only a fake has confirmed, one line
  std::array<std::string_view, 2> file_variables = {};  // that name files of keys
};

// A lifetime as the provider grants it, in seconds; 0: none is set.
constexpr std::int64_t lifetime_at(const Traits& traits, std::int64_t lifetime_s) {
  if (traits.most_lifetime_s == 0 || lifetime_s == 0) return lifetime_s;
  return lifetime_s < traits.most_lifetime_s ? lifetime_s : traits.most_lifetime_s;
}

class Provider {
 public:
  virtual ~Provider() = default;
  virtual const Traits& traits() const = 0;

  // Whether there are keys; not_found says where they were looked for. No network.
  virtual Status keys() = 0;
  // What to know of keys that end before `until_ms` (Unix time), as temporary ones do: one line;
  // empty: nothing. No network.
  virtual std::string keys_note(Web& /*web*/, std::int64_t /*until_ms*/) { return {}; }
  // Keys work; who we are there, for messages: "account 1234, user ann".
  virtual Result<std::string> account(Web& web) = 0;
  virtual Catalog offers(Web& web, const OfferQuery& query) = 0;

  // What must be there before a launch (image, network, keys); makes what is missing, which costs
  // nothing, and says the call to make. A refusal here is as one of the launch.
  virtual tl::expected<LaunchCall, LaunchOutcome> prepare(Web& web, const LaunchSpec& spec) = 0;
  virtual LaunchOutcome launch(Web& web, const LaunchSpec& spec, const LaunchCall& call) = 0;
  // After no answer: what became of it, by the same token or by looking for it. `unknown` again:
  // ask later. refused with an empty code: it is not there, and will not come.
  virtual LaunchOutcome resolve(Web& web, const LaunchSpec& spec, const LaunchCall& call,
                                std::int64_t asked_ms) = 0;

  virtual Result<Listing> list(Web& web, const ListQuery& query) = 0;
  // Ends them; what is gone already is no error. They are gone when `list` says so.
  virtual Status end(Web& web, const std::vector<Machine>& machines) = 0;
  // From another address than before: opens 22 to those networks and closes it to all others.
  // cidrs: with commas; of all rentals that the rule is for (Traits::port_rule).
  virtual Status allow(Web& web, const std::string& region, const std::string& cidrs) = 0;

  // The ed25519 host key that the machine itself has told its provider, "ssh-ed25519 AAAA...": what
  // counts where an image replaces the key that it was given. "": none is known, or not yet.
  virtual Result<std::string> host_key(Web& /*web*/, const Machine& /*machine*/) {
    return std::string();
  }

  // Whether the account has this public key, as it has after a prepare() with it: for a guard
  // elsewhere, whose key may be of another account. Asked where machines need a guard.
  virtual Result<bool> has_key(Web& /*web*/, const std::string& /*public_key*/) { return true; }

  virtual std::vector<Finding> check(Web& web) = 0;
  // Once nothing of ours runs there: removes what prepare() made.
  virtual Status clean(Web& /*web*/) { return {}; }
};

}  // namespace lockstep::cloud
