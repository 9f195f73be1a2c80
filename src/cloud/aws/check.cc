#include "cloud/aws/check.h"

#include "base/text.h"
#include "cloud/aws/image.h"
#include "cloud/aws/launch_body.h"
#include "cloud/aws/network.h"
#include "cloud/aws/places.h"
#include "cloud/aws/quota_table.h"
#include "cloud/machine_table.h"

#include <fmt/core.h>

#include <cstdlib>

namespace lockstep::cloud::aws {
namespace {

// The least rights for all calls of this folder. The second statement lets the first spot launch
// create AWS's role for spot machines.
constexpr std::string_view kPolicy = R"({
  "Version": "2012-10-17",
  "Statement": [{
    "Sid": "Lockstep",
    "Effect": "Allow",
    "Action": [
      "ec2:Describe*",
      "ec2:RunInstances",
      "ec2:TerminateInstances",
      "ec2:CreateTags",
      "ec2:CreateSecurityGroup",
      "ec2:DeleteSecurityGroup",
      "ec2:AuthorizeSecurityGroupIngress",
      "ec2:RevokeSecurityGroupIngress",
      "ssm:GetParameter",
      "pricing:GetProducts",
      "servicequotas:GetServiceQuota"
    ],
    "Resource": "*"
  }, {
    "Sid": "LockstepSpot",
    "Effect": "Allow",
    "Action": "iam:CreateServiceLinkedRole",
    "Resource": "arn:aws:iam::*:role/aws-service-role/spot.amazonaws.com/*",
    "Condition": {"StringLike": {"iam:AWSServiceName": "spot.amazonaws.com"}}
  }]
})";

// An optional right, and what Lockstep does without the right.
struct OptionalRight {
  const char* right;
  const char* without;
};

constexpr OptionalRight kRightToImages{"ssm:GetParameter",
                                       "images are found by their names instead"};
constexpr OptionalRight kRightToPrices{"pricing:GetProducts",
                                       "prices on demand are the built-in ones, in us-east-1 only"};
constexpr OptionalRight kRightToQuotas{"servicequotas:GetServiceQuota", "quotas are unknown"};

class Check {
 public:
  Check(Web& web, Api& api) : web_(web), api_(api) {}

  std::vector<Finding> run() {
    const bool known = check_account();
    check_keys();
    // Without an account every further probe would fail for the same reason.
    if (!known) return std::move(findings_);
    check_rights();
    check_launch();
    check_prices();
    check_quotas();
    return std::move(findings_);
  }

 private:
  void note(Finding::Kind kind, std::string what, std::string hint = {}) {
    findings_.push_back({.kind = kind, .what = std::move(what), .hint = std::move(hint)});
  }

  void check_keys() {
    for (const std::string& file : api_.ring().loose_files())
      note(Finding::Kind::note,
           fmt::format("other users may read {}, which contains keys", printable(file)),
           fmt::format("chmod 600 {}", shell_quote(file)));
  }

