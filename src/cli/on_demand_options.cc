#include "cli/on_demand_options.h"

#include "base/text.h"
#include "cloud/table/provider_table.h"

#include <fmt/core.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

namespace lockstep::cli {
namespace {

constexpr std::int64_t kMostSeconds = 365LL * 24 * 3600;
constexpr std::int64_t kLeastAutostop = 60;
constexpr std::int64_t kDefaultWait = 15LL * 60;
constexpr std::int64_t kDefaultLifetime = 24LL * 3600;  // bounds the bill of a forgotten machine
constexpr std::int64_t kMostNodes = 64;
constexpr std::int64_t kMostDisk = 64'000;

std::int64_t seconds_of_unit(char unit) {
  switch (unit) {
    case 's':
      return 1;
    case 'm':
      return 60;
    case 'h':
      return 3600;
    case 'd':
      return 86'400;
    default:
      return 0;
  }
}

std::vector<std::string> words_in(const std::optional<std::string>& list) {
  std::vector<std::string> words;
  if (!list) return words;
  for (const std::string& word : split(*list, ','))
    if (!word.empty()) words.push_back(word);
  return words;
}

Result<std::optional<cloud::Micros>> money_of(std::string_view name,
                                              const std::optional<std::string>& text) {
  if (!text) return std::optional<cloud::Micros>();
  auto amount = cloud::parse_dollars(*text);
  if (!amount) return Failure(std::move(amount).error().within(fmt::format("--{}", name)));
  if (*amount == 0) return fail(Errc::invalid_input, fmt::format("--{} 0 pays for nothing", name));
  return std::optional<cloud::Micros>(*amount);
}

Result<std::int64_t> time_or(std::string_view name, const std::optional<std::string>& text,
                             std::int64_t otherwise) {
  if (!text) return otherwise;
  return parse_time(name, *text);
}

bool is_network(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) return false;
  const std::string address = text.substr(0, slash);
  // in6_addr also has room for an IPv4 address.
  in6_addr parsed{};
  const bool four = inet_pton(AF_INET, address.c_str(), &parsed) == 1;
  if (!four && inet_pton(AF_INET6, address.c_str(), &parsed) != 1) return false;
  const std::int64_t bits = parse_int(text.substr(slash + 1)).value_or(-1);
  return bits >= 0 && bits <= (four ? 32 : 128);
}

}  // namespace

Result<std::string> networks_of(const std::optional<std::string>& text) {
  std::vector<std::string> words = words_in(text);
  // Refuse --allow-from '' and ',' below. An empty result would mean "not given", and open the port
  // to this machine's address.
  if (text && words.empty()) words.push_back(*text);
  for (const std::string& word : words)
    if (!is_network(word))
      return fail(
          Errc::invalid_input,
          fmt::format("--allow-from must be a list of networks (got '{}')", printable(word, 60)),
          "write 198.51.100.7/32, several with commas");
  return join(words, ",");
}

namespace {

// Returns the idle limit in seconds. 0: an idle machine stays until its lifetime or budget ends.
Result<std::int64_t> autostop_of(const OnDemandOptions& options, std::int64_t otherwise) {
  if (options.autostop == "never") return 0;
  LOCKSTEP_TRY_ASSIGN(const std::int64_t seconds, time_or("autostop", options.autostop, otherwise));
  if (seconds < kLeastAutostop)
    return fail(Errc::invalid_input, fmt::format("--autostop {} is too short: at least {} s",
                                                 options.autostop.value_or(""), kLeastAutostop));
  return seconds;
}

std::string_view provider_help() {
  static const std::string kText = [] {
    std::vector<std::string> names;
    for (const cloud::table::ProviderRow& row : cloud::table::providers())
      names.emplace_back(row.name);
    return join(names, ", ") + "; cheapest: all whose keys are found";
  }();
  return kText;
}

}  // namespace

