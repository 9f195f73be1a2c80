#include "cloud/aws/answers.h"

#include "base/text.h"
#include "cloud/json_words.h"
#include "cloud/time_text.h"
#include "codec/json_members.h"

#include <algorithm>
#include <array>

namespace lockstep::cloud::aws {
namespace {

constexpr std::size_t kMicroDigits = 6;
// AWS's price lists have rows with 700.0 instead of no price.
constexpr Micros kNoPrice = 700 * kDollar;

struct StateRow {
  std::string_view name;
  Machine::State state;
};

constexpr std::array kStates{
    StateRow{"pending", Machine::State::pending},      StateRow{"running", Machine::State::running},
    StateRow{"shutting-down", Machine::State::ending}, StateRow{"terminated", Machine::State::gone},
    StateRow{"stopping", Machine::State::stopped},     StateRow{"stopped", Machine::State::stopped},
};

Machine::State state_named(std::string_view name) {
  for (const StateRow& row : kStates)
    if (row.name == name) return row.state;
  // An unknown state counts as alive: never take such a machine for gone.
  return Machine::State::pending;
}

// Makes a text of AWS printable and bounded. Messages show such texts and later requests contain
// them.
std::string word(std::string_view text) {
  return printable(text, 128);
}

void take_tags(const Xml& instance, Machine& machine) {
  for (const Xml& tag : instance.list("tagSet")) {
    const std::string_view key = tag.text("key");
    const std::string value = word(tag.text("value"));
    if (key == "Name") machine.name = value;
    if (key == "lockstep:intent") machine.intent = value;
    if (key == "lockstep:owner") machine.owner = value;
    if (key == "lockstep:cluster") machine.cluster = value;
    if (key == "lockstep:ends") machine.ends_ms = parse_iso_time(value).value_or(0);
  }
}

// Reads a price dimension; nullopt: no hourly price.
std::optional<Micros> price_of_dimension(const nlohmann::json& dimension) {
  if (word_member(dimension, "unit") != "Hrs") return std::nullopt;
  return micros_of(word_member(json_member(dimension, "pricePerUnit"), "USD"));
}

// Reads the hourly on-demand price of a product; nullopt: the product is something else.
std::optional<ProductPrice> price_of_product(std::string_view text) {
  const nlohmann::json parsed = codec::parse_json(text);
  const nlohmann::json& facts = json_member(json_member(parsed, "product"), "attributes");
  const std::string place = word_member(facts, "locationType");
  const std::string market = word_member(facts, "marketoption");
  // AWS lists the price of a local zone under the code of its region.
  if ((!place.empty() && place != "AWS Region") || (!market.empty() && market != "OnDemand"))
    return std::nullopt;
  for (const auto& term : json_member(json_member(parsed, "terms"), "OnDemand"))
    for (const auto& dimension : json_member(term, "priceDimensions"))
      if (const auto price = price_of_dimension(dimension))
        return ProductPrice{.region = word_member(facts, "regionCode"), .per_hour = *price};
  return std::nullopt;
}

}  // namespace

std::optional<Micros> micros_of(std::string_view dollars) {
  std::string text(dollars.substr(0, 40));
  bool more = false;
  if (const std::size_t point = text.find('.');
      point != std::string::npos && text.size() > point + 1 + kMicroDigits) {
    // Round up, so that a shown price is never below the bill.
    more = text.find_first_not_of('0', point + 1 + kMicroDigits) != std::string::npos;
    text.resize(point + 1 + kMicroDigits);
  }
  const auto price = parse_dollars(text);
  if (!price || *price <= 0 || *price == kNoPrice) return std::nullopt;
  return *price + (more ? 1 : 0);
}

bool is_usable_zone(const Xml& zone) {
  const std::string_view type = zone.text("zoneType");
  const std::string_view opted = zone.text("optInStatus");
  return zone.text("zoneState") == "available" && (type.empty() || type == "availability-zone") &&
         opted != "not-opted-in";
}

Group group_of(const Xml& item) {
  Group group{.id = word(item.text("groupId")), .vpc = word(item.text("vpcId")), .ssh_from = {}};
  for (const Xml& rule : item.list("ipPermissions")) {
    // AWS writes "-1" for all protocols.
    const bool all = rule.text("ipProtocol") == "-1";
    for (const Xml& peer : rule.list("groups"))
      group.inside = group.inside || (all && peer.text("groupId") == group.id);
    if (rule.text("ipProtocol") != "tcp" || rule.text("fromPort") != "22") continue;
    for (const Xml& range : rule.list("ipRanges"))
      group.ssh_from.push_back(word(range.text("cidrIp")));
    for (const Xml& range : rule.list("ipv6Ranges"))
      group.ssh_from.push_back(word(range.text("cidrIpv6")));
  }
  return group;
}

std::optional<Image> image_of(const Xml& item) {
  if (item.text("imageState") != "available") return std::nullopt;
  Image image{.id = word(item.text("imageId")),
              .root_device = word(item.text("rootDeviceName")),
              .arch = word(item.text("architecture"))};
  for (const Xml& device : item.list("blockDeviceMapping"))
    if (device.text("deviceName") == image.root_device)
      image.min_gb = static_cast<int>(
          std::clamp<std::int64_t>(parse_int(device.text("ebs/volumeSize")).value_or(0), 0, 65536));
  if (image.id.empty() || image.root_device.empty()) return std::nullopt;
  return image;
}

std::string newest_image(const std::vector<Xml>& items, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const Xml* newest = nullptr;
    for (const Xml& item : items) {
      if (!image_of(item) || !item.text("name").starts_with(name)) continue;
      // Times of the same form: the later one is the greater text.
      if (newest == nullptr || item.text("creationDate") > newest->text("creationDate"))
        newest = &item;
    }
    if (newest != nullptr) return word(newest->text("imageId"));
  }
  return {};
}