  bool check_account() {
    const auto account = account_of(web_, api_);
    if (!account) {
      note(Finding::Kind::bad, account.error().message, account.error().hint);
      return false;
    }
    region_ = api_.ring().region();
    note(Finding::Kind::good, fmt::format("keys of {}: {}", api_.keys_from(), *account));
    const std::int64_t offset = api_.clock_offset_ms();
    if (offset != 0)
      note(Finding::Kind::note,
           fmt::format("this machine's clock is {} min {} AWS's",
                       (std::abs(offset) + 30'000) / 60'000, offset > 0 ? "behind" : "ahead of"),
           "set it: `timedatectl set-ntp true`");
    const auto all = regions(web_, api_, 0);
    if (all)
      note(Finding::Kind::good,
           fmt::format("{} regions are switched on; checked in {}", all->size(), region_));
    else
      note(Finding::Kind::bad, all.error().message, all.error().hint);
    return all.has_value();
  }

  // Makes a call that changes nothing. AWS checks rights first: a refusal for any other reason
  // proves the right.
  void probe(const Query& query) {
    const auto answer = api_.ask(web_, ApiCall::of(query, region_));
    if (answer) return;
    if (meaning_of(answer.error()) == Meaning::not_allowed)
      missing_ += fmt::format("{}ec2:{}", missing_.empty() ? "" : ", ", query.action());
    else if (meaning_of(answer.error()) == Meaning::no_spot)
      note(Finding::Kind::note, "spot machines can't be rented: " + answer.error().code,
           std::string(spot_role_hint()));
    else if (!answer.error().refused())
      note(Finding::Kind::bad, answer.error().message, answer.error().hint);
  }

  void check_rights() {
    for (const char* action :
         {"DescribeAvailabilityZones", "DescribeInstanceTypeOfferings", "DescribeSpotPriceHistory",
          "DescribeInstances", "DescribeVpcs", "DescribeSubnets", "DescribeSecurityGroups"})
      probe(Query(action).add("DryRun", "true"));
    probe(Query("TerminateInstances")
              .add("DryRun", "true")
              .add("InstanceId.1", "i-00000000000000000"));
    probe(Query("DescribeImages").add("DryRun", "true").add("Owner.1", "self"));
  }

  void check_launch() {
    const auto network = find_network(web_, api_, region_, api_.ring().ground().owner);
    const auto image = find_image(
        web_, api_, {.region = region_, .given = {}, .arch = "x86_64", .open_module = true}, true);
    if (!image)
      note(Finding::Kind::bad, image.error().message, image.error().hint);
    else
      note(Finding::Kind::good, fmt::format("image {} in {}", image->id, region_));
    if (network && (network->vpc.empty() || network->subnets.empty()))
      note(Finding::Kind::bad, fmt::format("{} lacks a default network", region_),
           fmt::format("aws ec2 create-default-vpc --region {}", region_));
    if (network && !network->vpc.empty()) {
      probe(Query("CreateSecurityGroup")
                .add("DryRun", "true")
                .add("GroupDescription", "Lockstep")
                .add("GroupName", group_name("check"))
                .add("VpcId", network->vpc));
      if (network->group) probe_group(network->group->id);
    }
    if (image) probe_launch(*image);
    if (missing_.empty())
      note(Finding::Kind::good, "all rights that are needed are there");
    else
      note(Finding::Kind::bad, fmt::format("rights that are missing: {}", missing_),
           fmt::format("add this policy to {}:\n{}", api_.keys_from(), kPolicy));
  }

  // Needs an existing group. 192.0.2.1 is an address for documentation.
  void probe_group(const std::string& group) {
    for (const char* action : {"AuthorizeSecurityGroupIngress", "RevokeSecurityGroupIngress"})
      probe(Query(action)
                .add("DryRun", "true")
                .add("GroupId", group)
                .add("IpPermissions.1.IpProtocol", "tcp")
                .add("IpPermissions.1.FromPort", 22)
                .add("IpPermissions.1.ToPort", 22)
                .add("IpPermissions.1.IpRanges.1.CidrIp", "192.0.2.1/32"));
  }

  // Tries a launch on demand and on spot. Spot needs a role that new accounts lack.
  void probe_launch(const Image& image) {
    LaunchSpec spec;
    spec.intent = spec.cluster = "check";
    spec.owner = api_.ring().ground().owner;
    spec.offer.type = "g4dn.xlarge";
    probe(launch_query(spec, {.image = image}, ""));
    // A missing right would fail the spot probe in the same way.
    if (missing_.find("RunInstances") != std::string::npos) return;
    spec.offer.spot = true;
    probe(launch_query(spec, {.image = image}, ""));
  }

  void optional(const OptionalRight& right, const ApiFailure& trouble) {
    note(Finding::Kind::note,
         meaning_of(trouble) == Meaning::not_allowed
             ? fmt::format("the right {} is missing: {}", right.right, right.without)
             : fmt::format("{}: {}", trouble.message, right.without));
  }

  void check_prices() {
    const auto parameter = api_.ask_json(
        web_, ApiCall::of(Service::ssm, region_, "GetParameter",
                          R"({"Name":"/aws/service/deeplearning/ami/x86_64/)"
                          R"(base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"})"));
    if (!parameter) optional(kRightToImages, parameter.error());
    const auto prices = price_question(api_, "g4dn.xlarge").ask(web_);
    if (!prices) optional(kRightToPrices, prices.error());
  }

  void check_quotas() {
    // Examples: one type for each quota of GPU machines.
    const std::pair<const char*, bool> examples[] = {
        {"p4d", false}, {"g5", false}, {"p4d", true}, {"p5", true}, {"g5", true}};
    for (const auto& [type, spot] : examples) {
      const std::string code(quota_code(type, spot));
      const auto rows = quota_question(api_, region_, code).ask(web_);
      if (!rows) return optional(kRightToQuotas, rows.error());
      if (rows->empty()) continue;
      const std::string& limit = (*rows)[0][0];
      note(limit == "0" ? Finding::Kind::note : Finding::Kind::good,
           fmt::format("quota of {} {} in {}: {} vCPUs", type, spot ? "spot" : "on demand", region_,
                       limit),
           limit == "0" ? "ask for more: " + quota_link(region_, code) : "");
    }
  }

  Web& web_;
  Api& api_;
  std::string region_;
  std::string missing_;
  std::vector<Finding> findings_;
};

}  // namespace

Asked<std::string> account_of(Web& web, Api& api) {
  if (const auto ready = api.ready(web); !ready) return tl::make_unexpected(ready.error());
  const auto root = api.ask_xml(
      web, ApiCall::of(Query("GetCallerIdentity", kStsVersion), api.ring().region(), Service::sts));
  if (!root) return tl::make_unexpected(root.error());
  const Xml* who = root->child("GetCallerIdentityResult");
  if (who == nullptr) who = &*root;
  return fmt::format("account {}, {}", printable(who->text("Account"), 20),
                     who_of_arn(who->text("Arn")));
}

std::vector<Finding> check_account(Web& web, Api& api) {
  return Check(web, api).run();
}

}  // namespace lockstep::cloud::aws
