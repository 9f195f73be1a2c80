#include "cloud/aws/places.h"

#include "base/text.h"
#include "cloud/aws/answers.h"
#include "cloud/bounded_web.h"
#include "cloud/json_words.h"
#include "cloud/machine_table.h"
#include "cloud/time_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace lockstep::cloud::aws {
namespace {

constexpr int kMostPricePages = 5;
// The list of regions blocks all other questions, so leave a silent region early.
constexpr std::chrono::milliseconds kListPatience{2500};

std::vector<std::string> known_types() {
  std::vector<std::string> types;
  for (const MachineType& type : machine_table("aws")->types)
    types.push_back(type.type);
  return types;
}

// Returns whether a text of AWS is safe as a word of a row, and later in requests.
bool is_word(std::string_view text) {
  return !text.empty() && text.size() < 64 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7F; });
}

Asked<WordRows> ask_rows(Web& web, Api& api, const Query& query, const std::string& region,
                         std::string_view list, const std::vector<std::string_view>& members) {
  auto items = api.ask_pages(web, query, region, list);
  if (!items) return tl::make_unexpected(std::move(items).error());
  WordRows rows;
  for (const Xml& item : *items) {
    std::vector<std::string> row;
    row.reserve(members.size());
    for (const std::string_view member : members)
      row.emplace_back(item.text(member));
    // Skip a row with an odd text, since rows become file lines and parts of requests.
    if (std::all_of(row.begin(), row.end(), is_word)) rows.push_back(std::move(row));
  }
  return rows;
}

// Any region can list all regions. Each region has a share of the time, so a silent region is
// skipped.
Asked<WordRows> ask_regions(Web& web, Api& api) {
  std::vector<std::string> asked{api.ring().region()};
  // Keys for AWS GovCloud or China work in no other partition.
  if (asked[0].find("-gov-") == std::string::npos && !asked[0].starts_with("cn-"))
    for (const char* other : {"us-east-1", "us-west-2", "eu-west-1"})
      if (other != asked[0]) asked.emplace_back(other);
  Asked<WordRows> rows;
  for (const std::string& region : asked) {
    BoundedWeb bounded(web, io::Clock::now() + kListPatience);
    rows = ask_rows(bounded, api, Query("DescribeRegions"), region, "regionInfo", {"regionName"});
    if (rows || !rows.error().silent()) break;
  }
  if (rows) std::erase_if(*rows, [](const auto& row) { return !is_region(row[0]); });
  return rows;
}

Asked<WordRows> ask_zones(Web& web, Api& api, const std::string& region) {
  auto root = api.ask_xml(web, ApiCall::of(Query("DescribeAvailabilityZones"), region));
  if (!root) return tl::make_unexpected(std::move(root).error());
  WordRows rows;
  for (const Xml& zone : root->list("availabilityZoneInfo"))
    if (is_usable_zone(zone) && is_word(zone.text("zoneName")) && is_word(zone.text("zoneId")))
      rows.push_back({std::string(zone.text("zoneName")), std::string(zone.text("zoneId"))});
  return rows;
}

Asked<WordRows> ask_types(Web& web, Api& api, const std::string& region) {
  Query query("DescribeInstanceTypeOfferings");
  query.add("LocationType", "availability-zone").filter("instance-type", known_types());
  return ask_rows(web, api, query, region, "instanceTypeOfferingSet", {"instanceType", "location"});
}

// Asks for a history that starts now: AWS answers with the current price of each zone.
Asked<WordRows> ask_spot(Web& web, Api& api, const std::string& region) {
  Query query("DescribeSpotPriceHistory");
  query.add("StartTime", iso_time(web.now_ms() + api.clock_offset_ms()))
      .list("InstanceType", known_types())
      .add("ProductDescription.1", "Linux/UNIX")
      .add("MaxResults", 1000);
  auto rows = ask_rows(web, api, query, region, "spotPriceHistorySet",
                       {"instanceType", "availabilityZone", "spotPrice", "timestamp"});
  if (!rows) return rows;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> newest;
  for (auto& row : *rows) {
    auto& known = newest[{row[0], row[1]}];
    // Times of the same form: the later one is the greater text.
    if (known.empty() || known[3] < row[3]) known = std::move(row);
  }
  WordRows prices;
  for (auto& [place, row] : newest)
    if (const auto price = micros_of(row[2]))
      prices.push_back({row[0], row[1], std::to_string(*price)});
  return prices;
}

Asked<WordRows> ask_quota(Web& web, Api& api, const std::string& region, const std::string& code) {
  auto answer = api.ask_json(
      web, ApiCall::of(Service::quotas, region, "GetServiceQuota",
                       fmt::format(R"({{"ServiceCode":"ec2","QuotaCode":"{}"}})", code)));
  if (!answer) return tl::make_unexpected(std::move(answer).error());
  const nlohmann::json& value = json_member(json_member(*answer, "Quota"), "Value");
  // AWS writes quotas as floating-point numbers: 192.0.
  const double limit = value.is_number() ? value.get<double>() : -1;
  if (limit < 0 || limit > 1e9) return WordRows{};
  return WordRows{{std::to_string(static_cast<std::int64_t>(limit))}};
}

