// Bodies of AWS's query protocol: "Action=..&Version=..&..", lists from 1 on. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::cloud::aws {

inline constexpr std::string_view kEc2Version = "2016-11-15";
inline constexpr std::string_view kStsVersion = "2011-06-15";

class Query {
 public:
  explicit Query(std::string_view action, std::string_view version = kEc2Version);

  Query& add(std::string_view name, std::string_view value);
  Query& add(std::string_view name, std::int64_t value);
  // NAME.1=..&NAME.2=..
  Query& list(std::string_view name, std::span<const std::string> values);
  Query& filter(std::string_view name, std::span<const std::string> values);
  Query& filter(std::string_view name, std::string value);

  const std::string& action() const { return members_.front().second; }
  std::string body() const;

 private:
  std::vector<std::pair<std::string, std::string>> members_;
  int filters_ = 0;
};

}  // namespace lockstep::cloud::aws
