#include "cloud/aws/network.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::cloud::aws {
namespace {

// Counts the refusal `already` as success: the wanted state existed before.
Asked<void> done_or_already(const Asked<std::string>& answer, std::string_view already) {
  if (answer || answer.error().code == already) return {};
  return tl::make_unexpected(answer.error());
}

// Changing a rule is harmless to repeat, and a new group may not be visible everywhere.
ApiCall patient(const Query& query, const std::string& region) {
  ApiCall call = ApiCall::of(query, region);
  call.patience = std::chrono::minutes(1);
  call.silence = std::chrono::seconds(20);
  call.soon = true;
  return call;
}

// cidr "": no rule for port 22. inside: a rule for all traffic among the group's members.
Query rules_query(const char* action, const Group& group, const std::string& cidr, bool inside) {
  Query query(action);
  query.add("GroupId", group.id);
  int number = 0;
  const auto add = [&](const char* name, std::string_view value) {
    query.add(fmt::format("IpPermissions.{}.{}", number, name), value);
  };
  if (!cidr.empty()) {
    ++number;
    add("IpProtocol", "tcp");
    add("FromPort", "22");
    add("ToPort", "22");
    // AWS keeps IPv4 and IPv6 networks in different members.
    const bool six = cidr.find(':') != std::string::npos;
    add(six ? "Ipv6Ranges.1.CidrIpv6" : "IpRanges.1.CidrIp", cidr);
  }
  if (inside) {
    ++number;
    add("IpProtocol", "-1");
    add("Groups.1.GroupId", group.id);
  }
  return query;
}

// Lists the groups of this name in all VPCs: a name is unique in one VPC only.
Asked<std::vector<Xml>> find_groups(Web& web, Api& api, const std::string& region,
                                    const std::string& owner) {
  Query query("DescribeSecurityGroups");
  query.filter("group-name", group_name(owner));
  return api.ask_pages(web, query, region, "securityGroupInfo");
}

std::optional<Group> group_in(const std::vector<Xml>& items, const std::string& vpc) {
  for (const Xml& item : items)
    if (item.text("vpcId") == vpc) return group_of(item);
  return std::nullopt;
}

Asked<Group> make_group(Web& web, Api& api, const std::string& region, const std::string& owner,
                        const std::string& vpc) {
  Query query("CreateSecurityGroup");
  query.add("GroupDescription", "Lockstep: ssh from its user, all among its machines")
      .add("GroupName", group_name(owner))
      .add("VpcId", vpc)
      .add("TagSpecification.1.ResourceType", "security-group")
      .add("TagSpecification.1.Tag.1.Key", "lockstep:owner")
      .add("TagSpecification.1.Tag.1.Value", owner);
  // Do not repeat this call without an answer: AWS would refuse the repeat as a duplicate.
  auto root = api.ask_xml(web, ApiCall::of(query, region));
  if (root) return Group{.id = std::string(root->text("groupId")), .vpc = vpc, .ssh_from = {}};
  const bool there = root.error().code == "InvalidGroup.Duplicate" || root.error().maybe_done;
  if (!there) return tl::make_unexpected(std::move(root).error());
  // A list may lack a group for a moment after its creation.
  for (int tries = 0; tries < 5; ++tries) {
    const auto items = find_groups(web, api, region, owner);
    if (auto group = items ? group_in(*items, vpc) : std::nullopt) return std::move(*group);
    if (!web.pause(std::chrono::milliseconds(500))) break;
  }
  return tl::make_unexpected(std::move(root).error());
}

}  // namespace

std::string group_name(std::string_view owner) {
  return fmt::format("lockstep-{}", owner);
}

Asked<Network> find_network(Web& web, Api& api, const std::string& region,
                            const std::string& owner) {
  Query vpcs_query("DescribeVpcs");
  vpcs_query.filter("is-default", "true");
  Query subnets_query("DescribeSubnets");
  subnets_query.filter("default-for-az", "true");
  Asked<std::vector<Xml>> vpcs;
  Asked<std::vector<Xml>> subnets;
  Asked<std::vector<Xml>> groups;
  web.at_once({
      [&](Web& own) { vpcs = api.ask_pages(own, vpcs_query, region, "vpcSet"); },
      [&](Web& own) { subnets = api.ask_pages(own, subnets_query, region, "subnetSet"); },
      [&](Web& own) { groups = find_groups(own, api, region, owner); },
  });
  if (!vpcs) return tl::make_unexpected(std::move(vpcs).error());
  if (!subnets) return tl::make_unexpected(std::move(subnets).error());
  if (!groups) return tl::make_unexpected(std::move(groups).error());
  Network network{.vpc = {}, .subnets = {}, .group = {}};
  if (!vpcs->empty()) network.vpc = vpcs->front().text("vpcId");
  network.group = group_in(*groups, network.vpc);
  for (const Xml& subnet : *subnets)
    network.subnets.emplace(subnet.text("availabilityZone"), subnet.text("subnetId"));
  return network;
}

Asked<void> open_group(Web& web, Api& api, const std::string& region, const std::string& owner,
                       const std::string& cidr, Network& network) {
  if (!network.group) {
    auto made = make_group(web, api, region, owner, network.vpc);
    if (!made) return tl::make_unexpected(std::move(made).error());
    network.group = std::move(*made);
  }
  Group& group = *network.group;
  const bool open = cidr.empty() || std::find(group.ssh_from.begin(), group.ssh_from.end(), cidr) !=
                                        group.ssh_from.end();
  if (open && group.inside) return {};
  const auto authorize = [&](const std::string& from, bool inside) {
    return api.ask(
        web, patient(rules_query("AuthorizeSecurityGroupIngress", group, from, inside), region));
  };
  constexpr std::string_view kAlready = "InvalidPermission.Duplicate";
  const auto all = authorize(open ? "" : cidr, !group.inside);
  auto done = done_or_already(all, kAlready);
  // If any rule of a call exists, AWS refuses the whole call. Then add each rule by a separate
  // call.
  if (!all && done && !open && !group.inside) {
    done = done_or_already(authorize(cidr, false), kAlready);
    if (done) done = done_or_already(authorize("", true), kAlready);
  }
  if (!done) return done;
  if (!open) group.ssh_from.push_back(cidr);
  group.inside = true;
  return {};
}

Asked<void> close_others(Web& web, Api& api, const std::string& region, const Group& group,
                         const std::vector<std::string>& wanted) {
  for (const std::string& old : group.ssh_from) {
    // Revoke each rule by a separate call, since a rule may be gone already.
    if (std::find(wanted.begin(), wanted.end(), old) != wanted.end()) continue;
    auto done = done_or_already(
        api.ask(web, patient(rules_query("RevokeSecurityGroupIngress", group, old, false), region)),
        "InvalidPermission.NotFound");
    if (!done) return done;
  }
  return {};
}

Asked<void> delete_group(Web& web, Api& api, const std::string& region, const Group& group) {
  Query query("DeleteSecurityGroup");
  query.add("GroupId", group.id);
  return done_or_already(api.ask(web, ApiCall::of(query, region)), "InvalidGroup.NotFound");
}

}  // namespace lockstep::cloud::aws
