#include "launchers/hostfile.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace lockstep::launchers {
namespace {

// A hostfile is foreign input: bound hosts and slots.
constexpr std::size_t kMostHosts = 4096;
constexpr std::int64_t kMostSlots = 4096;
constexpr std::string_view kSpace = " \t\r\f\v";

// Matches a line as DeepSpeed does: ^(\S+)\s+slots=(\d+). The rest of the line is ignored.
std::optional<std::pair<std::string, std::string>> name_and_count(std::string_view line) {
  const std::size_t name_end = line.find_first_of(kSpace);
  if (name_end == line.npos) return std::nullopt;
  std::string_view rest = line.substr(line.find_first_not_of(kSpace, name_end));
  constexpr std::string_view kSlots = "slots=";
  if (!rest.starts_with(kSlots)) return std::nullopt;
  rest.remove_prefix(kSlots.size());
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (digits == 0) return std::nullopt;
  return std::pair(std::string(line.substr(0, name_end)), std::string(rest.substr(0, digits)));
}

Result<HostSlots> parse_line(std::string_view line) {
  const auto read = name_and_count(line);
  if (!read)
    return fail(Errc::invalid_input, fmt::format("'{}' is not NAME slots=N", printable(line, 80)),
                "write as worker-0 slots=8");
  // A number too large for 64 bits counts as too many.
  const std::int64_t count = parse_int(read->second).value_or(kMostSlots + 1);
  if (count > kMostSlots)
    return fail(Errc::invalid_input,
                fmt::format("slots={} is more than {}", printable(read->second, 40), kMostSlots));
  HostSlots host{read->first, std::vector<int>(static_cast<std::size_t>(count))};
  std::iota(host.slots.begin(), host.slots.end(), 0);
  return host;
}

const HostSlots* find_host(const std::vector<HostSlots>& hosts, std::string_view name) {
  const auto found = std::find_if(hosts.begin(), hosts.end(),
                                  [&](const HostSlots& host) { return host.name == name; });
  return found == hosts.end() ? nullptr : &*found;
}

// Hosts and slots named in a filter.
struct Named {
  std::map<std::string, std::set<int>, std::less<>> slots;  // by host
  std::vector<std::string> whole;                           // hosts named without slots
};

// Refuses slots that the hostfile does not give. DeepSpeed checks them for --exclude only.
Status add_slots(const HostSlots& host, std::string_view list, std::set<int>& to) {
  for (const std::string& text : split(list, ',')) {
    const auto slot = parse_int(text);
    if (!slot)
      return fail(Errc::invalid_input, fmt::format("'{}' must be the number of a slot of {}",
                                                   printable(text), host.name));
    const bool known =
        std::any_of(host.slots.begin(), host.slots.end(), [&](int each) { return each == *slot; });
    if (!known)
      return fail(Errc::invalid_input, fmt::format("{} has no slot {}; the hostfile gives {} slots",
                                                   host.name, *slot, host.slots.size()));
    to.insert(static_cast<int>(*slot));
  }
  return {};
}

Result<Named> parse_filter(const std::vector<HostSlots>& hosts, std::string_view text) {
  Named named;
  for (const std::string& spec : split(text, '@')) {
    // A name in the hostfile may contain a port, so try the whole text as a name first.
    const HostSlots* host = find_host(hosts, spec);
    const std::size_t colon = spec.rfind(':');
    const bool is_whole = host != nullptr || colon == std::string::npos;
    const std::string name = is_whole ? spec : spec.substr(0, colon);
    if (!is_whole) host = find_host(hosts, name);
    if (host == nullptr)
      return fail(Errc::invalid_input,
                  fmt::format("the hostfile has no host '{}'", printable(name)));
    // A host may stand in several parts of the filter: the slots add up.
    std::set<int>& slots = named.slots[name];
    if (is_whole) {
      named.whole.push_back(name);
      slots.insert(host->slots.begin(), host->slots.end());
    } else {
      LOCKSTEP_TRY(add_slots(*host, std::string_view(spec).substr(colon + 1), slots));
    }
  }
  return named;
}

std::vector<int> kept_slots(const HostSlots& host, const Named& named, bool includes) {
  const auto found = named.slots.find(host.name);
  if (found == named.slots.end()) return includes ? std::vector<int>() : host.slots;
  std::vector<int> kept;
  for (const int slot : host.slots)
    if (found->second.contains(slot) == includes) kept.push_back(slot);
  return kept;
}

}  // namespace

Result<std::vector<HostSlots>> parse_hostfile(std::string_view text) {
  std::vector<HostSlots> hosts;
  std::set<std::string, std::less<>> names;
  int number = 0;
  for (const std::string& raw : split(text, '\n')) {
    ++number;
    const std::string_view line = strip(raw);
    if (line.empty() || line.starts_with('#')) continue;
    auto host = parse_line(line);
    if (!host) return Failure(std::move(host).error().within(fmt::format("line {}", number)));
    if (!names.insert(host->name).second)
      return fail(Errc::invalid_input,
                  fmt::format("line {}: {} is listed twice", number, printable(host->name)));
    if (names.size() > kMostHosts)
      return fail(Errc::invalid_input, fmt::format("there are more than {} hosts", kMostHosts));
    hosts.push_back(std::move(*host));
  }
  if (hosts.empty()) return fail(Errc::invalid_input, "the file names no host");
  return hosts;
}

Result<ChosenHosts> choose_slots(const std::vector<HostSlots>& hosts, std::string_view include,
                                 std::string_view exclude) {
  if (!include.empty() && !exclude.empty())
    return fail(Errc::invalid_input, "--include and --exclude are both given", "give one of them");
  const bool includes = !include.empty();
  const std::string_view filter = includes ? include : exclude;
  Named named;
  if (!filter.empty()) {
    auto parsed = parse_filter(hosts, filter);
    if (!parsed)
      return Failure(std::move(parsed).error().within(
          fmt::format("--{} {}", includes ? "include" : "exclude", printable(filter))));
    named = std::move(*parsed);
  }
  ChosenHosts chosen;
  for (const HostSlots& host : hosts) {
    std::vector<int> slots = kept_slots(host, named, includes);
    if (!slots.empty()) chosen.hosts.push_back({host.name, std::move(slots)});
    // DeepSpeed itself starts no rank on such a host.
    if (filter.empty() && host.slots.empty())
      chosen.notes.push_back(host.name + " has slots=0 and takes no part");
  }
  if (chosen.hosts.empty())
    return fail(Errc::invalid_input, "no slot of any host is left",
                "see what --include or --exclude leaves of the hostfile");
  if (includes && !named.whole.empty())
    chosen.notes.push_back(
        "--include names all slots of " + join(named.whole, ", ") +
        ", as DeepSpeed's help says; DeepSpeed's launcher would drop these hosts");
  return chosen;
}

std::string slots_text(const std::vector<int>& slots) {
  std::vector<std::string> words;
  words.reserve(slots.size());
  for (const int slot : slots)
    words.push_back(std::to_string(slot));
  return join(words, ",");
}

}  // namespace lockstep::launchers
