#include "cli/on_demand_words.h"

#include "base/columns.h"
#include "base/date_text.h"
#include "base/text.h"
#include "base/word_list.h"
#include "cli/on_demand_options.h"
#include "cloud/offer_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

namespace lockstep::cli {
namespace {

using cloud::Candidate;
using cloud::dollars_text;
using cloud::Offer;

constexpr std::size_t kColumns = 12;
constexpr std::size_t kPlaceColumn = 1;
using Row = std::array<std::string, kColumns>;

std::string place_words(const Offer& offer) {
  return offer.zone.empty() ? offer.region : offer.zone;
}

std::string quota_words(const Offer& offer) {
  if (!offer.quota) return "unknown";
  return fmt::format("{} {}", offer.quota->limit, offer.quota->unit);
}

Row offer_row(const Offer& offer, cloud::Micros per_hour, const std::string& remark,
              std::int64_t now_ms) {
  return {offer.provider,
          place_words(offer),
          offer.type + (offer.spot ? " (spot)" : ""),
          fmt::format("{}:{}", offer.gpu, offer.gpus),
          fmt::format("{} GB", offer.gpu_memory_gb),
          offer.vcpus > 0 ? std::to_string(offer.vcpus) : "-",
          offer.memory_gb > 0 ? fmt::format("{} GB", offer.memory_gb) : "-",
          offer.has_price() ? dollars_text(per_hour) : "unknown",
          offer.has_price() ? price_words(offer.price, now_ms) : "unknown",
          cloud::stock_name(offer.stock),
          quota_words(offer),
          fmt::format("{}{}{}", offer.ending == cloud::Ending::by_itself ? "yes" : "with a guard",
                      remark.empty() ? "" : "; ", remark)};
}

// A line of the table, for offers that differ only in the zone.
struct ZoneGroup {
  Row cells;
  const Offer* first;
  std::vector<std::string> zones = {};
};

constexpr std::size_t kMostZonesNamed = 4;

// Returns "us-east-1a b c" or "us-central1-a b". Many zones, or zones with long names, become
// "us-east-1, 6 zones".
std::string zones_words(const Offer& first, const std::vector<std::string>& zones) {
  if (zones.size() < 2) return place_words(first);
  std::string many = fmt::format("{}, {} zones", first.region, zones.size());
  if (zones.size() > kMostZonesNamed) return many;
  std::string text = zones.front();
  for (const std::string& zone : zones) {
    const bool of_region = zone.starts_with(first.region);
    std::string_view letter = std::string_view(zone).substr(of_region ? first.region.size() : 0);
    if (letter.starts_with('-')) letter.remove_prefix(1);
    if (!of_region || letter.size() != 1) return many;
    if (&zone != &zones.front()) text.append(" ").append(letter);
  }
  return text;
}

// Adds the offer to the group of its kind. A group keeps the place of its first offer, so the order
// of the offers stays.
void add_grouped(std::vector<ZoneGroup>& groups, const Offer& offer, Row cells) {
  const auto same = std::find_if(groups.begin(), groups.end(), [&](const ZoneGroup& one) {
    if (one.first->region != offer.region || one.zones.empty() || offer.zone.empty()) return false;
    for (std::size_t i = 0; i < kColumns; ++i)
      if (i != kPlaceColumn && one.cells[i] != cells[i]) return false;
    return true;
  });
  if (same == groups.end()) {
    groups.push_back({.cells = std::move(cells), .first = &offer});
    if (!offer.zone.empty()) groups.back().zones.push_back(offer.zone);
    return;
  }
  if (std::find(same->zones.begin(), same->zones.end(), offer.zone) == same->zones.end())
    same->zones.push_back(offer.zone);
}

std::string silence_line(const cloud::NoAnswer& silence) {
  return fmt::format("{}{}{}: {}", silence.provider, silence.region.empty() ? "" : " ",
                     silence.region, silence.why);
}

std::string machine_words(const cloud::Leftover& one) {
  return fmt::format("{} {} in {}", one.provider, one.machine.id,
                     one.machine.zone.empty() ? one.machine.region : one.machine.zone);
}

// Returns one line for all regions denied to the account at a provider: an organization's policy
// may deny many.
std::string denied_line(const std::string& provider, const std::vector<std::string>& regions) {
  constexpr std::size_t kShown = 3;
  return fmt::format(
      "{}: a policy of your organization denies {} ({}); not asked again for a day, "
      "unless --region names one",
      provider, regions.size() == 1 ? "1 region" : fmt::format("{} regions", regions.size()),
      join_some(regions, kShown));
}

// Returns a line for each silent region, and one line a provider for denied regions.
std::vector<std::string> silence_lines(const std::vector<cloud::NoAnswer>& silent) {
  std::vector<std::string> lines;
  std::map<std::string, std::vector<std::string>> denied;
  for (const cloud::NoAnswer& one : silent)
    if (one.denied)
      denied[one.provider].push_back(one.region);
    else
      lines.push_back(silence_line(one));
  for (const auto& [provider, regions] : denied)
    lines.push_back(denied_line(provider, regions));
  return lines;
}

// Returns the line for one machine. Escapes the tags, which any user of the account can set.
std::string foreign_line(const cloud::Leftover& one, std::int64_t now_ms) {
  return fmt::format(
      "{} belongs to another installation of lockstep ({}, cluster {}{}): left alone",
      machine_words(one), printable(one.machine.owner, 20), printable(one.machine.cluster, 63),
      one.machine.launched_ms > 0
          ? ", " + time_words((now_ms - one.machine.launched_ms) / 1000) + " old"
          : "");
}

// Returns one line for each provider: colleagues with the same account may have many machines.
std::vector<std::string> foreign_lines(const std::vector<cloud::Leftover>& foreign,
                                       std::int64_t now_ms) {
  std::map<std::string, std::vector<const cloud::Leftover*>> found;
  for (const cloud::Leftover& one : foreign)
    found[one.provider].push_back(&one);
  std::vector<std::string> lines;
  for (const auto& [provider, machines] : found) {
    std::set<std::string_view> owners;
    for (const cloud::Leftover* one : machines)
      owners.insert(one->machine.owner);
    lines.push_back(machines.size() == 1
                        ? foreign_line(*machines.front(), now_ms)
                        : fmt::format("{}: {} machines belong to {} of lockstep: left alone",
                                      provider, machines.size(),
                                      owners.size() == 1
                                          ? "another installation"
                                          : fmt::format("{} other installations", owners.size())));
  }
  return lines;
}

// Returns "; it ran for 3 h, about 2.41 USD", as far as known.
std::string cost_words(const cloud::Leftover& one, std::int64_t now_ms) {
  if (one.machine.launched_ms <= 0) return {};
  const std::string cost =
      one.cost > 0 ? fmt::format(", about {} USD", dollars_text(one.cost)) : std::string();
  return fmt::format("; it ran for {}{}", time_words((now_ms - one.machine.launched_ms) / 1000),
                     cost);
}

}  // namespace

std::string gpus_words(const Offer& offer) {
  if (offer.gpus == 0) return std::string(cloud::kNoGpus);
  return fmt::format("{} x {} ({} GB)", offer.gpus, offer.gpu, offer.gpu_memory_gb);
}

std::string price_words(const cloud::Price& price, std::int64_t now_ms) {
  switch (price.source) {
    case cloud::Price::Source::live:
      return "live";
    case cloud::Price::Source::cached:
      return time_words(std::max<std::int64_t>(now_ms - price.as_of_ms, 0) / 1000) + " old";
    case cloud::Price::Source::built_in:
      break;
  }
  return "of " + date_text(price.as_of_ms).substr(0, 10);
}

std::string offer_name(const Offer& offer) {
  return fmt::format("{} {} in {}{}", offer.provider, offer.type, place_words(offer),
                     offer.spot ? ", spot" : "");
}

std::string offers_table(const cloud::Catalog& catalog, const cloud::Choice& choice,
                         const cloud::Wish& wish, std::int64_t now_ms) {
  std::vector<Row> rows = {{"PROVIDER", "PLACE", "TYPE", "GPUS", "EACH", "VCPUS", "MEMORY",
                            wish.nodes == 1 ? "USD/H" : fmt::format("USD/H OF {}", wish.nodes),
                            "PRICE", "STOCK", "QUOTA", "ENDS BY ITSELF"}};
  std::vector<ZoneGroup> groups;
  for (const Candidate& one : choice.candidates)
    add_grouped(groups, one.offer, offer_row(one.offer, one.per_hour, one.doubt, now_ms));
  for (const cloud::LeftOut& one : choice.left_out)
    add_grouped(groups, one.offer, offer_row(one.offer, one.per_hour, "no: " + one.why, now_ms));
  for (ZoneGroup& group : groups) {
    group.cells[kPlaceColumn] = zones_words(*group.first, group.zones);
    rows.push_back(std::move(group.cells));
  }
  std::string text;
  if (rows.size() > 1) text = columns_text(rows);
  for (const std::string& line : silence_lines(catalog.silent))
    text += line + "\n";
  return text;
}

nlohmann::ordered_json offers_json(const cloud::Catalog& catalog, const cloud::Choice& choice,
                                   std::int64_t now_ms) {
  nlohmann::ordered_json offers = nlohmann::ordered_json::array();
  const auto add = [&](const Offer& offer, cloud::Micros per_hour, const char* name,
                       const std::string& why) {
    nlohmann::ordered_json one = cloud::offer_json(offer);
    const bool known = offer.has_price();
    // Programs get null for an unknown price. offer_json() prints 0 or the provider's placeholder.
    one["usd_per_hour"] = nullptr;
    one["price_age_s"] = nullptr;
    if (!known)
      one["price_micros_per_hour"] = one["price_source"] = one["price_as_of_ms"] = nullptr;
    if (known) {
      one["usd_per_hour"] = static_cast<double>(per_hour) / static_cast<double>(cloud::kDollar);
      one["price_age_s"] = std::max<std::int64_t>(now_ms - offer.price.as_of_ms, 0) / 1000;
    }
    if (!why.empty()) one[name] = why;
    offers.push_back(std::move(one));
  };
  for (const Candidate& one : choice.candidates)
    add(one.offer, one.per_hour, "doubt", one.doubt);
  for (const cloud::LeftOut& one : choice.left_out)
    add(one.offer, one.per_hour, "left_out", one.why);
  nlohmann::ordered_json silent = nlohmann::ordered_json::array();
  for (const cloud::NoAnswer& one : catalog.silent)
    silent.push_back({{"provider", one.provider}, {"region", one.region}, {"why", one.why}});
  return {{"offers", std::move(offers)}, {"silent", std::move(silent)}};
}

// Returns whether no party terminates the machine. Lifetime, idle limit and budget only power such
// a machine off, and the bill goes on.
static bool is_unguarded(const Candidate& one, const cloud::Terms& terms) {
  return one.offer.ending == cloud::Ending::with_guard && terms.guard.empty();
}

Plan plan_of(const cloud::Choice& choice, const cloud::Wish& wish, const cloud::Terms& terms,
             std::int64_t now_ms) {
  Plan plan{.first = choice.candidates.front(), .next = {}, .nodes = wish.nodes};
  for (std::size_t i = 1; i < choice.candidates.size() && plan.next.size() < 2; ++i)
    plan.next.push_back(choice.candidates[i]);
  const std::int64_t ends_ms =
      cloud::lease_end(terms, plan.first.per_hour, 0, now_ms, now_ms).value_or(0);
  if (!is_unguarded(plan.first, terms)) plan.ends_ms = ends_ms;
  plan.autostop_s = terms.autostop_s;
  // If a provider refuses an offer, a dearer offer follows. The limit covers the offers of the
  // plan. Only --max-price or --budget bounds later offers.
  cloud::Micros rate = plan.first.per_hour;
  for (const Candidate& next : plan.next)
    rate = std::max(rate, next.per_hour);
  rate = wish.max_price.value_or(rate);
  plan.capped = wish.max_price || terms.budget;
  // No limit holds if a candidate would run, billed, until the user terminates the machine.
  if (std::any_of(choice.candidates.begin(), choice.candidates.end(),
                  [&](const Candidate& one) { return is_unguarded(one, terms); })) {
    plan.capped = false;
    return plan;
  }
  plan.most = cloud::cost_of(rate, ends_ms - now_ms);
  if (terms.budget) plan.most = std::min(*plan.most, *terms.budget);
  return plan;
}

static std::string end_line(const Plan& plan, std::int64_t now_ms) {
  if (plan.ends_ms == 0)
    return fmt::format(
        "ends: when you end it, with lockstep down; nothing else ends the bill of {}'s machines\n",
        plan.first.offer.provider);
  const std::string idle =
      plan.autostop_s > 0 ? "; or idle for " + time_words(plan.autostop_s) : "";
  return fmt::format("ends: {} at the latest, in {}{}\n", date_text(plan.ends_ms),
                     time_words((plan.ends_ms - now_ms) / 1000), idle);
}

std::string plan_text(const Plan& plan, std::int64_t now_ms) {
  const Offer& offer = plan.first.offer;
  const std::string body =
      offer.vcpus > 0 ? fmt::format(", {} vCPUs, {} GB of memory", offer.vcpus, offer.memory_gb)
                      : std::string();
  std::string text = fmt::format(
      "plan: {} x {}\n      each {}{}\n"
      "      {} USD an hour in all, plus traffic; the machines' price is {}\n",
      plan.nodes, offer_name(offer), gpus_words(offer), body, dollars_text(plan.first.per_hour),
      price_words(offer.price, now_ms));
  for (const Candidate& next : plan.next)
    text += fmt::format("else: {}, {} USD an hour\n", offer_name(next.offer),
                        dollars_text(next.per_hour));
  text += end_line(plan, now_ms);
  if (!plan.fixed_by.empty())
    text += fmt::format(
        "keep: cannot extend this end: {} itself terminates the machines; give --lifetime now\n",
        plan.fixed_by);
  if (plan.most)
    text += fmt::format(
        "cost: {} USD at most{}\n", dollars_text(*plan.most),
        plan.capped
            ? ""
            : ", whichever of these offers is rented; --max-price or --budget caps later offers");
  else
    text += fmt::format("cost: not bounded: {} USD an hour until you end it{}\n",
                        dollars_text(plan.first.per_hour),
                        plan.ends_ms == 0 ? "" : ", on machines that need a guard");
  return text;
}

nlohmann::ordered_json plan_json(const Plan& plan) {
  nlohmann::ordered_json next = nlohmann::ordered_json::array();
  for (const Candidate& one : plan.next)
    next.push_back({{"offer", cloud::offer_json(one.offer)}, {"micros_per_hour", one.per_hour}});
  nlohmann::ordered_json json{{"offer", cloud::offer_json(plan.first.offer)},
                              {"nodes", plan.nodes},
                              {"micros_per_hour", plan.first.per_hour},
                              {"next", std::move(next)},
                              {"ends_ms", nullptr},
                              {"most_micros", nullptr},
                              {"capped", plan.capped}};
  if (plan.ends_ms > 0) json["ends_ms"] = plan.ends_ms;
  if (plan.most) json["most_micros"] = *plan.most;
  return json;
}

std::string event_text(const cloud::RentEvent& event) {
  using What = cloud::RentEvent::Kind;
  const std::string name = event.offer == nullptr ? "" : offer_name(*event.offer);
  switch (event.kind) {
    case What::asking:
      return "asking for " + name;
    case What::refused:
      return "refused: " + event.text;
    case What::no_answer:
      return fmt::format("{}: no answer; looking whether the machine is there: {}", name,
                         event.text);
    case What::booting:
      return "it is booting: " + name;
    case What::running:
      return "it runs: " + name;
    case What::rejected:
      return fmt::format("{} is unusable: {}", name, event.text);
    case What::ending:
      return "terminating " + name;
    case What::not_ended:
      return fmt::format("{} cannot be ended: {}", name, event.text);
    case What::pausing:
      return "no offer is available now; " + event.text;
  }
  return {};
}

std::vector<std::string> sweep_lines(const cloud::Reconciled& swept, std::int64_t now_ms) {
  std::vector<std::string> lines;
  for (const cloud::Leftover& one : swept.ended)
    lines.push_back(
        one.error.message.empty()
            ? machine_words(one) + " was ours and no longer wanted: ended" + cost_words(one, now_ms)
            : machine_words(one) + " is ours and no longer needed, but was not ended: " +
                  one.error.message + (one.error.hint.empty() ? "" : "; " + one.error.hint));
  lines.insert(lines.end(), swept.not_ended.begin(), swept.not_ended.end());
  for (const cloud::Rental& rental : swept.closed)
    lines.push_back(fmt::format("{}: its machines are gone; it cost {} USD", rental.cluster,
                                dollars_text(cloud::cost_so_far(rental, now_ms))));
  for (std::string& line : foreign_lines(swept.foreign, now_ms))
    lines.push_back(std::move(line));
  for (const std::string& line : silence_lines(swept.unheard))
    lines.push_back("machines there are not known: " + line);
  for (std::string& line : silence_lines(swept.denied))
    lines.push_back(std::move(line));
  return lines;
}

}  // namespace lockstep::cli
