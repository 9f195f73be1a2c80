#include "cloud/gcp/places.h"

#include "base/text.h"
#include "cloud/gcp/types.h"
#include "cloud/gcp/values.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace lockstep::cloud::gcp {
namespace {

// Bounds memory, whatever Google answers.
constexpr std::size_t kMostRows = 100'000;
constexpr int kVcpusPerAdded = 8;  // of an n1 machine, per added GPU
constexpr std::string_view kAllRegions = "GPUS_ALL_REGIONS";

// Returns whether a text can be a word of a kept line.
bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= 80 && text.find_first_of(" \n") == std::string_view::npos;
}

bool is_sold(const nlohmann::json& type) {
  const std::string state = text_at(type, "deprecated/state");
  // Google still launches a deprecated type, but no longer an obsolete one.
  return state.empty() || state == "ACTIVE" || state == "DEPRECATED";
}

void add_quotas(const nlohmann::json& owner, std::string_view region,
                std::map<std::string, std::int64_t>& quotas) {
  for (const nlohmann::json* quota : items_at(owner, "quotas")) {
    const std::string metric = text_at(*quota, "metric");
    if (is_word(metric) && metric.find("GPUS") != std::string::npos && quotas.size() < kMostRows)
      quotas[fmt::format("{} {}", region, metric)] = number_at(*quota, "limit");
  }
}

std::optional<std::int64_t> value_in(const std::map<std::string, std::int64_t>& quotas,
                                     const std::string& key) {
  const auto found = quotas.find(key);
  return found == quotas.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

void Places::add_types(const nlohmann::json& page) {
  for (const auto& [zone, type] : items_in_zones(page, "machineTypes")) {
    MachineParts parts{
        .type = text_at(*type, "name"),
        .vcpus = static_cast<int>(number_at(*type, "guestCpus")),
        .memory_mb = number_at(*type, "memoryMb"),
        .accelerator = text_at(*type, "accelerators/0/guestAcceleratorType"),
        .gpus = static_cast<int>(number_at(*type, "accelerators/0/guestAcceleratorCount"))};
    if (is_word(zone) && is_word(parts.type) && is_sold(*type) &&
        series_of(parts.type) != nullptr && types.size() < kMostRows)
      types.push_back({zone, std::move(parts)});
  }
  for (const std::string& zone : unheard_zones(page))
    silent.push_back({.provider = "gcp", .region = zone, .why = "Google does not reach it"});
}

void Places::add_accelerators(const nlohmann::json& page) {
  for (const auto& [zone, one] : items_in_zones(page, "acceleratorTypes")) {
    const Accelerator* known = find_accelerator(text_at(*one, "name"));
    if (known == nullptr || !known->added() || !is_word(zone) || added.size() >= kMostRows)
      continue;
    const std::int64_t most = number_at(*one, "maximumCardsPerInstance");
    added.push_back({zone, std::string(known->name), most > 0 ? static_cast<int>(most) : 8});
  }
}

void Places::add_regions(const nlohmann::json& page) {
  for (const nlohmann::json* region : items_at(page, "items")) {
    const std::string name = text_at(*region, "name");
    if (!is_word(name) || regions.size() >= 1000) continue;
    regions.push_back(name);
    add_quotas(*region, name, quotas);
  }
}

void Places::add_project(const nlohmann::json& project) {
  add_quotas(project, "*", quotas);
}

std::vector<Places::Type> Places::with_gpus() const {
  std::vector<Type> all;
  for (const Type& type : types)
    if (type.parts.gpus > 0) all.push_back(type);
  for (const Added& one : added) {
    const Accelerator* known = find_accelerator(one.accelerator);
    for (std::size_t i = 0; known != nullptr && i < known->most_vcpus.size(); ++i) {
      const int gpus = 1 << i;
      if (gpus > one.most || known->most_vcpus[i] == 0) break;
      // Add the GPUs to the smallest machine with enough vCPUs for them.
      const Type* best = nullptr;
      for (const Type& type : types)
        if (type.zone == one.zone && type.parts.type.starts_with("n1-") &&
            type.parts.vcpus >= gpus * kVcpusPerAdded && type.parts.vcpus <= known->most_vcpus[i] &&
            (best == nullptr || type.parts.vcpus < best->parts.vcpus))
          best = &type;
      if (best == nullptr) continue;
      all.push_back(*best);
      all.back().parts.accelerator = one.accelerator;
      all.back().parts.gpus = gpus;
    }
  }
  return all;
}

std::vector<Places::Type> Places::plain() const {
  std::vector<Type> all;
  std::copy_if(types.begin(), types.end(), std::back_inserter(all),
               [](const Type& type) { return series_of(type.parts.type)->plain_percent > 0; });
  return all;
}

std::optional<std::int64_t> Places::quota(const std::string& accelerator, const std::string& region,
                                          bool spot) const {
  const Accelerator* known = find_accelerator(accelerator);
  if (known == nullptr) return std::nullopt;
  const auto there =
      value_in(quotas, fmt::format("{} {}{}", region, spot ? "PREEMPTIBLE_" : "", known->quota));
  const auto all = value_in(quotas, fmt::format("* {}", kAllRegions));  // spot GPUs count, too
  if (there && all) return std::min(*there, *all);
  // The limit for all regions together, if 0, is 0 in each region. Otherwise a region's limit is
  // unknown.
  return there ? there : all && *all == 0 ? all : std::nullopt;
}

std::string Places::text() const {
  std::string text;
  for (const std::string& region : regions)
    text += fmt::format("R {}\n", region);
  for (const auto& [key, limit] : quotas)
    text += fmt::format("Q {} {}\n", key, limit);
  for (const Added& one : added)
    text += fmt::format("A {} {} {}\n", one.zone, one.accelerator, one.most);
  for (const Type& type : types)
    text += fmt::format(
        "T {} {} {} {} {} {}\n", type.zone, type.parts.type, type.parts.vcpus, type.parts.memory_mb,
        type.parts.accelerator.empty() ? "-" : type.parts.accelerator, type.parts.gpus);
  return text;
}

Places Places::parse(std::string_view text) {
  Places places;
  std::size_t rows = 0;
  while (!text.empty() && ++rows <= kMostRows) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::vector<std::string> words = split(line, ' ');
    const auto number = [&](std::size_t i) { return parse_int(words[i]).value_or(0); };
    if (words[0] == "R" && words.size() == 2) places.regions.push_back(words[1]);
    if (words[0] == "Q" && words.size() == 4) places.quotas[words[1] + " " + words[2]] = number(3);
    if (words[0] == "A" && words.size() == 4)
      places.added.push_back({words[1], words[2], static_cast<int>(number(3))});
    if (words[0] == "T" && words.size() == 7)
      places.types.push_back({words[1],
                              {.type = words[2],
                               .vcpus = static_cast<int>(number(3)),
                               .memory_mb = number(4),
                               .accelerator = words[5] == "-" ? "" : words[5],
                               .gpus = static_cast<int>(number(6))}});
  }
  return places;
}

}  // namespace lockstep::cloud::gcp