std::vector<Option> machine_rows(std::string_view gpus) {
  std::vector<Option> rows;
  if (!gpus.empty())
    rows.push_back({.name = gpus,
                    .field = into<&OnDemandOptions::gpus>,
                    .metavar = "GPU[:COUNT]",
                    .help = "rent machines with these GPUs, A100:8; see docs/cloud.md"});
  const std::vector<Option> more = {
      {.name = "spot",
       .field = into<&OnDemandOptions::spot>,
       .metavar = "[=prefer]",
       .help =
           "machines at the spot price, which the provider may take away; =prefer: on demand if "
           "there are none",
       .choices = {"only", "prefer"},
       .implied = "only"},
      {.name = "provider",
       .field = into<&OnDemandOptions::provider>,
       .metavar = "NAME,...",
       .help = provider_help(),
       .shown_default = "cheapest"},
      {.name = "region",
       .field = into<&OnDemandOptions::region>,
       .metavar = "NAME,...",
       .help = "only these regions of the providers"},
      {.name = "max-price",
       .field = into<&OnDemandOptions::max_price>,
       .metavar = "USD",
       .help = "most to pay an hour, for all nodes together, disks included"},
      {.name = "at-least",
       .field = into<&OnDemandOptions::at_least>,
       .help = "also take machines with more of these GPUs"},
      {.name = "disk",
       .field = into<&OnDemandOptions::disk>,
       .metavar = "GB",
       .help = "size of the disk",
       .shown_default = "what the image needs"},
  };
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

std::vector<Option> terms_rows() {
  return {
      {.name = "budget",
       .field = into<&OnDemandOptions::budget>,
       .metavar = "USD",
       .help = "most to spend in all: the machines end themselves before"},
      {.name = "lifetime",
       .field = into<&OnDemandOptions::lifetime>,
       .metavar = "TIME",
       .help = "the machines end themselves after this: 90m, 6h, 2d",
       .shown_default = "24h"},
      {.name = "autostop",
       .field = into<&OnDemandOptions::autostop>,
       .metavar = "TIME|never",
       .help = "idle for so long, the machines end themselves: no job, no session, GPUs at rest",
       .shown_default = "10m"},
      {.name = "hold",
       .field = into<&OnDemandOptions::hold>,
       .metavar = "TIME",
       .help = "how long machines stay if a job has failed and the outputs are not brought back",
       .shown_default = "30m"},
      {.name = "wait",
       .field = into<&OnDemandOptions::wait>,
       .metavar = "TIME|forever",
       .help = "how long to keep asking while no provider has machines",
       .shown_default = "15m"},
      {.name = "image",
       .field = into<&OnDemandOptions::image>,
       .metavar = "IMAGE",
       .help = "the machines' image, by the provider's name",
       .shown_default = "the provider's newest for GPUs"},
      {.name = "guard",
       .field = into<&OnDemandOptions::guard>,
       .metavar = "here|HOST",
       .help =
           "run a guard here, or on HOST over ssh: a process that terminates machines which cannot "
           "end their own bill; here, and with --spot: the guard also continues a job whose "
           "command is gone; run --on-demand with HOST: that host rents, with keys of its own, and "
           "sees the job to its end"},
      {.name = "i-will-watch",
       .field = into<&OnDemandOptions::will_watch>,
       .help = "rent without a guard: you end the machines, whatever happens"},
      {.name = "allow-from",
       .field = into<&OnDemandOptions::allow_from>,
       .metavar = "CIDR,...",
       .help = "networks with access to the machines' ssh port; `up` also applies the list to "
               "running machines",
       .shown_default = "this machine's public address"},
  };
}

std::vector<Option> consent_rows() {
  return {
      {.name = "yes",
       .field = into<&OnDemandOptions::yes>,
       .help = "rent without a question",
       .letter = 'y'},
      {.name = "print",
       .field = into<&OnDemandOptions::print>,
       .help = "show the plan, rent nothing"},
  };
}

std::vector<Group> on_demand_groups() {
  Group machines{"Rented machines", machine_rows("on-demand")};
  // Behind the script --on-demand is an argument of the script, and the job would run on this
  // machine. shapes_job warns of that.
  for (Option& option : machines.options)
    option.shapes_job = option.name == "on-demand";
  const std::vector<Option> consent = consent_rows();
  machines.options.insert(machines.options.end(), consent.begin(), consent.end());
  Group terms{"Money and time of rented machines", terms_rows()};
  Group resumption{
      "Jobs on rented machines",
      {
          {.name = "resume-arg",
           .field = into<&OnDemandOptions::resume_arg>,
           .metavar = "ARG",
           .help = "added to the script's arguments when the job continues after machines "
                   "were taken away"},
      }};
  std::vector<Group> groups = {std::move(machines), std::move(terms), std::move(resumption)};
  // These rows must not make torchrun's abbreviations ambiguous.
  for (Group& group : groups)
    for (Option& option : group.options)
      option.own = true;
  return groups;
}

std::vector<Option> on_demand_rows() {
  std::vector<Option> rows;
  for (const Group& group : on_demand_groups())
    rows.insert(rows.end(), group.options.begin(), group.options.end());
  return rows;
}

Result<std::int64_t> parse_time(std::string_view what, std::string_view text) {
  const auto bad = [&] {
    return fail(Errc::invalid_input,
                fmt::format("--{} must be a length of time (got '{}')", what, printable(text, 40)),
                "write 90s, 10m, 6h, 2d or 1h30m");
  };
  std::int64_t sum = 0;
  std::int64_t number = -1;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      number = std::max<std::int64_t>(number, 0) * 10 + (c - '0');
      // A number within this limit overflows nothing when it is multiplied by a day.
      if (number > kMostSeconds) return bad();
      continue;
    }
    const std::int64_t unit = seconds_of_unit(c);
    if (unit == 0 || number < 0) return bad();
    sum += number * unit;
    number = -1;
  }
  if (number >= 0 || text.empty() || sum <= 0 || sum > kMostSeconds) return bad();
  return sum;
}

