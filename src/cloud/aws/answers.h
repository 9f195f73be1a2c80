// What EC2 and its neighbours answer, as values. Pure.
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

// "1.0060000000" rounded up to a millionth. nullopt: no price, also 0 and the 700.0 that stands for
// none in AWS's lists.
std::optional<Micros> micros_of(std::string_view dollars);

// A zone in which machines can be had: no local zone, none that is out of order or not opted in.
bool is_usable_zone(const Xml& zone);

struct Group {
  std::string id;
  std::string vpc;
  std::vector<std::string> ssh_from;  // CIDRs that reach port 22
  bool inside = false;                // its members reach one another
};
Group group_of(const Xml& item);

struct Image {
  std::string id;
  std::string root_device;
  int min_gb = 0;
  std::string arch;
};
// nullopt: it is not available.
std::optional<Image> image_of(const Xml& item);
// Of those that DescribeImages lists the one to take: the newest of the first name that has any.
std::string newest_image(const std::vector<Xml>& items, const std::vector<std::string>& names);

Machine machine_of(const Xml& instance, const std::string& region);
// All machines of DescribeInstances' reservations.
std::vector<Machine> machines_of(const std::vector<Xml>& reservations, const std::string& region);
// The machines that RunInstances made.
std::vector<std::string> launched_ids(const Xml& root);

struct ProductPrice {
  std::string region;
  Micros per_hour = 0;
};
// Of GetProducts' page; each product is a text with JSON in it.
std::vector<ProductPrice> product_prices(const nlohmann::json& page);

// "user/ann" of an ARN such as "arn:aws:iam::1:user/ann".
std::string who_of_arn(std::string_view arn);

}  // namespace lockstep::cloud::aws
