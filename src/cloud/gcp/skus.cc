#include "cloud/gcp/skus.h"

#include "base/text.h"
#include "cloud/gcp/types.h"
#include "cloud/gcp/values.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace lockstep::cloud::gcp {
namespace {

constexpr Nanos kNanosPerMicro = 1000;
constexpr std::int64_t kMbPerGb = 1024;
constexpr std::size_t kMostLines = 50'000;

// A description with one of these words prices something else than a plain machine.
constexpr std::array<std::string_view, 10> kForeign = {
    "Custom",    "Premium", "Reserved",   "Sole Tenancy", "suspended",
    "Suspended", "DWS",     "Commitment", "Workstation",  "Calendar"};

constexpr std::string_view kSpotStart = "Spot Preemptible ";
constexpr std::string_view kAttached = " attached to Spot Preemptible VMs";

bool eat(std::string_view& text, std::string_view start) {
  if (!text.starts_with(start)) return false;
  text.remove_prefix(start.size());
  return true;
}

// Returns whether the rest of a description is empty or names a place.
bool is_place(std::string_view text) {
  return text.empty() || text.starts_with(" running in ") || text.starts_with(" in ");
}

// Returns "core:a2" for "A2 Instance Core running in Americas".
std::string core_or_ram(std::string_view text) {
  const std::string family = to_lower(text.substr(0, text.find(' ')));
  text.remove_prefix(family.size());
  (void)eat(text, " Predefined");
  (void)eat(text, " Instance");
  std::string kind;
  if (eat(text, " Core"))
    kind = "core:";
  else if (eat(text, " Ram"))
    kind = "ram:";
  else
    return {};
  return is_place(text) ? kind + family : std::string();
}

// Returns the highest of a price's tiers, since the first tier of some parts is free.
Nanos price_in(const nlohmann::json& sku, std::string_view& unit) {
  const std::vector<const nlohmann::json*> periods = items_at(sku, "pricingInfo");
  if (periods.empty()) return 0;
  // The last period is the present one.
  const nlohmann::json& now = at(*periods.back(), "pricingExpression");
  static constexpr std::array<std::string_view, 3> kUnits = {"h", "GiBy.h", "GiBy.mo"};
  const std::string said = text_at(now, "usageUnit");
  const auto* known = std::find(kUnits.begin(), kUnits.end(), said);
  unit = known == kUnits.end() ? "" : *known;
  Nanos price = 0;
  for (const nlohmann::json* step : items_at(now, "tieredRates")) {
    const std::string currency = text_at(*step, "unitPrice/currencyCode");
    const std::int64_t units = number_at(*step, "unitPrice/units");
    const std::int64_t nanos = number_at(*step, "unitPrice/nanos");
    // Skip other currencies and impossible amounts, since sums must not overflow.
    if (!currency.empty() && currency != "USD") continue;
    if (units < 0 || units > 1'000'000 || nanos < 0 || nanos > 999'999'999) continue;
    price = std::max(price, units * 1'000'000'000 + nanos);
  }
  return price;
}

std::string_view unit_of(std::string_view part) {
  if (part.starts_with("ram:")) return "GiBy.h";
  return part.find(':') != std::string_view::npos ? "h" : "GiBy.mo";
}

std::string key_of(std::string_view part, std::string_view region, bool spot) {
  return fmt::format("{} {} {}", part, region, spot ? "spot" : "od");
}

}  // namespace

std::string part_of_description(std::string_view description, bool& spot) {
  for (const std::string_view word : kForeign)
    if (description.find(word) != std::string_view::npos) return {};
  std::string_view text = description;
  if (eat(text, kSpotStart) || eat(text, "Preemptible ") ||
      text.find("Preemptible") != std::string_view::npos)
    spot = true;
  for (const Accelerator& one : accelerators())
    for (const std::string_view name : one.priced_as) {
      std::string_view rest = text;
      if (name.empty() || !eat(rest, name)) continue;
      (void)eat(rest, kAttached);
      if (is_place(rest)) return fmt::format("gpu:{}", one.name);
    }
  static constexpr std::array<std::array<std::string_view, 2>, 3> kDisks = {{
      {"SSD backed Local Storage", "ssd"},
      {"Balanced PD Capacity", "pd-balanced"},
      {"Hyperdisk Balanced Capacity", "hyperdisk-balanced"},
  }};
  for (const auto& [name, part] : kDisks) {
    std::string_view rest = text;
    if (!eat(rest, name)) continue;
    (void)eat(rest, kAttached);
    return is_place(rest) ? std::string(part) : std::string();
  }
  return core_or_ram(text);
}

void UnitPrices::add_sku(const nlohmann::json& sku) {
  const std::string usage = text_at(sku, "category/usageType");
  if (usage != "OnDemand" && usage != "Preemptible") return;
  bool spot = usage == "Preemptible";
  const std::string part = part_of_description(text_at(sku, "description"), spot);
  if (part.empty()) return;
  std::string_view unit;
  const Nanos price = price_in(sku, unit);
  // The unit must fit the part. A price for another unit would be misread.
  if (price == 0 || unit != unit_of(part)) return;
  for (const std::string& region : texts_at(sku, "serviceRegions")) {
    if (prices_.size() >= kMostLines) break;
    // If a part has two prices keep the higher: a shown price is never below the bill.
    Nanos& kept = prices_[key_of(part, region.substr(0, 60), spot)];
    kept = std::max(kept, price);
  }
}

void UnitPrices::add_page(const nlohmann::json& page) {
  for (const nlohmann::json* sku : items_at(page, "skus"))
    add_sku(*sku);
}

std::optional<Nanos> UnitPrices::find(std::string_view part, std::string_view region,
                                      bool spot) const {
  const auto found = prices_.find(key_of(part, region, spot));
  return found == prices_.end() ? std::nullopt : std::optional<Nanos>(found->second);
}

bool UnitPrices::has_part(std::string_view part) const {
  const std::string start = fmt::format("{} ", part);
  const auto found = prices_.lower_bound(start);
  return found != prices_.end() && found->first.starts_with(start);
}

std::string UnitPrices::text() const {
  std::string text;
  for (const auto& [key, price] : prices_)
    text += fmt::format("{}={}\n", key, price);
  return text;
}

UnitPrices UnitPrices::parse(std::string_view text) {
  UnitPrices prices;
  while (!text.empty() && prices.prices_.size() < kMostLines) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t sign = line.find('=');
    if (sign == std::string_view::npos) continue;
    if (const auto price = parse_int(line.substr(sign + 1)); price && *price > 0)
      prices.prices_.emplace(line.substr(0, sign), *price);
  }
  return prices;
}