// Returns advice for --nodes MIN:MAX. Rented machines come all or none, and a cluster that loses
// one machine is replaced as a whole, so a minimum makes no sense.
static std::string fewer_hint(const std::string& nodes) {
  const auto ends = split(nodes, ':');
  if (ends.size() != 2) return {};
  return fmt::format("all are rented, or none, and all replaced when one is lost: write --nodes {}",
                     ends[1]);
}

Result<cloud::Wish> wish_of(const OnDemandOptions& options,
                            const std::optional<std::string>& nodes) {
  cloud::Wish wish;
  if (options.gpus) {
    LOCKSTEP_TRY_ASSIGN(wish.gpu, cloud::parse_gpu_wish(*options.gpus));
  }
  wish.gpu.at_least = options.at_least;
  if (nodes) {
    const auto count = parse_int(*nodes);
    if (!count || *count < 1 || *count > kMostNodes)
      return fail(Errc::invalid_input,
                  fmt::format("--nodes must be a number from 1 to {} for rented machines (got {})",
                              kMostNodes, printable(*nodes, 40)),
                  fewer_hint(printable(*nodes, 40)));
    wish.nodes = static_cast<int>(*count);
  }
  if (options.spot)
    wish.spot = *options.spot == "prefer" ? cloud::SpotWish::prefer : cloud::SpotWish::only;
  wish.providers = words_in(options.provider);
  // Help shows "cheapest" as the default. An empty list means the same: all providers.
  std::erase(wish.providers, "cheapest");
  wish.regions = words_in(options.region);
  LOCKSTEP_TRY_ASSIGN(wish.max_price, money_of("max-price", options.max_price));
  if (options.disk) {
    if (*options.disk < 1 || *options.disk > kMostDisk)
      return fail(Errc::invalid_input,
                  fmt::format("--disk must be a size in GB from 1 to {} (got {})", kMostDisk,
                              *options.disk));
    wish.disk_gb = static_cast<int>(*options.disk);
  }
  // Without a guard or the user's promise to watch, never choose machines that cannot terminate
  // themselves.
  wish.guarded = options.guard.has_value() || options.will_watch;
  return wish;
}

Result<cloud::Terms> terms_of(const OnDemandOptions& options) {
  cloud::Terms terms;
  LOCKSTEP_TRY_ASSIGN(terms.budget, money_of("budget", options.budget));
  LOCKSTEP_TRY_ASSIGN(terms.lifetime_s, time_or("lifetime", options.lifetime, kDefaultLifetime));
  LOCKSTEP_TRY_ASSIGN(terms.autostop_s, autostop_of(options, terms.autostop_s));
  LOCKSTEP_TRY_ASSIGN(terms.hold_s, time_or("hold", options.hold, terms.hold_s));
  if (options.guard && options.guard->empty())
    return fail(Errc::invalid_input, "--guard must name a machine",
                "write --guard here, or --guard HOST as for ssh");
  terms.guard = options.guard.value_or("");
  LOCKSTEP_TRY_ASSIGN(terms.allow_from, networks_of(options.allow_from));
  terms.image = options.image.value_or("");
  return terms;
}

Result<std::optional<std::int64_t>> wait_seconds(const OnDemandOptions& options) {
  if (options.wait == "forever") return std::optional<std::int64_t>();
  // parse_time() refuses 0, which here means: ask each provider once.
  if (options.wait == "0") return std::optional<std::int64_t>(0);
  LOCKSTEP_TRY_ASSIGN(const std::int64_t seconds, time_or("wait", options.wait, kDefaultWait));
  return std::optional<std::int64_t>(seconds);
}

}  // namespace lockstep::cli
