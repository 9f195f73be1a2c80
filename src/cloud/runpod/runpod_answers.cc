#include "cloud/runpod/runpod_answers.h"

#include "base/text.h"
#include "cloud/json_words.h"
#include "cloud/machine_name.h"
#include "cloud/runpod/runpod_requests.h"
#include "cloud/time_text.h"
#include "codec/json_members.h"

#include <algorithm>
#include <array>

namespace lockstep::cloud::runpod {
namespace {

using codec::text_member;
using Json = nlohmann::json;

// Pulling an image may take 20 minutes. After 15 minutes try another data center.
constexpr std::int64_t kLongestStartMs = 15LL * 60'000;
constexpr Micros kDiskPerGbMonth = kDollar / 10;

// RunPod's GraphQL has hardly any codes. Recognize refusals by their words, in lower case.
struct TextRow {
  std::string_view part;
  std::string_view code;
};
constexpr TextRow kTexts[] = {{"no longer any instances", "no-capacity"},
                              {"no instances currently available", "no-capacity"},
                              {"not have the resources", "no-capacity"},
                              {"below the minimum", "bid-too-low"},
                              {"balance", "no-balance"},
                              {"insufficient funds", "no-balance"},
                              {"unauthorized", "unauthorized"}};

struct StateRow {
  std::string_view status;
  Machine::State state;
};
constexpr StateRow kStates[] = {
    {"PROVISIONING", Machine::State::pending}, {"STARTING", Machine::State::pending},
    {"RUNNING", Machine::State::running},      {"EXITED", Machine::State::stopped},
    {"ERROR", Machine::State::unhealthy},      {"TERMINATED", Machine::State::gone}};

void read_variables(const Json& pod, Machine& machine) {
  const Json& variables = json_member(pod, "env");
  machine.cluster = word_member(variables, kClusterVariable);
  machine.ends_ms = parse_iso_time(text_member(variables, kEndsVariable)).value_or(0);
  // RunPod stops a spot pod to preempt it.
  machine.taken =
      machine.state == Machine::State::stopped && !text_member(variables, kSpotVariable).empty();
}

Machine machine_of_pod(const Json& pod, std::int64_t now_ms) {
  const std::string status = word_member(pod, "status");
  const Json& direct = json_member(json_member(pod, "ssh"), "direct");
  Machine machine{.id = id_member(pod, "id"),
                  .name = word_member(pod, "name"),
                  .region = id_member(pod, "dataCenterId"),
                  .type = word_member(json_member(pod, "gpu"), "id"),
                  .address = word_member(direct, "host"),
                  .user = word_member(direct, "username"),
                  .per_hour = dollars_member(pod, "cost").value_or(0)};
  // RunPod maps port 22 to another port, and gives the address only once the mapping exists.
  machine.port = machine.address.empty() ? 22 : count_member(direct, "port", 65535);
  if (machine.user.empty()) machine.user = "root";
  for (const StateRow& row : kStates)
    if (row.status == status) machine.state = row.state;
  // Pods of other programs have other names. Never read more of such pods.
  if (!read_name(machine)) return machine;
  read_variables(pod, machine);
  if (const auto created = parse_iso_time(text_member(pod, "createdAt")))
    machine.launched_ms = *created;
  if (machine.state == Machine::State::pending && machine.launched_ms > 0 &&
      now_ms - machine.launched_ms > kLongestStartMs) {
    machine.state = Machine::State::unhealthy;
    machine.why = "not running after 15 minutes";
  } else if (machine.state != Machine::State::pending && machine.state != Machine::State::running) {
    machine.why = status;
  }
  return machine;
}

Stock stock_of(const std::string& level) {
  if (level == "NONE") return Stock::none;
  return level.empty() ? Stock::unknown : Stock::in_stock;
}

// Returns the numbers of GPUs per pod that the wish admits.
std::vector<int> counts_of(const OfferQuery& query, const Gpu& gpu, int most) {
  std::vector<int> counts;
  for (int count = 1; count <= std::min(most, 16); ++count) {
    const bool power = (count & (count - 1)) == 0;
    const bool wanted = query.gpu.kinds.empty() ? power
                                                : query.gpu.admits(gpu.name, count) &&
                                                      (power || count == query.gpu.count);
    if (wanted) counts.push_back(count);
  }
  return counts;
}

// Makes the offer of a kind and number of GPUs, without a place; nullopt: not for rent.
std::optional<Offer> offer_of_kind(const Json& kind, const Gpu& gpu, int count, Price price,
                                   const std::map<std::string, Bid>* bids) {
  const auto secure = dollars_member(json_member(kind, "price"), "secure");
  Offer offer{.provider = "runpod",
              .region = {},
              .zone = {},
              .zone_id = {},
              .type = word_member(kind, "id"),
              .gpu = gpu.name,
              .gpus = count,
              .gpu_memory_gb = gpu.memory_gb,
              .min_disk_gb = kLeastDisk,
              .arch = gpu.arch,
              .spot = bids != nullptr,
              .most_nodes = 1,
              .price = price,
              .disk_per_gb_month = kDiskPerGbMonth,
              .note = "container"};
  Micros per_gpu = secure.value_or(0);
  if (bids != nullptr) {
    const auto bid = bids->find(offer.type);
    if (bid == bids->end()) return std::nullopt;
    per_gpu = bid->second.least;
    // Never pay more for spot than on demand.
    if (secure && per_gpu > *secure) offer.not_for_sale = "spot costs more than on demand";
  } else if (!secure || !json_member(kind, "secure").is_boolean() || !kind["secure"].get<bool>()) {
    return std::nullopt;
  }
  offer.price.per_hour = per_gpu * count;
  return offer;
}

void add_places(const Json& kind, const OfferQuery& query, bool stock_known, Offer offer,
                std::vector<Offer>& offers) {
  std::size_t places = 0;
  for (const Json& center : json_member(kind, "dataCenters")) {
    offer.region = id_member(center, "id");
    offer.stock = stock_known ? stock_of(text_member(center, "availability")) : Stock::unknown;
    if (offer.region.empty()) continue;
    ++places;
    if (query.regions.empty() ||
        std::find(query.regions.begin(), query.regions.end(), offer.region) != query.regions.end())
      offers.push_back(offer);
  }
  // Show a GPU that no data center has now as sold out.
  if (places != 0 || !query.regions.empty()) return;
  offer.region.clear();
  offer.stock = Stock::none;
  offers.push_back(std::move(offer));
}

}  // namespace

ServiceWords words_of(const Json& answer) {
  if (const auto refusal = graphql_refusal(answer)) return *refusal;
  ServiceWords words{.code = {}, .message = text_member(answer, "detail")};
  for (const std::string& each : codec::texts_member(answer, "errors"))
    words.message += "; " + each;
  return words;
}

std::span<const RefusalRow> refusal_rows() {
  static constexpr auto kRows = std::to_array<RefusalRow>({
      {"no-capacity", Refusal::next_zone},
      {"SUPPLY_CONSTRAINT", Refusal::next_zone},
      {"bid-too-low", Refusal::next_zone},
      {"no-balance", Refusal::provider_out},
      {"unauthorized", Refusal::provider_out},
      {"GRAPHQL_VALIDATION_FAILED", Refusal::stop},
      {"BAD_USER_INPUT", Refusal::stop},
      {"FORBIDDEN", Refusal::provider_out},
      {"http-400", Refusal::next_zone},  // invalid request or no capacity: no code tells which
      {"http-401", Refusal::provider_out},
      {"http-402", Refusal::provider_out},
      {"http-403", Refusal::next_zone},
      {"http-422", Refusal::stop},
      {"http-*", Refusal::provider_out},
      {"unreachable", Refusal::provider_out},
      {"graphql", Refusal::next_zone},  // an error whose words have no row
  });
  return kRows;
}

std::optional<ServiceWords> graphql_refusal(const Json& answer) {
  const Json& errors = json_member(answer, "errors");
  if (!errors.is_array() || errors.empty() || !errors[0].is_object()) return std::nullopt;
  ServiceWords words{.code = text_member(json_member(errors[0], "extensions"), "code"),
                     .message = text_member(errors[0], "message")};
  // Cut the value: it may be the start script, which contains the first host key.
  constexpr std::string_view kBeforeValue = " got invalid value";
  if (const std::size_t value = words.message.find(kBeforeValue); value != std::string::npos)
    words.message.resize(value + kBeforeValue.size());
  const std::string said = to_lower(words.message);
  // The words win over the code, which is general.
  for (const TextRow& row : kTexts)
    if (said.find(row.part) != std::string::npos) words.code = row.code;
  if (words.code.empty()) words.code = "graphql";
  return words;
}

LaunchOutcome launched(const Json& answer) {
  for (const Json& pod : json_member(answer, "data"))
    if (const std::string id = id_member(pod, "id"); !id.empty())
      return {.kind = LaunchOutcome::Kind::answered, .ids = {id}};
  const auto words = graphql_refusal(answer);
  // RunPod may have made the pod before an internal error.
  if (!words || words->code == "INTERNAL_SERVER_ERROR")
    return {.kind = LaunchOutcome::Kind::unknown,
            .message = "RunPod: launch: " +
                       (words ? printable(words->message) : std::string("the answer has no id"))};
  return refused(refusal_of(refusal_rows(), words->code), printable(words->code, 80),
                 printable(words->message, 300));
}

std::map<std::string, Bid> bids_of(const Json& answer) {
  std::map<std::string, Bid> bids;
  for (const Json& type : json_member(json_member(answer, "data"), "gpuTypes")) {
    const Json& lowest = json_member(type, "lowestPrice");
    if (const auto least = dollars_member(lowest, "minimumBidPrice"))
      bids[word_member(type, "id")] = {
          .least = *least, .on_demand = dollars_member(lowest, "uninterruptablePrice").value_or(0)};
  }
  return bids;
}

std::vector<Offer> offers_of(const Json& answer, const OfferQuery& query, const Price& price,
                             int asked, const std::map<std::string, Bid>* bids) {
  std::vector<Offer> offers;
  for (const Json& kind : json_member(answer, "gpus")) {
    const Gpu* gpu = gpu_described(text_member(kind, "id"), count_member(kind, "memory"));
    if (gpu == nullptr) continue;
    const int most = count_member(json_member(kind, "maxCount"), "secure");
    // RunPod tells the stock for the requested number of GPUs only.
    for (const int count : counts_of(query, *gpu, most))
      if (auto offer = offer_of_kind(kind, *gpu, count, price, bids))
        add_places(kind, query, count == asked, std::move(*offer), offers);
  }
  return offers;
}

std::vector<Machine> machines_of(const Json& answer, std::int64_t now_ms) {
  std::vector<Machine> machines;
  for (const Json& pod : json_member(answer, "pods")) {
    Machine machine = machine_of_pod(pod, now_ms);
    if (!machine.id.empty() && !machine.intent.empty()) machines.push_back(std::move(machine));
  }
  return machines;
}

Account account_of(const Json& answer) {
  const Json& myself = json_member(json_member(answer, "data"), "myself");
  Account account;
  account.id = word_member(myself, "id");
  account.email = word_member(myself, "email");
  if (const Json& balance = json_member(myself, "clientBalance"); balance.is_number())
    account.balance = balance.get<double>();
  return account;
}

}  // namespace lockstep::cloud::runpod