// token: the next page's, as a JSON string.
std::string product_question(const std::string& type, const std::string& token) {
  constexpr std::string_view kMatch = R"({{"Type":"TERM_MATCH","Field":"{}","Value":"{}"}})";
  std::string filters = fmt::format(kMatch, "instanceType", type);
  for (const auto& [field, value] : {std::pair{"operatingSystem", "Linux"},
                                     {"tenancy", "Shared"},
                                     {"preInstalledSw", "NA"},
                                     {"capacitystatus", "Used"}})
    filters += "," + fmt::format(kMatch, field, value);
  return fmt::format(R"({{"ServiceCode":"AmazonEC2","Filters":[{}],"MaxResults":100{}{}}})",
                     filters, token.empty() ? "" : R"(,"NextToken":)", token);
}

// Asks for all regions in one call, since a call takes about a second.
Asked<WordRows> ask_prices(Web& web, Api& api, const std::string& type) {
  WordRows rows;
  std::string token;
  for (int page = 0; page < kMostPricePages; ++page) {
    auto answer = api.ask_json(web, ApiCall::of(Service::pricing, "us-east-1", "GetProducts",
                                                product_question(type, token)));
    if (!answer) return tl::make_unexpected(std::move(answer).error());
    for (const ProductPrice& price : product_prices(*answer))
      if (is_region(price.region)) rows.push_back({price.region, std::to_string(price.per_hour)});
    const nlohmann::json& next = json_member(*answer, "NextToken");
    token = next.is_string() ? codec::print_json(next) : "";
    if (token.empty()) break;
  }
  return rows;
}

// Marks a refused region. region_silence() writes the mark, and nothing ever asks AWS for it.
KeptQuestion denied_question(const std::string& region) {
  return {.name = "denied-" + region, .most_age_ms = kDayMs, .ask = [region](Web& /*web*/) {
            return Asked<WordRows>(WordRows{{region}});
          }};
}

}  // namespace

Asked<std::vector<std::string>> regions(Web& web, Api& api, std::int64_t most_age_ms) {
  const KeptQuestion question{.name = "regions", .most_age_ms = most_age_ms, .ask = [&](Web& own) {
                                return ask_regions(own, api);
                              }};
  auto kept = kept_rows(web, api, question);
  if (!kept) return tl::make_unexpected(std::move(kept).error());
  std::vector<std::string> names;
  for (const auto& row : kept->rows)
    names.push_back(row[0]);
  return names;
}

Asked<std::vector<std::string>> open_regions(Web& web, Api& api, std::int64_t most_age_ms) {
  auto names = regions(web, api, most_age_ms);
  if (names)
    std::erase_if(*names, [&](const std::string& region) {
      return rows_at_hand(web, api, denied_question(region)).has_value();
    });
  return names;
}

NoAnswer region_silence(Web& web, Api& api, const std::string& region, const ApiFailure& trouble) {
  NoAnswer silence{.provider = "aws", .region = region, .why = trouble.message};
  silence.denied = denied_by_organization(trouble);
  if (silence.denied) {
    KeptQuestion answered = denied_question(region);
    answered.most_age_ms = 0;
    (void)kept_rows(web, api, answered);
  }
  return silence;
}

KeptQuestion zones_question(Api& api, const std::string& region) {
  return {.name = "zones-" + region, .most_age_ms = kDayMs, .ask = [&api, region](Web& web) {
            return ask_zones(web, api, region);
          }};
}

KeptQuestion types_question(Api& api, const std::string& region) {
  return {.name = "types-" + region, .most_age_ms = kDayMs, .ask = [&api, region](Web& web) {
            return ask_types(web, api, region);
          }};
}

KeptQuestion spot_question(Api& api, const std::string& region) {
  return {.name = "spot-" + region, .most_age_ms = kTenMinutesMs, .ask = [&api, region](Web& web) {
            return ask_spot(web, api, region);
          }};
}

KeptQuestion quota_question(Api& api, const std::string& region, const std::string& code) {
  return {.name = fmt::format("quota-{}-{}", region, code),
          .most_age_ms = kTenMinutesMs,
          .ask = [&api, region, code](Web& web) { return ask_quota(web, api, region, code); }};
}

KeptQuestion price_question(Api& api, const std::string& type) {
  return {.name = "price-" + type, .most_age_ms = kDayMs, .ask = [&api, type](Web& web) {
            return ask_prices(web, api, type);
          }};
}

}  // namespace lockstep::cloud::aws