int local_ssd_gb(const MachineParts& parts) {
  const Series* series = series_of(parts.type);
  return series == nullptr ? 0 : series->ssd_gb_per_gpu * parts.gpus;
}

std::optional<MachinePrice> price_of(const UnitPrices& prices, const MachineParts& parts,
                                     std::string_view region, bool spot) {
  const Series* series = series_of(parts.type);
  if (series == nullptr) return std::nullopt;
  Nanos sum = 0;
  if (parts.gpus > 0) {
    const auto gpu = prices.find(fmt::format("gpu:{}", parts.accelerator), region, spot);
    if (!gpu) return std::nullopt;
    sum = *gpu * parts.gpus;
  }
  // The price of some GPUs includes vCPUs and memory.
  if (!series->part.empty()) {
    const auto core = prices.find(fmt::format("core:{}", series->part), region, spot);
    const auto ram = prices.find(fmt::format("ram:{}", series->part), region, spot);
    // Without a part the sum would be below the bill: give no price.
    if (!core || !ram) return std::nullopt;
    // A shared machine such as e2-small bills only a part of its vCPUs.
    const int percent = series->plain_percent > 0 ? series->plain_percent : 100;
    sum += *core * parts.vcpus * percent / 100;
    sum += (*ram * parts.memory_mb + kMbPerGb / 2) / kMbPerGb;
  }
  MachinePrice price{.machine = (sum + kNanosPerMicro / 2) / kNanosPerMicro};
  if (const int gb = local_ssd_gb(parts); gb > 0) {
    const auto ssd = prices.find("ssd", region, spot);
    if (!ssd) return std::nullopt;
    // Round the sum of both, as the bill does.
    const std::int64_t both = sum + (*ssd * gb + kHoursPerMonth / 2) / kHoursPerMonth;
    price.local_ssd = (both + kNanosPerMicro / 2) / kNanosPerMicro - price.machine;
  }
  return price;
}

}  // namespace lockstep::cloud::gcp
