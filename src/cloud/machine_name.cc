#include "cloud/machine_name.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace lockstep::cloud {
namespace {

constexpr std::size_t kMostOfName = 64;

// Ids contain no dash, so a name splits in only one way.
bool is_plain_id(std::string_view text) {
  return !text.empty() && text.size() <= 32 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  });
}

template <class Number>
bool read_number(std::string_view text, int base, Number& to) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to, base);
  return error == std::errc() && end == text.data() + text.size() && to >= 0;
}

}  // namespace

std::string MachineName::text() const {
  return fmt::format("ls-{}-{}-{}-{}-{:x}", intent, owner, attempt, node, created_ms);
}

MachineName name_of(const LaunchSpec& spec, std::int64_t now_ms) {
  return {.intent = spec.intent,
          .owner = spec.owner,
          .attempt = spec.attempt,
          .node = spec.node,
          .created_ms = now_ms};
}

std::optional<MachineName> parse_machine_name(std::string_view text) {
  // Names come from the provider's list, where machines of other programs have other names.
  if (text.size() > kMostOfName) return std::nullopt;
  const auto parts = split(text, '-');
  MachineName name;
  if (parts.size() != 6 || parts[0] != "ls" || !is_plain_id(parts[1]) || !is_plain_id(parts[2]) ||
      !read_number(parts[3], 10, name.attempt) || !read_number(parts[4], 10, name.node) ||
      !read_number(parts[5], 16, name.created_ms) || name.created_ms > (std::int64_t{1} << 48))
    return std::nullopt;
  // Providers without tags have only the name to say whose machine this is.
  name.intent = parts[1];
  name.owner = parts[2];
  return name;
}

bool read_name(Machine& machine) {
  const auto name = parse_machine_name(machine.name);
  if (!name) return false;
  machine.intent = name->intent;
  machine.owner = name->owner;
  machine.node = name->node;
  machine.token = machine.name;  // unique to this launch
  machine.launched_ms = name->created_ms;
  return true;
}

bool asked_for(const ListQuery& query, const Machine& machine) {
  return !machine.intent.empty() && (query.intent.empty() || query.intent == machine.intent) &&
         (query.owner.empty() || query.owner == machine.owner) &&
         (query.regions.empty() || std::find(query.regions.begin(), query.regions.end(),
                                             machine.region) != query.regions.end());
}

}  // namespace lockstep::cloud