Machine machine_of(const Xml& instance, const std::string& region) {
  Machine machine{.id = word(instance.text("instanceId")),
                  .region = region,
                  .zone = word(instance.text("placement/availabilityZone")),
                  .type = word(instance.text("instanceType")),
                  .state = state_named(instance.text("instanceState/name")),
                  .address = word(instance.text("ipAddress")),
                  .user = "ubuntu",
                  .private_address = word(instance.text("privateIpAddress")),
                  .launched_ms = parse_iso_time(instance.text("launchTime")).value_or(0),
                  .why = word(instance.text("stateReason/code")),
                  .token = word(instance.text("clientToken"))};
  // "Server.SpotInstanceTermination" and its like: AWS preempted the machine.
  machine.taken = machine.why.starts_with("Server.Spot");
  machine.no_room = machine.why == "Server.InsufficientInstanceCapacity";
  take_tags(instance, machine);
  return machine;
}

std::vector<Machine> machines_of(const std::vector<Xml>& reservations, const std::string& region) {
  std::vector<Machine> machines;
  for (const Xml& reservation : reservations)
    for (const Xml& instance : reservation.list("instancesSet"))
      machines.push_back(machine_of(instance, region));
  return machines;
}

std::vector<std::string> launched_ids(const Xml& root) {
  std::vector<std::string> ids;
  for (const Xml& instance : root.list("instancesSet"))
    if (const auto id = instance.text("instanceId"); !id.empty()) ids.push_back(word(id));
  return ids;
}

std::vector<ProductPrice> product_prices(const nlohmann::json& page) {
  std::vector<ProductPrice> prices;
  for (const std::string& text : codec::texts_member(page, "PriceList"))
    if (auto price = price_of_product(text)) prices.push_back(std::move(*price));
  return prices;
}

std::string who_of_arn(std::string_view arn) {
  const std::size_t colon = arn.rfind(':');
  return word(colon == std::string_view::npos ? arn : arn.substr(colon + 1));
}

}  // namespace lockstep::cloud::aws
