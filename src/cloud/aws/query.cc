#include "cloud/aws/query.h"

#include "codec/url.h"

#include <fmt/core.h>

namespace lockstep::cloud::aws {

Query::Query(std::string_view action, std::string_view version) {
  add("Action", action).add("Version", version);
}

Query& Query::add(std::string_view name, std::string_view value) {
  members_.emplace_back(name, value);
  return *this;
}

Query& Query::add(std::string_view name, std::int64_t value) {
  return add(name, std::to_string(value));
}

Query& Query::list(std::string_view name, std::span<const std::string> values) {
  int number = 0;
  for (const std::string& value : values)
    add(fmt::format("{}.{}", name, ++number), value);
  return *this;
}

Query& Query::filter(std::string_view name, std::span<const std::string> values) {
  const std::string prefix = fmt::format("Filter.{}.", ++filters_);
  return add(prefix + "Name", name).list(prefix + "Value", values);
}

Query& Query::filter(std::string_view name, std::string value) {
  return filter(name, std::span<const std::string>(&value, 1));
}

std::string Query::body() const {
  return codec::form_text(members_);
}

}  // namespace lockstep::cloud::aws
