// Reads the answers of EC2 and of AWS's other services into values. Pure.
#pragma once

#include "cloud/money.h"
#include "cloud/provider.h"
#include "codec/json.h"
#include "codec/xml.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cloud::aws {

using Xml = codec::XmlNode;

// Parses "1.0060000000" and rounds up to a millionth. nullopt: no price. AWS's lists also have 0
// and 700.0 for "no price".
std::optional<Micros> micros_of(std::string_view dollars);

// Returns whether machines can run in a zone: not in local zones, nor in zones that are impaired or
// not opted in.
bool is_usable_zone(const Xml& zone);

struct Group {
  std::string id;
  std::string vpc;
  std::vector<std::string> ssh_from;  // CIDRs that may reach port 22
  bool inside = false;                // members of the group may reach one another
};
Group group_of(const Xml& item);

struct Image {
  std::string id;
  std::string root_device;
  int min_gb = 0;
  std::string arch;
};
// Reads an image; nullopt: not available.
std::optional<Image> image_of(const Xml& item);
// Chooses from DescribeImages: the newest image of the first name that has any.
std::string newest_image(const std::vector<Xml>& items, const std::vector<std::string>& names);

Machine machine_of(const Xml& instance, const std::string& region);
// Reads all machines of DescribeInstances' reservations.
std::vector<Machine> machines_of(const std::vector<Xml>& reservations, const std::string& region);
// Reads the ids of the machines that RunInstances made.
std::vector<std::string> launched_ids(const Xml& root);

struct ProductPrice {
  std::string region;
  Micros per_hour = 0;
};
// Reads a page of GetProducts, where each product is a text that contains JSON.
std::vector<ProductPrice> product_prices(const nlohmann::json& page);

// Returns "user/ann" of an ARN such as "arn:aws:iam::1:user/ann".
std::string who_of_arn(std::string_view arn);

}  // namespace lockstep::cloud::aws
